//! How keys are reported beyond what terminals always did: kitty's protocol, of which each screen has a stack, and
//! xterm's modifyOtherKeys. Programs that use them misread what is typed in a terminal where they are off.

use crate::csi::Csi;

/// Entries of one stack; the oldest are lost, as kitty says.
const DEEPEST: usize = 8;
/// The flags that the protocol has.
const FLAGS: u16 = 0b1_1111;

/// kitty's flags, the current ones last. Empty is the same as a single zero.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct KeyboardStack(Vec<u8>);

impl KeyboardStack {
    /// Reads a CSI … u with a prefix; queries and others change nothing.
    pub(crate) fn read(&mut self, csi: &Csi<'_>) {
        match csi.prefix {
            Some(b'>') => {
                if self.0.is_empty() {
                    self.0.push(0);
                }
                if self.0.len() == DEEPEST {
                    self.0.remove(0);
                }
                self.0.push(flags(csi.number(0, 0)));
            }
            Some(b'<') => {
                let left = self.0.len().saturating_sub(usize::from(csi.number(0, 1).max(1)));
                self.0.truncate(left);
                // The first entry is what held before anything was pushed.
                if self.0 == [0] {
                    self.0.clear();
                }
            }
            Some(b'=') => {
                let given = flags(csi.number(0, 0));
                let current = self.0.pop().unwrap_or(0);
                let new = match csi.number(1, 1) {
                    2 => current | given,
                    3 => current & !given,
                    _ => given,
                };
                self.0.push(new);
                if self.0 == [0] {
                    self.0.clear();
                }
            }
            _ => {}
        }
    }

    /// The first entry is set, the others are pushed.
    pub(crate) fn entries(&self) -> &[u8] {
        &self.0
    }
}

fn flags(number: u16) -> u8 {
    u8::try_from(number & FLAGS).unwrap_or(0)
}

/// xterm's modifyOtherKeys, 0 to 3.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OtherKeys(pub(crate) u8);

impl OtherKeys {
    /// Reads a CSI > … m.
    pub(crate) fn read(&mut self, csi: &Csi<'_>) {
        match csi.number(0, 0) {
            4 => self.0 = u8::try_from(csi.number(1, 0).min(3)).unwrap_or(0),
            0 if csi.count() <= 1 => self.0 = 0,
            _ => {}
        }
    }
}
