//! The text of a token: two objects of JSON in base64, each with fields that are known and no other. A field that is not
//! understood could be there to narrow what the others say.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use policy::SandboxName;
use policy::network::{HostRule, Rule, Target};
use serde::{Deserialize, Serialize};

use super::Grant;

/// For whom tokens are; those of others with the same key are not for us.
const AUDIENCE: &str = "agentbox-proxy";

/// The one way of signing.
const ALGORITHM: &str = "HS256";
const KIND: &str = "JWT";

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    alg: String,
    #[serde(default)]
    typ: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Claims {
    aud: String,
    sub: SandboxName,
    allow: Vec<Rule>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    deny: Vec<Target>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    private: Vec<HostRule>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    iat: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    nbf: Option<u64>,
    exp: u64,
}

/// What is to be signed.
pub(super) fn write(grant: &Grant) -> String {
    let header = Header { alg: ALGORITHM.to_owned(), typ: Some(KIND.to_owned()) };
    let claims = Claims {
        aud: AUDIENCE.to_owned(),
        sub: grant.holder.clone(),
        allow: grant.allow.clone(),
        deny: grant.deny.clone(),
        private: grant.private.clone(),
        iat: grant.issued,
        nbf: grant.begins,
        exp: grant.expires,
    };
    format!("{}.{}", object(&header), object(&claims))
}

/// What was signed; none where that is no token for us.
pub(super) fn read(signed: &str) -> Option<Grant> {
    let (header, claims) = signed.split_once('.')?;
    let header: Header = serde_json::from_slice(&decode(header)?).ok()?;
    if header.alg != ALGORITHM || header.typ.is_some_and(|kind| kind != KIND) {
        return None;
    }
    let claims: Claims = serde_json::from_slice(&decode(claims)?).ok()?;
    let Claims { aud, sub: holder, allow, deny, private, iat: issued, nbf: begins, exp: expires } = claims;
    (aud == AUDIENCE).then_some(Grant { holder, allow, deny, private, issued, begins, expires })
}

/// Words and numbers alone, which always are JSON.
fn object(value: &impl Serialize) -> String {
    encode(&serde_json::to_vec(value).unwrap_or_default())
}

pub(super) fn encode(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// There is one text for each bytes, and no other is read.
pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}
