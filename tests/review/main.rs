//! Workspaces under review: the command works on the owner's tree, and nothing of the owner's changes. What is true of
//! the tree is asked of the host.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod forms;
mod hidden;
mod killed;
mod layer;
mod project;
mod refusals;
mod repository;
mod returned;
mod walls;
