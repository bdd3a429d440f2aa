//! Workspaces that are the owner's: under review nothing of the owner's changes, and directly nothing of any `.git`. What
//! is true of the tree is asked of the host.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod direct;
mod direct_end;
mod direct_walls;
mod forms;
mod hidden;
mod killed;
mod layer;
mod partial;
mod project;
mod refusals;
mod repository;
mod returned;
mod terminal;
mod together;
mod walls;
