//! The head of a response. The server is no friend either: what it says is read as strictly, so that the client inside
//! sees the same messages that were decided on.

use super::fields::{Fields, Framing, Malformed, Options, Version, is_text, split_line};
use super::head::{Asked, CLOSE_LINE, UPGRADE_LINES, Upgrade, WEBSOCKET};

const SWITCHING: u16 = 101;
const NO_CONTENT: u16 = 204;
const NOT_MODIFIED: u16 = 304;

/// The head of a response, with one meaning.
#[derive(Debug)]
pub(super) struct Answer<'bytes> {
    status: u16,
    reason: &'bytes [u8],
    /// What is said about the length, which can be that of a body that is not here.
    declared: Option<Framing>,
    fields: Fields<'bytes>,
    options: Options<'bytes>,
    kind: Kind,
}

/// What a response is to its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Another one follows.
    Interim,
    /// It is the last one, with a body or without.
    Final(Option<Framing>, After),
}

/// What becomes of a connection after a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum After {
    /// It goes on.
    Kept,
    /// It ends.
    Closed,
    /// Something else is spoken on it.
    Switched,
}

impl<'bytes> Answer<'bytes> {
    /// Reads the answer to a request, from its first byte to the empty line.
    pub(super) fn parse(bytes: &'bytes [u8], asked: &Asked) -> Result<Self, Malformed> {
        let (line, lines) = split_line(bytes)?;
        let (version, line) = line.split_at_checked(8).ok_or(Malformed)?;
        let version = Version::parse(version)?;
        let (status, reason) = match line {
            [b' ', status @ ..] if status.len() == 3 => (status, &b""[..]),
            [b' ', a, b, c, b' ', reason @ ..] if is_text(reason) => (&[*a, *b, *c][..], reason),
            _ => return Err(Malformed),
        };
        let status = read_status(status)?;
        let fields = Fields::parse(lines)?;
        let declared = fields.framing(version)?;
        let options = fields.options()?;
        let is_empty = matches!(declared, None | Some(Framing::Exactly(0)));
        let kind = match status {
            SWITCHING => {
                let protocol =
                    fields.only("upgrade")?.is_some_and(|name| name.eq_ignore_ascii_case(WEBSOCKET));
                let is_asked = asked.upgrade == Upgrade::WebSocket && version == Version::Current;
                if !is_asked || !protocol || !options.upgrades || !is_empty {
                    return Err(Malformed);
                }
                Kind::Final(None, After::Switched)
            }
            100..200 if is_empty => Kind::Interim,
            100..200 => return Err(Malformed),
            NO_CONTENT if !is_empty => return Err(Malformed),
            _ => {
                let has_none = asked.is_head || matches!(status, NO_CONTENT | NOT_MODIFIED);
                let body = if has_none { None } else { Some(declared.unwrap_or(Framing::UntilEnd)) };
                // A client of the old version does not know what chunks are.
                if body == Some(Framing::Chunked) && asked.is_old() {
                    return Err(Malformed);
                }
                let closes = asked.closes || options.closes || version == Version::Old;
                let closes = closes || body == Some(Framing::UntilEnd);
                Kind::Final(body, if closes { After::Closed } else { After::Kept })
            }
        };
        Ok(Self { status, reason, declared, fields, options, kind })
    }

    pub(super) const fn kind(&self) -> Kind {
        self.kind
    }

    /// The head as the client reads it.
    pub(super) fn written(&self) -> Vec<u8> {
        let mut out = format!("HTTP/1.1 {} ", self.status).into_bytes();
        out.extend(self.reason);
        out.extend(b"\r\n");
        self.fields.write(&self.options, &mut out);
        let framing = match (self.kind, self.declared) {
            (Kind::Final(Some(framing), _), _) => Some(framing),
            // The length of what would be here. That it would be in chunks helps nobody.
            (Kind::Final(None, After::Kept | After::Closed), Some(Framing::Exactly(count)))
                if self.status != NO_CONTENT =>
            {
                Some(Framing::Exactly(count))
            }
            _ => None,
        };
        out.extend(framing.map(Framing::line).unwrap_or_default().as_bytes());
        match self.kind {
            Kind::Final(_, After::Switched) => out.extend(UPGRADE_LINES),
            Kind::Final(_, After::Closed) => out.extend(CLOSE_LINE),
            Kind::Final(_, After::Kept) | Kind::Interim => {}
        }
        out.extend(b"\r\n");
        out
    }
}

/// Three digits, of which the first says what kind of answer it is.
fn read_status(digits: &[u8]) -> Result<u16, Malformed> {
    let is_number = digits.iter().all(u8::is_ascii_digit) && !digits.starts_with(b"0");
    let text = std::str::from_utf8(digits).ok().filter(|_| is_number);
    text.and_then(|text| text.parse().ok()).ok_or(Malformed)
}

#[cfg(test)]
mod tests;
