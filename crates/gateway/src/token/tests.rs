//! Isolation 39: no token counts but one that was signed here, for us, as it is, and is valid now.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

const NOW: u64 = 1_800_000_000;

fn key(byte: u8) -> SigningKey {
    SigningKey::new(vec![byte; SHORTEST_KEY]).unwrap()
}

fn grant() -> Grant {
    Grant {
        holder: "box".parse().unwrap(),
        allow: vec!["example.com".parse().unwrap(), "*.example.org:8443".parse().unwrap()],
        deny: vec!["no.example.org".parse().unwrap()],
        private: vec!["mirror.example".parse().unwrap()],
        issued: Some(NOW),
        begins: None,
        expires: NOW + 3600,
    }
}

/// A token of these two objects, signed by our key.
fn signed(header: &str, claims: &str) -> String {
    let said = format!("{}.{}", wire::encode(header.as_bytes()), wire::encode(claims.as_bytes()));
    let signature = key(1).code(&said).unwrap().finalize().into_bytes();
    format!("{said}.{}", wire::encode(&signature))
}

const HEADER: &str = r#"{"alg":"HS256","typ":"JWT"}"#;

fn claims() -> Value {
    json!({"aud": "agentbox-proxy", "sub": "box", "allow": ["example.com"], "exp": NOW + 1})
}

fn check(token: &str) -> Result<Grant, Refusal> {
    Grant::verify(token, &key(1), NOW)
}

#[test]
fn what_is_signed_is_read() {
    let token = grant().sign(&key(1)).unwrap();
    assert_eq!(check(&token), Ok(grant()));
    assert_eq!(Grant::verify(&token, &key(2), NOW), Err(Refusal::TokenInvalid));
    let policy = grant().policy();
    assert_eq!((policy.mode, policy.services.len()), (Mode::Allowlist, 0));
}

#[test]
fn a_token_counts_in_its_time() {
    let grant = Grant { begins: Some(NOW), ..grant() };
    let token = grant.sign(&key(1)).unwrap();
    let at = |now| Grant::verify(&token, &key(1), now);
    assert_eq!(at(NOW - 1), Err(Refusal::TokenNotYet));
    assert_eq!(at(NOW), Ok(grant.clone()));
    assert_eq!(at(grant.expires - 1), Ok(grant.clone()));
    assert_eq!(at(grant.expires), Err(Refusal::TokenExpired));
}

#[test]
fn only_one_header_counts() {
    let claims = claims().to_string();
    assert!(check(&signed(HEADER, &claims)).is_ok());
    assert!(check(&signed(r#"{"alg":"HS256"}"#, &claims)).is_ok());
    for header in [
        r#"{"alg":"none"}"#,
        r#"{"alg":"None","typ":"JWT"}"#,
        r#"{"alg":"hs256"}"#,
        r#"{"alg":"HS512","typ":"JWT"}"#,
        r#"{"alg":"RS256","typ":"JWT"}"#,
        r#"{"alg":["HS256"]}"#,
        r#"{"typ":"JWT"}"#,
        r#"{"alg":"HS256","typ":"JWE"}"#,
        r#"{"alg":"HS256","alg":"none"}"#,
        r#"{"alg":"HS256","kid":"1"}"#,
        r#"{"alg":"HS256","jku":"http://evil.test/"}"#,
        r#"{"alg":"HS256","crit":["x"],"x":1}"#,
        r#"{"alg":"HS256"} {}"#,
        "",
        "[]",
    ] {
        assert_eq!(check(&signed(header, &claims)), Err(Refusal::TokenInvalid), "{header}");
    }
}

#[test]
fn only_whole_claims_count() {
    for (field, value) in [
        ("aud", json!("another")),
        ("aud", json!(["agentbox-proxy"])),
        ("aud", Value::Null),
        ("sub", json!("")),
        ("sub", json!("../box")),
        ("allow", json!("example.com")),
        ("allow", json!(["*"])),
        ("allow", json!(["https://example.com/"])),
        ("allow", Value::Null),
        ("deny", json!(["a b"])),
        ("exp", Value::Null),
        ("exp", json!("never")),
        ("exp", json!(-1)),
        ("exp", json!(1e30)),
        ("nbf", json!("now")),
        ("mode", json!("full")),
        ("services", json!(["model=127.0.0.1:1"])),
    ] {
        let mut claims = claims();
        claims[field] = value;
        assert_eq!(check(&signed(HEADER, &claims.to_string())), Err(Refusal::TokenInvalid), "{claims}");
    }
    for field in ["aud", "sub", "allow", "exp"] {
        let mut claims = claims();
        claims.as_object_mut().unwrap().remove(field);
        assert_eq!(check(&signed(HEADER, &claims.to_string())), Err(Refusal::TokenInvalid), "{claims}");
    }
    let twice = claims().to_string().replacen('{', r#"{"exp":9999999999,"#, 1);
    assert_eq!(check(&signed(HEADER, &twice)), Err(Refusal::TokenInvalid));
}

#[test]
fn only_three_parts_are_a_token() {
    let token = grant().sign(&key(1)).unwrap();
    let [header, claims, signature] = token.split('.').collect::<Vec<_>>().try_into().unwrap();
    for text in [
        String::new(),
        ".".to_owned(),
        "..".to_owned(),
        format!("{header}.{claims}"),
        format!("{header}.{claims}."),
        format!("{header}..{signature}"),
        format!("{token}."),
        format!("{token}.x"),
        format!("{token}="),
        format!(" {token}"),
        format!("{}.{claims}.", wire::encode(br#"{"alg":"none"}"#)),
        format!("{}.{claims}.{signature}", wire::encode(br#"{"alg":"none"}"#)),
        token.replace('-', "+").replace('_', "/") + "A",
        "x".repeat(LONGEST_TOKEN + 1),
    ] {
        assert_eq!(check(&text), Err(Refusal::TokenInvalid), "{text}");
    }
}

#[test]
fn what_is_too_short_or_too_long_is_refused() {
    assert_eq!(SigningKey::new(vec![7; 31]).unwrap_err(), ShortKey(31));
    assert_eq!(format!("{:?}", key(7)), "SigningKey");
    let allow = (0..1000).map(|number| format!("host-{number}.example.com").parse().unwrap()).collect();
    assert!(Grant { allow, ..grant() }.sign(&key(1)).is_err());
}

proptest! {
    #[test]
    fn no_bit_of_a_token_can_be_another(at in any::<prop::sample::Index>(), bit in 0u8..7) {
        let token = grant().sign(&key(1)).unwrap();
        let mut bytes = token.into_bytes();
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        let changed = String::from_utf8(bytes).unwrap();
        prop_assert_eq!(check(&changed), Err(Refusal::TokenInvalid));
    }

    #[test]
    fn no_text_is_a_token_by_chance(text in "[A-Za-z0-9_.-]{0,200}|\\PC{0,60}") {
        prop_assert_eq!(check(&text), Err(Refusal::TokenInvalid));
    }
}
