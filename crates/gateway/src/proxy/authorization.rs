//! How a token is shown: by itself, or as the password of anybody, as programs show it that know of names and passwords.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use policy::network::Refusal;

use crate::token::LONGEST_TOKEN;

/// The longest text that a token can be shown in.
const LONGEST: usize = LONGEST_TOKEN * 2;

/// The token in a field's value.
pub(crate) fn token(value: &[u8]) -> Result<String, Refusal> {
    read(value).ok_or(Refusal::TokenInvalid)
}

fn read(value: &[u8]) -> Option<String> {
    let value = std::str::from_utf8(value).ok().filter(|value| value.len() <= LONGEST)?;
    let (scheme, shown) = value.split_once(' ')?;
    match scheme {
        _ if scheme.eq_ignore_ascii_case("bearer") => Some(shown.to_owned()),
        _ if scheme.eq_ignore_ascii_case("basic") => {
            let shown = String::from_utf8(STANDARD.decode(shown).ok()?).ok()?;
            shown.split_once(':').map(|(_, password)| password.to_owned())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_shown_in_two_ways() {
        for value in ["Bearer a.b.c", "bearer a.b.c", "Basic YWdlbnRib3g6YS5iLmM=", "BASIC OmEuYi5j"] {
            assert_eq!(token(value.as_bytes()).as_deref(), Ok("a.b.c"), "{value}");
        }
        for value in
            ["", "a.b.c", "Bearer", "Digest a.b.c", "Basic a.b.c", "Basic YWdlbnRib3g=", "Basic /w=="]
        {
            assert_eq!(token(value.as_bytes()), Err(Refusal::TokenInvalid), "{value}");
        }
        let long = format!("Bearer {}", "x".repeat(LONGEST));
        assert_eq!(token(long.as_bytes()), Err(Refusal::TokenInvalid));
    }
}
