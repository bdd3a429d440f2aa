//! The owner's terminal while a command inside has one of its own: raw, and given back as it was, whatever
//! happens.

use std::io::IsTerminal as _;

use rustix::stdio::stdin;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use wire::WindowSize;

/// Whether a person sits at both ends.
pub(crate) fn is_interactive() -> bool {
    std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}

/// The size of the terminal on stdin, if there is one.
pub(crate) fn size() -> Option<WindowSize> {
    let size = tcgetwinsize(stdin()).ok()?;
    Some(WindowSize { rows: size.ws_row.into(), columns: size.ws_col.into() })
}

/// Raw mode, until this is dropped.
pub(crate) struct RawMode {
    before: Termios,
}

impl RawMode {
    pub(crate) fn enter() -> Option<Self> {
        let before = tcgetattr(stdin()).ok()?;
        let mode = Self { before };
        mode.again();
        Some(mode)
    }

    /// Raw once more, after the terminal was given back for a while.
    pub(crate) fn again(&self) {
        let mut raw = self.before.clone();
        raw.make_raw();
        let _ = tcsetattr(stdin(), OptionalActions::Now, &raw);
    }

    /// As it was before.
    pub(crate) fn restore(&self) {
        let _ = tcsetattr(stdin(), OptionalActions::Drain, &self.before);
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        self.restore();
    }
}
