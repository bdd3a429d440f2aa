//! The audit log: what happened in a sandbox, on record, hash-chained.
//!
//! Written by the supervisor, which is confined and has nothing but a descriptor that appends ([`Writer`]); read by
//! the owner's side ([`verify()`], [`records()`], [`follow()`]), which also makes the files ([`take_turn()`],
//! [`next_part()`]), says what a writer that was killed could not ([`conclude()`]) and removes them ([`expire()`]). Readers treat all of it as hostile: whoever wrote it may have been taken over. Bounded
//! in memory, never a path, inert when shown.
//!
//! A log is `<id>.jsonl` and, once that was full, `<id>.1.jsonl`, `<id>.2.jsonl` and so on, the oldest first. A line
//! is a record; `record.rs` says which bytes are hashed, `text.rs` how hostile bytes are escaped, `writer.rs` what
//! becomes of a write that was cut off and what is made durable when.

mod arguments;
mod error;
mod event;
mod expire;
mod hash;
mod head;
mod line;
mod parts;
mod record;
mod records;
mod text;
mod time;
mod turn;
mod verify;
mod walk;
mod words;
mod writer;

pub use arguments::{ARGUMENTS_LIMIT, Arguments};
pub use error::{ReadError, WriteError};
pub use event::{Event, Torn};
pub use expire::expire;
pub use hash::{Hash, HashError};
pub use head::{Ending, Head};
pub use line::line;
pub use parts::{Part, begin_part, open};
pub use record::{RECORD_LIMIT, Record, Recorded};
pub use records::{Follow, Records, follow, records};
pub use text::{TEXT_LIMIT, Text, TextError};
pub use time::{Time, TimeError};
pub use turn::{PARTS_LIMIT, Turn, conclude, next_part, take_turn};
pub use verify::{Broken, Flaw, Verified, verify};
pub use words::{Direction, FileOperation, Limit, OurProcess, PortChange, StopReason, TerminalChange};
pub use writer::{PART_LIMIT, Writer};
