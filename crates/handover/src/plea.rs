//! What the supervisor may ask of its keeper, and what it hears back. A byte or two each way: there is nothing to
//! parse, and what is not on the list ends the sandbox.

use std::io::{self, Read};

/// What the supervisor asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plea {
    /// End the sandbox.
    End,
    /// End the sandbox, as nothing is heard of its init any more.
    Lost,
    /// End the sandbox, as the command that it ends with has ended with this code.
    Exited(u8),
    /// End the sandbox, as its life time is over.
    Expired,
    /// End the sandbox, as nobody has used it for long enough.
    Idle,
    /// Whether the memory limit has killed anything since the last such question.
    OutOfMemory,
}

impl Plea {
    /// As it travels.
    #[must_use]
    pub fn bytes(self) -> Vec<u8> {
        match self {
            Self::End => vec![b'E'],
            Self::Lost => vec![b'L'],
            Self::Exited(code) => vec![b'X', code],
            Self::Expired => vec![b'T'],
            Self::Idle => vec![b'I'],
            Self::OutOfMemory => vec![b'M'],
        }
    }

    /// Reads one; none where the bytes are none.
    pub fn read(mut socket: impl Read) -> io::Result<Option<Self>> {
        let mut byte = [0];
        socket.read_exact(&mut byte)?;
        Ok(match byte[0] {
            b'E' => Some(Self::End),
            b'L' => Some(Self::Lost),
            b'T' => Some(Self::Expired),
            b'I' => Some(Self::Idle),
            b'M' => Some(Self::OutOfMemory),
            b'X' => {
                socket.read_exact(&mut byte)?;
                Some(Self::Exited(byte[0]))
            }
            _ => None,
        })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pleas_survive_their_bytes_and_nothing_else_is_one() {
        let ends = [Plea::End, Plea::Lost, Plea::Exited(0), Plea::Exited(255), Plea::Expired, Plea::Idle];
        for plea in ends.into_iter().chain([Plea::OutOfMemory]) {
            assert_eq!(Plea::read(plea.bytes().as_slice()).unwrap(), Some(plea));
        }
        assert_eq!(Plea::read(&b"Q"[..]).unwrap(), None);
        assert!(Plea::read(&b"X"[..]).is_err());
        assert!(Plea::read(&b""[..]).is_err());
    }
}
