//! Tokens: what a registry that wants one is shown in the place of a password. Whoever gives them is named by the registry,
//! and hears the password of that registry, but never where others listen.

use std::io::Read as _;

use ureq::http::Uri;

use super::Transport;
use super::client::Client;
use super::credentials::Login;
use crate::error::ImageError;
use crate::reference;
use crate::weaken::Guard;

/// The largest answer of one that gives tokens.
const LARGEST: u64 = 1 << 20;
/// What we call ourselves there.
const CLIENT: &str = "agentbox";

/// What a token is wanted for.
pub(super) struct Wanted<'a> {
    /// Who gives it.
    pub(super) realm: &'a str,
    /// Whom it is shown to.
    pub(super) service: Option<&'a str>,
    /// What it is for.
    pub(super) scope: &'a str,
}

impl Client {
    /// Gets a token.
    pub(super) fn token(&self, wanted: &Wanted<'_>) -> Result<String, ImageError> {
        self.look_at(wanted.realm)?;
        let parameters = [("service", wanted.service), ("scope", Some(wanted.scope))];
        let parameters = parameters.into_iter().filter_map(|(name, value)| Some((name, value?)));
        let asked = match self.login() {
            Some(Login::Token(token)) => return Ok(token.reveal().to_owned()),
            Some(Login::Identity(token)) => {
                let form = [("grant_type", "refresh_token"), ("client_id", CLIENT)];
                let form = form.into_iter().chain([("refresh_token", token.reveal())]).chain(parameters);
                // It stands in the body, which must not go on to anybody else.
                self.agent().post(wanted.realm).config().max_redirects(0).build().send_form(form)
            }
            login => {
                let mut request = self.agent().get(wanted.realm).query_pairs(parameters);
                if let Some(Login::Password(password)) = login {
                    request = request.header("Authorization", password.reveal());
                }
                request.call()
            }
        };
        let mut answer = asked.map_err(|error| self.lost(error))?;
        if answer.status() != 200 {
            return Err(self.refused("a token", answer));
        }
        let mut bytes = Vec::new();
        let read = answer.body_mut().as_reader().take(LARGEST).read_to_end(&mut bytes);
        read.map_err(|error| self.lost(error))?;
        given(&bytes)
    }

    /// Refuses one that would be asked where others listen: by plain HTTP only the registry itself is asked, where it is
    /// spoken to so, and this machine by itself.
    fn look_at(&self, realm: &str) -> Result<(), ImageError> {
        let uri = realm.parse::<Uri>().ok();
        let authority = uri.as_ref().and_then(Uri::authority).filter(|found| !found.as_str().contains('@'));
        let refused =
            |host: &str| ImageError::PlainTokens { registry: self.registry.clone(), host: host.to_owned() };
        let Some(host) = authority.map(|authority| authority.host()) else { return Err(refused("nobody")) };
        let own = reference::host_of(&self.registry);
        let is_near = host == own || (reference::is_loopback(host) && reference::is_loopback(own));
        match uri.as_ref().and_then(Uri::scheme_str) {
            Some("https") => Ok(()),
            Some("http") if self.transport() == Transport::Plain && is_near => Ok(()),
            _ if !Guard::Secrets.stands() => Ok(()),
            _ => Err(refused(host)),
        }
    }
}

/// The token in an answer.
fn given(bytes: &[u8]) -> Result<String, ImageError> {
    #[derive(serde::Deserialize)]
    struct Given {
        token: Option<String>,
        access_token: Option<String>,
    }
    let broken = |source| ImageError::Document { what: "the answer with the token".to_owned(), source };
    let given: Given = serde_json::from_slice(bytes).map_err(broken)?;
    let is_token = |text: &String| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
    let token = given.token.filter(is_token).or(given.access_token.filter(is_token));
    token.ok_or(ImageError::Refused { what: "the token".to_owned(), why: "there is none, or it is no text" })
}

/// Any bytes as such an answer.
#[cfg(feature = "fuzz")]
pub(super) fn fuzz(bytes: &[u8]) {
    if let Ok(token) = given(bytes) {
        assert!(token.bytes().all(|byte| byte.is_ascii_graphic()), "it is a header");
    }
}
