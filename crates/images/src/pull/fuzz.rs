//! What strangers say on the way to an image, opened to the fuzzer.

use super::challenge::Challenge;
use super::{credentials, token};

/// What a registry wants before it answers. Whom it names is somebody who can be asked by HTTP.
pub fn challenge(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Some(Challenge::Bearer { realm, .. }) = Challenge::choose(text.lines()) {
        assert!(realm.starts_with("https://") || realm.starts_with("http://"), "{realm:?}");
        assert!(!realm.contains(char::is_control), "{realm:?}");
    }
}

/// Files of passwords, and answers with tokens.
pub fn secrets(bytes: &[u8]) {
    credentials::fuzz(bytes);
    token::fuzz(bytes);
}
