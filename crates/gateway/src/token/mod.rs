//! Tokens: who may reach what through the proxy, and until when, signed with a key that only its owner has. They are JSON
//! Web Tokens of one kind alone: what they say of how they are to be checked is compared, never obeyed.

#[cfg(feature = "fuzz")]
pub(crate) mod fuzz;
mod wire;

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use hmac::digest::KeyInit as _;
use hmac::{Hmac, Mac as _};
use policy::SandboxName;
use policy::network::{HostRule, Mode, NetworkPolicy, Refusal, Rule, Target};
use sha2::Sha256;

/// The longest token.
pub const LONGEST_TOKEN: usize = 8 * 1024;

/// The shortest key: as long as what is signed with it.
pub const SHORTEST_KEY: usize = 32;

/// The key that tokens are signed with. It is never shown.
#[derive(Clone)]
pub struct SigningKey(Vec<u8>);

/// A key that could be guessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it has {0} bytes, and {SHORTEST_KEY} are the least")]
pub struct ShortKey(usize);

/// A token that nobody would take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the token would have {0} bytes, and {LONGEST_TOKEN} are the most")]
pub struct LongToken(usize);

/// What a token says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Whom it is for: a sandbox by its id or its name, or another by any.
    pub holder: SandboxName,
    /// What may be reached.
    pub allow: Vec<Rule>,
    /// What may not, whatever allows it.
    pub deny: Vec<Target>,
    /// What may be reached, also where it is in a private network.
    pub private: Vec<HostRule>,
    /// When it was made, in seconds since 1970.
    pub issued: Option<u64>,
    /// When it begins to be valid.
    pub begins: Option<u64>,
    /// When it is valid no more.
    pub expires: u64,
}

impl SigningKey {
    /// A key of these bytes.
    pub fn new(bytes: Vec<u8>) -> Result<Self, ShortKey> {
        if bytes.len() < SHORTEST_KEY { Err(ShortKey(bytes.len())) } else { Ok(Self(bytes)) }
    }

    /// The key itself, for the process that it is handed to.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// A key of any length has a code, so that there always is one.
    fn code(&self, text: &str) -> Option<Hmac<Sha256>> {
        let mut code = Hmac::<Sha256>::new_from_slice(&self.0).ok()?;
        code.update(text.as_bytes());
        Some(code)
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("SigningKey")
    }
}

impl Grant {
    /// The token that says it.
    pub fn sign(&self, key: &SigningKey) -> Result<String, LongToken> {
        let said = wire::write(self);
        let signature = key.code(&said).map(|code| code.finalize().into_bytes().to_vec());
        let token = format!("{said}.{}", wire::encode(&signature.unwrap_or_default()));
        if token.len() > LONGEST_TOKEN { Err(LongToken(token.len())) } else { Ok(token) }
    }

    /// What a token says at this time, in seconds since 1970; or why that does not count.
    pub fn verify(token: &str, key: &SigningKey, now: u64) -> Result<Self, Refusal> {
        let grant = signed(token, key).and_then(wire::read).ok_or(Refusal::TokenInvalid)?;
        match grant {
            Self { expires, .. } if expires <= now => Err(Refusal::TokenExpired),
            Self { begins: Some(begins), .. } if begins > now => Err(Refusal::TokenNotYet),
            grant => Ok(grant),
        }
    }

    /// What may leave by it. A service of the host's is never meant by a token.
    #[must_use]
    pub fn policy(&self) -> NetworkPolicy {
        let (allow, deny, private) = (self.allow.clone(), self.deny.clone(), self.private.clone());
        NetworkPolicy { mode: Mode::Allowlist, allow, deny, private, ..NetworkPolicy::default() }
    }
}

/// What is signed, where it is with this key. That is found out before a word of it is read, and in the same time whatever
/// the signature is.
fn signed<'token>(token: &'token str, key: &SigningKey) -> Option<&'token str> {
    let (said, signature) = token.rsplit_once('.').filter(|_| token.len() <= LONGEST_TOKEN)?;
    let signature = wire::decode(signature)?;
    key.code(said)?.verify_slice(&signature).ok()?;
    Some(said)
}

/// Now, in seconds since 1970.
#[must_use]
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests;
