//! What the supervisor may ask of its keeper, and what it hears back. A byte each way: there is nothing to
//! parse, and what is not on the list ends the sandbox.

/// One byte from the supervisor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Plea {
    /// End the sandbox.
    End = b'E',
    /// Whether the memory limit has killed anything since the last such question.
    OutOfMemory = b'M',
}

impl Plea {
    /// Reads a byte; none other than these is a plea.
    #[must_use]
    pub const fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            b'E' => Some(Self::End),
            b'M' => Some(Self::OutOfMemory),
            _ => None,
        }
    }
}

/// One byte back, to [`Plea::OutOfMemory`] alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Answer {
    /// It has.
    Yes = b'y',
    /// It has not.
    No = b'n',
}

impl Answer {
    /// Reads a byte.
    #[must_use]
    pub const fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            b'y' => Some(Self::Yes),
            b'n' => Some(Self::No),
            _ => None,
        }
    }
}
