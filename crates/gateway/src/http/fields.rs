//! The lines of a head. They are read as strictly as they can be written: whoever is lenient reads something else than the
//! next one does, and that is how a request hides in another.

/// The longest head.
pub(super) const LONGEST_HEAD: usize = 64 * 1024;

/// The most lines of fields in a head.
const MOST_LINES: usize = 128;

/// The most things that one connection's fields can name.
const MOST_OPTIONS: usize = 32;

/// Fields that say where a message ends and whom it is for. They are read here and written anew.
const DECIDING: [&str; 3] = ["host", "content-length", "transfer-encoding"];

/// Fields that are for the next hop alone. Trailers are not passed on, so that nobody is told of them either.
const HOP_BY_HOP: [&str; 8] = [
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "upgrade",
];

/// Fields that a message means something else without. To have them taken out on the way is an attack.
const ESSENTIAL: [&str; 14] = [
    "authorization",
    "cache-control",
    "content-encoding",
    "content-range",
    "content-type",
    "cookie",
    "date",
    "expect",
    "expires",
    "location",
    "origin",
    "range",
    "set-cookie",
    "vary",
];

/// What has no single meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed;

/// The version that a message is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    /// 1.0, in which a connection is for one message.
    Old,
    /// 1.1.
    Current,
}

/// How long a body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// So many bytes.
    Exactly(u64),
    /// As its chunks say.
    Chunked,
    /// Until the connection ends.
    UntilEnd,
}

/// What a message says about its connection.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Options<'bytes> {
    /// It is the last one.
    pub(super) closes: bool,
    /// Something else may be spoken after it.
    pub(super) upgrades: bool,
    /// Fields that are for the next hop alone.
    nominated: Vec<&'bytes str>,
}

#[derive(Clone, Copy, Debug)]
struct Field<'bytes> {
    name: &'bytes str,
    value: &'bytes [u8],
}

/// All fields of a message, in their order.
#[derive(Debug)]
pub(super) struct Fields<'bytes>(Vec<Field<'bytes>>);

/// Where the first empty line ends; none while it is not there. What was searched before is not searched again, but for
/// its last byte. An end of a line that some would take for one and others not is found at once.
pub(super) fn find_end(bytes: &[u8], searched: usize) -> Result<Option<usize>, Malformed> {
    for (at, byte) in bytes.iter().enumerate().skip(searched.saturating_sub(1)) {
        let (before, after) = (at.checked_sub(1).and_then(|at| bytes.get(at)), bytes.get(at + 1));
        match byte {
            b'\r' if after.is_some_and(|after| *after != b'\n') => return Err(Malformed),
            b'\n' if before != Some(&b'\r') => return Err(Malformed),
            b'\n' if bytes[..at].ends_with(b"\r\n\r") => return Ok(Some(at + 1)),
            // Nothing stands before a message, not even an empty line.
            b'\n' if at == 1 => return Err(Malformed),
            0 => return Err(Malformed),
            _ => {}
        }
    }
    Ok(None)
}

/// The first line, and those behind it.
pub(super) fn split_line(bytes: &[u8]) -> Result<(&[u8], &[u8]), Malformed> {
    let end = bytes.windows(2).position(|two| two == b"\r\n").ok_or(Malformed)?;
    Ok((&bytes[..end], &bytes[end + 2..]))
}

/// Whether a value or a phrase holds nothing that could end it.
pub(super) fn is_text(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| matches!(byte, b'\t' | b' '..=b'~' | 0x80..))
}

fn is_token(name: &[u8]) -> bool {
    let is_letter = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    !name.is_empty() && name.iter().all(is_letter)
}

fn is_one_of(name: &str, names: &[&str]) -> bool {
    names.iter().any(|one| one.eq_ignore_ascii_case(name))
}

impl Version {
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        match bytes {
            b"HTTP/1.0" => Ok(Self::Old),
            b"HTTP/1.1" => Ok(Self::Current),
            _ => Err(Malformed),
        }
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Old => "HTTP/1.0",
            Self::Current => "HTTP/1.1",
        }
    }
}

impl Framing {
    /// The line that says it.
    pub(super) fn line(self) -> String {
        match self {
            Self::Exactly(count) => format!("Content-Length: {count}\r\n"),
            Self::Chunked => "Transfer-Encoding: chunked\r\n".to_owned(),
            Self::UntilEnd => String::new(),
        }
    }
}

