//! What is asked of a proxy: a tunnel to a host, or a request that names its host. Both are read by the rules by which
//! everything else is read.

use std::num::NonZeroU16;

use super::authority::{Authority, Host};
use super::fields::{Fields, Framing, Malformed};
use super::head::{AUTHORIZATION, Head, Line};

/// What a client asks of a proxy.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Errand<'bytes> {
    /// The words that say that it may.
    pub(crate) authorization: Option<&'bytes [u8]>,
    pub(crate) aim: Aim,
}

/// Where it wants to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Aim {
    /// To a host, to speak with it as it likes.
    Tunnel(Host, NonZeroU16),
    /// To a host, with this request.
    Request(Host, NonZeroU16),
    /// To a host with a request that only whoever speaks TLS could pass on.
    Secure,
    /// To the proxy itself.
    Here,
}

impl<'bytes> Errand<'bytes> {
    /// Reads a head, from its first byte to the empty line; none where it has no single meaning.
    pub(crate) fn parse(bytes: &'bytes [u8]) -> Option<Self> {
        Self::read(bytes).ok()
    }

    fn read(bytes: &'bytes [u8]) -> Result<Self, Malformed> {
        let (line, fields) = Line::parse(bytes)?;
        let authorization = fields.only(AUTHORIZATION)?;
        let aim = match line.target {
            _ if line.verb == "CONNECT" => tunnel(&line, &fields)?,
            target if target.starts_with('/') || target == "*" => Aim::Here,
            target if has_scheme(target, "https") => Aim::Secure,
            _ => {
                let head = Head::parse(bytes)?;
                Aim::Request(head.host().host.clone(), head.host().http_port())
            }
        };
        Ok(Self { authorization, aim })
    }
}

fn has_scheme(target: &str, scheme: &str) -> bool {
    target.split_once("://").is_some_and(|(own, _)| own.eq_ignore_ascii_case(scheme))
}

/// A tunnel is asked for by host and port alone. Some name the host a second time, and then it is the same; there is no body,
/// as what follows is for the host.
fn tunnel(line: &Line<'_>, fields: &Fields<'_>) -> Result<Aim, Malformed> {
    let Authority { host, port } = Authority::parse(line.target.as_bytes())?;
    let port = port.ok_or(Malformed)?;
    if let Some(said) = fields.only("host")? {
        let said = Authority::parse(said)?;
        if said.host != host || said.port.is_some_and(|said| said != port) {
            return Err(Malformed);
        }
    }
    let has_body = !matches!(fields.framing(line.version)?, None | Some(Framing::Exactly(0)));
    if has_body || fields.only("upgrade")?.is_some() || fields.only("expect")?.is_some() {
        return Err(Malformed);
    }
    fields.options()?;
    Ok(Aim::Tunnel(host, port))
}

#[cfg(test)]
mod tests;
