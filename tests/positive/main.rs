//! The positive suite: real tools work inside.
