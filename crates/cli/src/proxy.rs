//! `agentbox proxy`: the explicit proxy, and the tokens for it.

mod book;
mod confined;
mod serve;

use std::process::ExitCode;

use engine::{Directories, read_allowlist};
use gateway::token::{Grant, SHORTEST_KEY, SigningKey, now};
use serde_json::json;

use crate::arguments::{MintToken, Proxy, ProxyAction};
use crate::failure::Failure;
use crate::output::{json_line, print};

pub(crate) use confined::{WORD, main as confined};

/// The owner's own key.
const VARIABLE: &str = "SIGNING_KEY";

pub(crate) fn proxy(proxy: Proxy) -> Result<ExitCode, Failure> {
    match proxy.action {
        Some(ProxyAction::Token(token)) => mint(token),
        None => serve::serve(&proxy),
    }
}

/// The owner's key, or else the one that is kept.
fn key() -> Result<SigningKey, Failure> {
    let unusable = || Failure::new("cannot use the key that tokens are signed with");
    if let Some(key) = std::env::var_os(VARIABLE) {
        let hint = format!(
            "make one with `openssl rand -hex {SHORTEST_KEY}`, or leave {VARIABLE} out: a key is made and kept then"
        );
        return SigningKey::new(key.into_encoded_bytes())
            .map_err(|error| unusable().cause(format!("{VARIABLE}: {error}")).hint(hint));
    }
    SigningKey::new(Directories::open()?.signing_key()?).map_err(|error| unusable().cause(error))
}

fn mint(token: MintToken) -> Result<ExitCode, Failure> {
    let mut allow = token.allow;
    allow.extend(token.preset.into_iter().flat_map(|preset| preset.rules));
    for path in &token.allow_file {
        allow.extend(read_allowlist(path)?);
    }
    if allow.is_empty() && token.allow_private.is_empty() {
        return Err(Failure::new("the token would allow nothing")
            .hint("name what may be reached: agentbox proxy token --allow example.com"));
    }
    let issued = now();
    // A token that is valid for less than a second would have expired already.
    let expires = issued.saturating_add(token.expires.duration().as_secs().max(1));
    let (holder, deny, private) = (token.name, token.deny, token.allow_private);
    let grant = Grant { holder, allow, deny, private, issued: Some(issued), begins: None, expires };
    let text = grant.sign(&key()?).map_err(|error| {
        let hint = "allow domains with *.DOMAIN instead of many names, or make several tokens";
        Failure::new("cannot make the token").cause(error).hint(hint)
    })?;
    let proxy = format!("http://agentbox:{text}@{}", token.proxy);
    if token.json {
        return print(&json_line(&json!({"proxy": proxy, "token": text, "expires": expires})));
    }
    print(&format!("{proxy}\n"))
}
