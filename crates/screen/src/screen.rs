//! The screen of one terminal, from the outside.

use crate::parser::Parser;
use crate::size::Size;
use crate::terminal::Terminal;
use crate::writer::Writer;
use crate::{leave, restore};

/// The screen of one terminal: fed with what programs write, asked what a viewer must be sent.
#[derive(Clone, Debug)]
pub struct Screen {
    parser: Parser,
    terminal: Terminal,
}

impl PartialEq for Screen {
    /// Screens are equal that a viewer cannot tell apart, now or after any further bytes.
    fn eq(&self, other: &Self) -> bool {
        self.terminal == other.terminal && self.pending() == other.pending()
    }
}

impl Screen {
    /// An empty screen, of the nearest size that there is ([`Size::clamped`]).
    ///
    /// It takes 20 bytes for each cell up to the last one written in its line, twice that where combining marks are
    /// on all of them, and as much again while the alternate screen is shown; beside that 72 bytes for a row and a
    /// few KiB for titles. So 24 rows of 80 columns take 2 KiB when empty, 40 KiB when full of text, and 176 KiB at the
    /// worst that a program can do; 60 rows of 200 columns take 5 KiB, 240 KiB and 1 MiB.
    #[must_use]
    pub fn new(size: Size) -> Self {
        Self { parser: Parser::default(), terminal: Terminal::new(size.clamped()) }
    }

    /// The size it has.
    #[must_use]
    pub fn size(&self) -> Size {
        self.terminal.size
    }

    /// Takes in what a program has written, cut anywhere.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.parser.feed(bytes, &mut self.terminal);
    }

    /// Gives it another size. Lines are cut and not broken anew: programs draw again when their window changes, and
    /// viewers who must see the same until then are sent [`restore`](Self::restore).
    pub fn resize(&mut self, size: Size) {
        self.terminal.resize(size.clamped());
    }

    /// What brings a viewer's terminal of this size from any state to this screen. All that is fed in afterwards is
    /// then sent to the viewer, too, until it is sent [`leave`](Self::leave). Nothing else may come between: where the
    /// stream is in the middle of a sequence, so are these bytes.
    ///
    /// At most 110 bytes for each cell of each screen and some KiB; a usual screen takes about two bytes for a cell.
    ///
    /// What the viewer's terminal showed moves into its history and its title onto its stack. To bring a viewer
    /// up to date who has missed something, send `leave` and `restore`.
    #[must_use]
    pub fn restore(&self) -> Vec<u8> {
        let mut writer = Writer::for_screen(self.terminal.size);
        restore::write(&self.terminal, &mut writer);
        self.parser.write(&mut writer);
        writer.finish()
    }

    /// What puts a viewer's terminal back in order: nothing that a program has switched stays behind, and the cursor
    /// is on a new line below what was shown.
    #[must_use]
    pub fn leave(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        leave::write(&self.terminal, &mut writer);
        writer.finish()
    }

    fn pending(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        self.parser.write(&mut writer);
        writer.finish()
    }
}
