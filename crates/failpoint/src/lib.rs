//! Moments between two changes of state, each with a name: a test ends the process there, holds it up, or lets the step
//! fail as if the disk were full, and looks at what is left.
//!
//! The shipped program is built without the feature `weaken`: there nothing is asked, no name is in it, and a mark is
//! no code at all.

#[cfg(feature = "weaken")]
mod armed;
mod point;
#[cfg(feature = "weaken")]
mod sys;

pub use point::Point;

/// A moment at which the process may be made to end.
#[cfg(feature = "weaken")]
pub fn pass(point: Point) {
    armed::pass(point);
}

/// A moment at which the process may be made to end.
#[cfg(not(feature = "weaken"))]
pub const fn pass(_point: Point) {}

/// The same before a step that can also be made to fail, as on a full disk.
#[cfg(feature = "weaken")]
pub fn attempt(point: Point) -> std::io::Result<()> {
    armed::pass(point);
    armed::fail(point)
}

/// The same before a step that can also be made to fail, as on a full disk.
#[cfg(not(feature = "weaken"))]
pub const fn attempt(_point: Point) -> std::io::Result<()> {
    Ok(())
}

/// What a process that is started with an empty environment is to know of it.
#[cfg(feature = "weaken")]
#[must_use]
pub fn variable() -> Option<(&'static str, std::ffi::OsString)> {
    Some((armed::VARIABLE, std::env::var_os(armed::VARIABLE)?))
}

/// What a process that is started with an empty environment is to know of it: nothing.
#[cfg(not(feature = "weaken"))]
#[must_use]
pub const fn variable() -> Option<(&'static str, std::ffi::OsString)> {
    None
}
