//! What a client hears of a refusal, where a response can still be given: short, and made for programs to read.

use policy::network::Refusal;

use super::head::Asked;

/// The status that a refusal is told with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    BadRequest,
    Forbidden,
    Timeout,
    BadGateway,
}

impl Status {
    const fn line(self) -> &'static str {
        match self {
            Self::BadRequest => "400 Bad Request",
            Self::Forbidden => "403 Forbidden",
            Self::Timeout => "408 Request Timeout",
            Self::BadGateway => "502 Bad Gateway",
        }
    }

    const fn hint(self) -> &'static str {
        match self {
            Self::BadRequest => {
                "send HTTP/1.1 with one Host, one length at most, and no upgrade but to websocket"
            }
            Self::Forbidden => {
                "the network policy of this sandbox does not allow it; its owner can change that"
            }
            Self::Timeout => "send the whole request without a pause",
            Self::BadGateway => "the server is at fault; ask again later",
        }
    }
}

/// The whole response. Nothing in it needs an escape: a host that has been read is made of letters, digits and a few
/// signs that mean nothing to JSON, and is short.
pub(super) fn response(refusal: Refusal, status: Status, asked: Option<&Asked>) -> Vec<u8> {
    let host = asked.map(|asked| format!(r#""host":"{}","#, asked.host)).unwrap_or_default();
    let (reason, hint) = (refusal.code(), status.hint());
    let body = format!("{{\"error\":\"blocked\",\"reason\":\"{reason}\",{host}\"hint\":\"{hint}\"}}\n");
    let mut out = format!(
        "HTTP/1.1 {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        status.line(),
        body.len()
    );
    // Whoever asked for a head takes what follows it for the next response.
    if !asked.is_some_and(|asked| asked.is_head) {
        out.push_str(&body);
    }
    out.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::head::Head;

    fn asked(bytes: &[u8]) -> Asked {
        Head::parse(bytes).unwrap().asked()
    }

    #[test]
    fn a_refusal_is_told() {
        let asked = asked(b"GET / HTTP/1.1\r\nHost: A.test:80\r\n\r\n");
        let text =
            String::from_utf8(response(Refusal::HostDiffers, Status::Forbidden, Some(&asked))).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 403 Forbidden\r\n"), "{head}");
        assert!(head.contains("\r\nConnection: close"), "{head}");
        assert!(head.contains(&format!("\r\nContent-Length: {}\r\n", body.len())), "{head}");
        assert!(
            body.starts_with(r#"{"error":"blocked","reason":"host-differs","host":"a.test:80","hint":""#)
        );
    }

    #[test]
    fn a_host_is_named_where_one_is_known() {
        let text = String::from_utf8(response(Refusal::Stalled, Status::Timeout, None)).unwrap();
        assert!(text.contains("408 Request Timeout") && !text.contains("host"), "{text}");
    }

    #[test]
    fn whoever_asks_for_a_head_gets_no_body() {
        let asked = asked(b"HEAD / HTTP/1.1\r\nHost: a.test\r\n\r\n");
        let bytes = response(Refusal::Unreachable, Status::BadGateway, Some(&asked));
        assert!(bytes.ends_with(b"\r\n\r\n"));
    }
}
