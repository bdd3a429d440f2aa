//! A terminal's screen, kept so that it can be shown again: programs inside a sandbox write to a terminal whose
//! far end the supervisor holds, viewers come and go, and who comes late must see what the others see.
//!
//! Every byte fed in is hostile. It never panics, memory is bounded by the size of the screen ([`Screen::new`] says
//! how), and what [`Screen::restore`] says is made here from a closed list of sequences: nothing from inside is in it
//! but the characters on the screen and a title without control characters.
//!
//! # Why an emulator of our own
//!
//! A restored viewer gets the rest of the stream as everyone does, so whatever that stream depends on must be kept.
//! Each of the crates that come into question lacks some of it where nothing kept beside it can help (all tried):
//!
//! - `vt100` 0.18 has no insert mode, no way to turn wrapping off, no line drawing set, no tab stops, no blinking,
//!   hidden, struck or curly text, and no index (ESC D), all of which change cells; saved cursor, scroll region,
//!   origin mode and the screen beneath the alternate one cannot be read. A cell takes 32 bytes, a row all its cells,
//!   and 9 KiB of repeated characters (CSI b) a second.
//! - `avt` 0.19 emulates more, but knows no title, mouse, paste, focus, cursor shape or curly line; its dump is for an
//!   empty avt, and repeats what came of an unfinished command: the rest of a clipboard's contents, for one.
//! - `alacritty_terminal` 0.26 emulates nearly all of it, but the other screen, tab stops and scroll region are
//!   private, marks on one cell grow without bound, keyboard modes pushed often enough make it panic, and it brings an
//!   event loop, threads and signal handlers along. It is the independent terminal of the tests instead.
//! - `vte`, the parser of two of these, does not tell what it holds of an unfinished sequence, without which a viewer
//!   who comes in the middle of one reads the rest of it as text; and with its feature `std`, which any other crate
//!   may turn on, an unfinished title takes memory without bound.
//!
//! # What is not kept
//!
//! Lines that have scrolled off: the supervisor keeps no history of what a sandbox wrote, and a viewer's own terminal
//! has one. Colours of the palette (OSC 4, 10 to 19), hyperlinks, pictures, double-height lines, left and right
//! margins, and the contents of the alternate screen after it was left.

mod cell;
mod charset;
mod csi;
mod cursor;
mod grid;
mod keyboard;
mod leave;
mod modes;
mod motion;
mod page;
mod paint;
mod parser;
mod restore;
mod row;
mod screen;
mod sequences;
mod sgr;
mod size;
mod style;
mod tabs;
mod terminal;
mod title;
mod writer;

pub use screen::Screen;
pub use size::Size;
