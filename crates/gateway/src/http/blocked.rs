//! What a client hears of a refusal, where a response can still be given: short, and made for programs to read.

use policy::network::Refusal;
use serde::Serialize;

use super::head::Asked;

/// The status that a refusal is told with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    BadRequest,
    Forbidden,
    ProxyAuthentication,
    Timeout,
    BadGateway,
    Unavailable,
}

impl Status {
    const fn line(self) -> &'static str {
        match self {
            Self::BadRequest => "400 Bad Request",
            Self::Forbidden => "403 Forbidden",
            Self::ProxyAuthentication => {
                "407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm=\"agentbox\""
            }
            Self::Timeout => "408 Request Timeout",
            Self::BadGateway => "502 Bad Gateway",
            Self::Unavailable => "503 Service Unavailable",
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
            Self::ProxyAuthentication => "give the proxy a token, as `agentbox proxy token` prints it",
            Self::Timeout => "send the whole request without a pause",
            Self::BadGateway => "the server is at fault; ask again later",
            Self::Unavailable => "there is no room for it now; ask again later",
        }
    }
}

/// What a client is told of a refusal.
#[derive(Debug, Serialize)]
pub(crate) struct Blocked {
    error: &'static str,
    reason: &'static str,
    /// Whom the request is for, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) host: Option<String>,
    /// The rule that has decided, where one has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rule: Option<String>,
    pub(crate) hint: String,
    #[serde(skip)]
    status: Status,
}

impl Blocked {
    pub(crate) fn new(refusal: Refusal, status: Status) -> Self {
        let (reason, hint) = (refusal.code(), status.hint().to_owned());
        Self { error: "blocked", reason, host: None, rule: None, hint, status }
    }

    /// The whole response.
    pub(crate) fn response(&self) -> Vec<u8> {
        let (mut head, body) = self.parts();
        head.push_str(&body);
        head.into_bytes()
    }

    fn parts(&self) -> (String, String) {
        // Words alone, which always are JSON.
        let body = serde_json::to_string(self).unwrap_or_default() + "\n";
        let (status, length) = (self.status.line(), body.len());
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
        );
        (head, body)
    }
}

/// The response to a request, as far as that has been understood.
pub(super) fn response(refusal: Refusal, status: Status, asked: Option<&Asked>) -> Vec<u8> {
    let host = asked.map(|asked| asked.host.to_string());
    let blocked = Blocked { host, ..Blocked::new(refusal, status) };
    // Whoever asked for a head takes what follows it for the next response.
    if asked.is_some_and(|asked| asked.is_head) { blocked.parts().0.into_bytes() } else { blocked.response() }
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