impl<'bytes> Fields<'bytes> {
    /// Reads lines up to the empty one, which is the last.
    pub(super) fn parse(mut lines: &'bytes [u8]) -> Result<Self, Malformed> {
        let mut fields = Vec::new();
        loop {
            let (line, rest) = split_line(lines)?;
            if line.is_empty() {
                return if rest.is_empty() { Ok(Self(fields)) } else { Err(Malformed) };
            }
            if fields.len() == MOST_LINES {
                return Err(Malformed);
            }
            fields.push(Field::parse(line)?);
            lines = rest;
        }
    }

    /// The value of a field that there may be one of.
    pub(super) fn only(&self, name: &str) -> Result<Option<&'bytes [u8]>, Malformed> {
        let mut values = self.0.iter().filter(|field| field.name.eq_ignore_ascii_case(name));
        let value = values.next().map(|field| field.value);
        if values.next().is_some() { Err(Malformed) } else { Ok(value) }
    }

    /// How long the body is, where that is said. To say it twice is refused also where both say the same: that it is
    /// seen by everybody is not certain.
    pub(super) fn framing(&self, version: Version) -> Result<Option<Framing>, Malformed> {
        match (self.only("content-length")?, self.only("transfer-encoding")?) {
            (None, None) => Ok(None),
            (Some(count), None) => number(count).map(|count| Some(Framing::Exactly(count))).ok_or(Malformed),
            (None, Some(coding))
                if version == Version::Current && coding.eq_ignore_ascii_case(b"chunked") =>
            {
                Ok(Some(Framing::Chunked))
            }
            _ => Err(Malformed),
        }
    }

    /// What is said about the connection.
    pub(super) fn options(&self) -> Result<Options<'bytes>, Malformed> {
        let mut options = Options::default();
        let fields = self.0.iter().filter(|field| field.name.eq_ignore_ascii_case("connection"));
        let words = fields.flat_map(|field| field.value.split(|byte| *byte == b','));
        for word in words.map(<[u8]>::trim_ascii).filter(|word| !word.is_empty()) {
            let word = std::str::from_utf8(word).ok().filter(|word| is_token(word.as_bytes()));
            match word.ok_or(Malformed)? {
                word if word.eq_ignore_ascii_case("close") => options.closes = true,
                word if word.eq_ignore_ascii_case("upgrade") => options.upgrades = true,
                word if is_one_of(word, &DECIDING) || is_one_of(word, &ESSENTIAL) => return Err(Malformed),
                _ if options.nominated.len() == MOST_OPTIONS => return Err(Malformed),
                word => options.nominated.push(word),
            }
        }
        Ok(options)
    }

    /// Whether any of them says where a message ends, or whom it is for.
    pub(super) fn decide(&self) -> bool {
        self.0.iter().any(|field| is_one_of(field.name, &DECIDING))
    }

    /// Writes those that are for whoever is at the end.
    pub(super) fn write(&self, options: &Options<'_>, out: &mut Vec<u8>) {
        let stays = |name| is_one_of(name, &DECIDING) || is_one_of(name, &HOP_BY_HOP);
        for Field { name, value } in &self.0 {
            if !stays(name) && !is_one_of(name, &options.nominated) {
                out.extend(name.as_bytes());
                out.extend(b": ");
                out.extend(*value);
                out.extend(b"\r\n");
            }
        }
    }
}

impl<'bytes> Field<'bytes> {
    /// Reads one line. One that goes on with the one before begins with a space, which no name has.
    fn parse(line: &'bytes [u8]) -> Result<Self, Malformed> {
        let colon = line.iter().position(|byte| *byte == b':').ok_or(Malformed)?;
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        let name =
            std::str::from_utf8(name).ok().filter(|name| is_token(name.as_bytes())).ok_or(Malformed)?;
        // Some servers take an underscore for a dash.
        let poses = name.contains('_') && is_one_of(&name.replace('_', "-"), &DECIDING);
        if poses || !is_text(&line[colon + 1..]) { Err(Malformed) } else { Ok(Self { name, value }) }
    }
}

/// A number of digits alone: `parse` would also take a sign.
fn number(bytes: &[u8]) -> Option<u64> {
    let digits =
        std::str::from_utf8(bytes).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    digits?.parse().ok()
}

#[cfg(test)]
mod tests;
