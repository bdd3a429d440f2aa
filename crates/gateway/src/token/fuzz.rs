//! What fuzzing sees of tokens. None counts that was not signed, and what counts is said by one text alone.

#![expect(clippy::unwrap_used, reason = "what fails here has been found")]

use hmac::Mac as _;
use policy::network::Refusal;

use super::{Grant, LONGEST_TOKEN, SHORTEST_KEY, SigningKey, wire};

/// When tokens are looked at.
const NOW: u64 = 1_800_000_000;

/// A token as it comes; and two objects, one a line, signed as a token by whoever has the key.
pub fn jwt(bytes: &[u8]) {
    let key = SigningKey::new(vec![b'k'; SHORTEST_KEY]).unwrap();
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    check(text, &key);
    let Some((header, claims)) = text.split_once('\n') else { return };
    let said = format!("{}.{}", wire::encode(header.as_bytes()), wire::encode(claims.as_bytes()));
    let signature = key.code(&said).unwrap().finalize().into_bytes();
    check(&format!("{said}.{}", wire::encode(&signature)), &key);
}

fn check(token: &str, key: &SigningKey) {
    let grant = match Grant::verify(token, key, NOW) {
        Ok(grant) => grant,
        Err(refusal) => {
            use Refusal::{TokenExpired, TokenInvalid, TokenNotYet};
            assert!(matches!(refusal, TokenExpired | TokenInvalid | TokenNotYet), "{refusal:?}");
            return;
        }
    };
    assert!(token.len() <= LONGEST_TOKEN);
    assert!(grant.expires > NOW && grant.begins.is_none_or(|begins| begins <= NOW));
    let policy = grant.policy();
    assert!(policy.services.is_empty() && policy.upstream.is_none());
    let other = SigningKey::new(vec![b'o'; SHORTEST_KEY]).unwrap();
    assert_eq!(Grant::verify(token, &other, NOW), Err(Refusal::TokenInvalid));
    // Not one letter can be another, be missing or come on top.
    for changed in [&token[1..], &token[..token.len() - 1], &format!("{token}A"), &format!("{token}=")] {
        assert_eq!(Grant::verify(changed, key, NOW), Err(Refusal::TokenInvalid), "{changed}");
    }
    for at in (0..token.len()).step_by(token.len().div_ceil(16)) {
        let letter = if token.as_bytes()[at] == b'A' { "B" } else { "A" };
        let changed = format!("{}{letter}{}", &token[..at], &token[at + 1..]);
        assert_eq!(Grant::verify(&changed, key, NOW), Err(Refusal::TokenInvalid), "{changed}");
    }
    // What is understood is said anew in the same sense, where that is not too long.
    if let Ok(again) = grant.sign(key) {
        assert_eq!(Grant::verify(&again, key, NOW), Ok(grant));
    }
}
