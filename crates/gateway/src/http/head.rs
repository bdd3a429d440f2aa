//! The head of a request. What is read here is all that the server will see of it, in our own words.

use std::borrow::Cow;

use policy::network::{HttpPath, HttpRuleError, Method};

use super::authority::Authority;
use super::fields::{Fields, Framing, Malformed, Options, Version, split_line};

/// The one thing that may be spoken after HTTP.
pub(super) const WEBSOCKET: &[u8] = b"websocket";

/// The lines of a message after which something else may be spoken.
pub(super) const UPGRADE_LINES: &[u8] = b"Connection: Upgrade\r\nUpgrade: websocket\r\n";

/// The field with which somebody shows to a proxy that he may use it.
pub(super) const AUTHORIZATION: &str = "proxy-authorization";

/// The line of the last message on a connection.
pub(super) const CLOSE_LINE: &[u8] = b"Connection: close\r\n";

/// The head of a request, with one meaning.
#[derive(Debug)]
pub(crate) struct Head<'bytes> {
    verb: &'bytes str,
    method: Method,
    target: Cow<'bytes, str>,
    form: Form,
    version: Version,
    host: Authority,
    framing: Option<Framing>,
    fields: Fields<'bytes>,
    options: Options<'bytes>,
    upgrade: Upgrade,
}

/// How a request names what it asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// By its path alone, as a server is asked.
    Origin,
    /// With its host, as a proxy is asked.
    Absolute,
}

/// The first line of a request.
#[derive(Debug)]
pub(super) struct Line<'bytes> {
    pub(super) verb: &'bytes str,
    method: Method,
    pub(super) target: &'bytes str,
    pub(super) version: Version,
}

impl<'bytes> Line<'bytes> {
    /// Reads it, and the fields behind it.
    pub(super) fn parse(bytes: &'bytes [u8]) -> Result<(Self, Fields<'bytes>), Malformed> {
        let (line, lines) = split_line(bytes)?;
        let line = std::str::from_utf8(line).map_err(|_| Malformed)?;
        let mut words = line.split(' ');
        let (Some(verb), Some(target), Some(version), None) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return Err(Malformed);
        };
        let method = verb.parse().map_err(|_| Malformed)?;
        let version = Version::parse(version.as_bytes())?;
        Ok((Self { verb, method, target, version }, Fields::parse(lines)?))
    }
}

/// Whether a request asks to speak something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Upgrade {
    No,
    WebSocket,
}

/// What must be known of a request to understand its answer.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) host: Authority,
    version: Version,
    /// How long its body is; none where it has none.
    pub(super) framing: Option<Framing>,
    /// It asks for a head alone.
    pub(super) is_head: bool,
    /// It is the last one on its connection.
    pub(super) closes: bool,
    pub(super) upgrade: Upgrade,
}

impl Asked {
    pub(super) fn is_old(&self) -> bool {
        self.version == Version::Old
    }
}

impl<'bytes> Head<'bytes> {
    /// Reads a head, from its first byte to the empty line.
    pub(super) fn parse(bytes: &'bytes [u8]) -> Result<Self, Malformed> {
        let (Line { verb, method, target, version }, fields) = Line::parse(bytes)?;
        let host = Authority::parse(fields.only("host")?.ok_or(Malformed)?)?;
        let (target, form) = read_target(verb, target, &host)?;
        let framing = fields.framing(version)?;
        let options = fields.options()?;
        if fields.only("expect")?.is_some_and(|value| !value.eq_ignore_ascii_case(b"100-continue")) {
            return Err(Malformed);
        }
        let upgrade = match fields.only("upgrade")? {
            None => Upgrade::No,
            Some(protocol) => {
                let has_body = !matches!(framing, None | Some(Framing::Exactly(0)));
                let is_asked = protocol.eq_ignore_ascii_case(WEBSOCKET) && options.upgrades;
                if !is_asked || has_body || verb != "GET" || version == Version::Old {
                    return Err(Malformed);
                }
                Upgrade::WebSocket
            }
        };
        Ok(Self { verb, method, target, form, version, host, framing, fields, options, upgrade })
    }

    /// How it asks.
    pub(crate) const fn method(&self) -> &Method {
        &self.method
    }

    /// What it asks for, as the server will read it.
    pub(crate) fn target(&self) -> &str {
        &self.target
    }

    /// The path of that in its one spelling, where it has one.
    pub(crate) fn path(&self) -> Result<HttpPath, HttpRuleError> {
        self.target.parse()
    }

    /// Whom it asks.
    pub(crate) const fn host(&self) -> &Authority {
        &self.host
    }

    /// How it names that.
    pub(crate) const fn form(&self) -> Form {
        self.form
    }

    /// The words that say to a proxy that it may. They never go on.
    pub(crate) fn authorization(&self) -> Option<&'bytes [u8]> {
        self.fields.only(AUTHORIZATION).ok().flatten()
    }

    pub(super) fn asked(&self) -> Asked {
        Asked {
            host: self.host.clone(),
            version: self.version,
            framing: self.framing,
            is_head: self.verb == "HEAD",
            // Only the server could keep it open for an old client, and need not.
            closes: self.options.closes || self.version == Version::Old,
            upgrade: self.upgrade,
        }
    }

    /// The head as the server reads it.
    pub(super) fn written(&self) -> Vec<u8> {
        let Self { verb, host, .. } = self;
        let (target, version) = (self.target(), self.version.name());
        let mut out = format!("{verb} {target} {version}\r\nHost: {host}\r\n").into_bytes();
        self.fields.write(&self.options, &mut out);
        out.extend(self.framing.map(Framing::line).unwrap_or_default().as_bytes());
        match self.upgrade {
            Upgrade::WebSocket => out.extend(UPGRADE_LINES),
            Upgrade::No if self.asked().closes => out.extend(CLOSE_LINE),
            Upgrade::No => {}
        }
        out.extend(b"\r\n");
        out
    }
}

/// What is asked for, without the host: that is said once, by its own field, and must be the same here.
fn read_target<'bytes>(
    verb: &str,
    target: &'bytes str,
    host: &Authority,
) -> Result<(Cow<'bytes, str>, Form), Malformed> {
    if !target.bytes().all(|byte| byte.is_ascii_graphic()) || verb == "CONNECT" {
        return Err(Malformed);
    }
    if target.starts_with('/') || (target == "*" && verb == "OPTIONS") {
        return Ok((target.into(), Form::Origin));
    }
    let (scheme, rest) = target.split_once("://").ok_or(Malformed)?;
    let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    if !scheme.eq_ignore_ascii_case("http") || !Authority::parse(authority.as_bytes())?.means(host) {
        return Err(Malformed);
    }
    let path = if path.starts_with('/') { path.into() } else { format!("/{path}").into() };
    Ok((path, Form::Absolute))
}

#[cfg(test)]
mod tests;
