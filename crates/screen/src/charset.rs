//! The character sets that programs still choose: ASCII, British and the one that lines are drawn with.

/// What the bytes of a set stand for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Charset {
    #[default]
    Ascii,
    British,
    LineDrawing,
}

/// What stands for `_` and the characters after it while lines are drawn.
const LINE_DRAWING: [char; 32] = [
    ' ', '◆', '▒', '␉', '␌', '␍', '␊', '°', '±', '␤', '␋', '┘', '┐', '┌', '└', '┼', '⎺', '⎻', '─', '⎼', '⎽',
    '├', '┤', '┴', '┬', '│', '≤', '≥', 'π', '≠', '£', '·',
];

impl Charset {
    /// The set that a designation names; sets that are no longer used are read as ASCII.
    pub(crate) fn named(last: u8) -> Self {
        match last {
            b'0' | b'2' => Self::LineDrawing,
            b'A' => Self::British,
            _ => Self::Ascii,
        }
    }

    /// The byte that designates the set.
    pub(crate) fn name(self) -> u8 {
        match self {
            Self::Ascii => b'B',
            Self::British => b'A',
            Self::LineDrawing => b'0',
        }
    }

    pub(crate) fn translate(self, character: char) -> char {
        match self {
            Self::British if character == '#' => '£',
            Self::LineDrawing => {
                let index =
                    u32::from(character).checked_sub(0x5f).and_then(|index| usize::try_from(index).ok());
                index.and_then(|index| LINE_DRAWING.get(index)).copied().unwrap_or(character)
            }
            Self::Ascii | Self::British => character,
        }
    }
}

/// Which of the two designated sets is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Shift {
    #[default]
    In,
    Out,
}

/// The designated sets and the one in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Charsets {
    pub(crate) g0: Charset,
    pub(crate) g1: Charset,
    pub(crate) shift: Shift,
}

impl Charsets {
    pub(crate) fn current(self) -> Charset {
        match self.shift {
            Shift::In => self.g0,
            Shift::Out => self.g1,
        }
    }
}
