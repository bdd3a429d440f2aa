//! One registry, spoken to by HTTP: who we are to it, and what it answers.

use std::io::Read as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ureq::tls::{RootCerts, TlsConfig};
use ureq::{Agent, Body, http};

use super::challenge::Challenge;
use super::credentials::{self, Login};
use super::{Pull, Transport};
use crate::digest::Digest;
use crate::document::{DOCKER_INDEX, DOCKER_MANIFEST, LARGEST_MANIFEST, OCI_INDEX, OCI_MANIFEST};
use crate::error::ImageError;

/// How long a registry may take to answer at all.
const CONNECT: Duration = Duration::from_secs(20);
/// How long it may be silent.
const SILENCE: Duration = Duration::from_secs(60);
/// The largest answer of one that gives tokens.
const LARGEST_TOKEN: u64 = 1 << 20;
/// As much as is shown of what it says.
const SHOWN: usize = 200;

/// A registry, and one of its repositories.
pub(super) struct Client {
    agent: Agent,
    pub(super) registry: String,
    base: String,
    repository: String,
    transport: Transport,
    login: Option<Login>,
    /// What goes with each question, once it is known.
    authorization: Mutex<Option<String>>,
}

pub(super) type Answer = http::Response<Body>;

impl Client {
    pub(super) fn new(pull: &Pull<'_>) -> Result<Self, ImageError> {
        let registry = pull.reference.registry().to_owned();
        let is_loopback = pull.reference.is_loopback();
        let transport = if is_loopback { Transport::Plain } else { pull.transport };
        // Docker's own registry has another host than its name.
        let host = if registry == "docker.io" { "registry-1.docker.io" } else { registry.as_str() };
        let scheme = match transport {
            // Somebody may have set TLS up on this machine; that is found out by asking.
            Transport::Plain => "http",
            Transport::Secure => "https",
        };
        let base = format!("{scheme}://{host}/v2/{}", pull.reference.repository());
        let login = credentials::find(&pull.credentials, &registry)?;
        let agent = agent(transport, is_loopback)?;
        let repository = pull.reference.repository().to_owned();
        Ok(Self { agent, registry, base, repository, transport, login, authorization: Mutex::new(None) })
    }

    /// A manifest by tag or digest, and what the registry says it is.
    pub(super) fn manifest(
        &self,
        asked: &str,
        digest: Option<&Digest>,
    ) -> Result<(Vec<u8>, Option<String>), ImageError> {
        let accept = [OCI_INDEX, OCI_MANIFEST, DOCKER_INDEX, DOCKER_MANIFEST].join(", ");
        let what = format!("the manifest '{asked}'");
        let mut answer = self.ask(&format!("manifests/{asked}"), &[("Accept", &accept)], &what)?;
        if answer.status() != 200 {
            return Err(self.refused(&what, answer));
        }
        let header = |name: &str| answer.headers().get(name)?.to_str().ok().map(str::to_owned);
        let (media_type, said) = (header("content-type"), header("docker-content-digest"));
        let mut bytes = Vec::new();
        let read = answer.body_mut().as_reader().take(LARGEST_MANIFEST + 1).read_to_end(&mut bytes);
        read.map_err(|error| self.lost(error))?;
        if bytes.len() as u64 > LARGEST_MANIFEST {
            return Err(ImageError::TooLarge { what, most: LARGEST_MANIFEST });
        }
        let found = Digest::of(&bytes);
        let said = said.and_then(|said| said.parse::<Digest>().ok());
        match digest.or(said.as_ref()) {
            Some(expected) if *expected != found => {
                Err(ImageError::Mismatch { what, expected: expected.clone(), found })
            }
            _ => Ok((bytes, media_type.map(|text| text.split(';').next().unwrap_or("").trim().to_owned()))),
        }
    }

    /// Asks for something of the repository; once more with a token where one is wanted.
    pub(super) fn ask(&self, path: &str, headers: &[(&str, &str)], what: &str) -> Result<Answer, ImageError> {
        let answer = self.ask_once(path, headers)?;
        if answer.status() != 401 {
            return Ok(answer);
        }
        let challenge = answer.headers().get("www-authenticate").and_then(|header| header.to_str().ok());
        let Some(challenge) = challenge.and_then(Challenge::parse) else {
            return Err(self.refused(what, answer));
        };
        let authorization = match challenge {
            Challenge::Basic => match &self.login {
                Some(login) => login.basic(),
                None => return Err(self.refused(what, answer)),
            },
            Challenge::Bearer { realm, service, scope } => {
                let scope = scope.unwrap_or_else(|| format!("repository:{}:pull", self.repository));
                format!("Bearer {}", self.token(&realm, service.as_deref(), &scope)?)
            }
        };
        *self.authorization.lock().unwrap_or_else(PoisonError::into_inner) = Some(authorization);
        self.ask_once(path, headers)
    }

    fn ask_once(&self, path: &str, headers: &[(&str, &str)]) -> Result<Answer, ImageError> {
        let mut request = self.agent.get(format!("{}/{path}", self.base));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if let Some(authorization) = &*self.authorization.lock().unwrap_or_else(PoisonError::into_inner) {
            request = request.header("Authorization", authorization);
        }
        request.call().map_err(|error| self.lost(error))
    }

    /// A token from whom the registry names for that, which hears the password of the registry.
    fn token(&self, realm: &str, service: Option<&str>, scope: &str) -> Result<String, ImageError> {
        if self.transport == Transport::Secure && !realm.starts_with("https://") {
            return Err(ImageError::Insecure(format!("who gives tokens for {}", self.registry)));
        }
        let mut request = self.agent.get(realm).query("scope", scope);
        if let Some(service) = service {
            request = request.query("service", service);
        }
        if let Some(login) = &self.login {
            request = request.header("Authorization", login.basic());
        }
        let mut answer = request.call().map_err(|error| self.lost(error))?;
        if answer.status() != 200 {
            return Err(self.refused("a token", answer));
        }
        #[derive(serde::Deserialize)]
        struct Given {
            token: Option<String>,
            access_token: Option<String>,
        }
        let mut bytes = Vec::new();
        let read = answer.body_mut().as_reader().take(LARGEST_TOKEN).read_to_end(&mut bytes);
        read.map_err(|error| self.lost(error))?;
        let broken = |source| ImageError::Document { what: "what gives tokens".to_owned(), source };
        let given: Given = serde_json::from_slice(&bytes).map_err(broken)?;
        let token = given.token.or(given.access_token).filter(|token| is_token(token));
        token.ok_or(ImageError::Refused {
            what: "the token".to_owned(),
            why: "there is none, or it is no text",
        })
    }

    /// What an answer that is none comes to.
    pub(super) fn refused(&self, what: &str, mut answer: Answer) -> ImageError {
        #[derive(serde::Deserialize)]
        struct Said {
            errors: Vec<Line>,
        }
        #[derive(serde::Deserialize)]
        struct Line {
            #[serde(default)]
            code: String,
            #[serde(default)]
            message: String,
        }
        let mut bytes = Vec::new();
        let _ = answer.body_mut().as_reader().take(LARGEST_TOKEN).read_to_end(&mut bytes);
        let said =
            serde_json::from_slice::<Said>(&bytes).ok().and_then(|said| said.errors.into_iter().next());
        let said = said.map(|Line { code, message }| {
            let text: String = format!(": {code}: {message}").chars().take(SHOWN).collect();
            text.escape_debug().to_string()
        });
        let status = format!("{}{}", answer.status(), said.unwrap_or_default());
        ImageError::Registry { registry: self.registry.clone(), what: what.to_owned(), status }
    }

    pub(super) fn lost(&self, error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> ImageError {
        ImageError::Unreachable { registry: self.registry.clone(), source: error.into() }
    }
}

fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic())
}

fn agent(transport: Transport, is_loopback: bool) -> Result<Agent, ImageError> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    // The owner's certificates, so that a company's own are known, too.
    let found = rustls_native_certs::load_native_certs();
    let certificates: Vec<_> = found
        .certs
        .iter()
        .map(|certificate| ureq::tls::Certificate::from_der(certificate).to_owned())
        .collect();
    let tls = TlsConfig::builder()
        .root_certs(RootCerts::new_with_certs(&certificates))
        .unversioned_rustls_crypto_provider(provider)
        .build();
    let mut config = Agent::config_builder()
        .http_status_as_error(false)
        .https_only(transport == Transport::Secure)
        .tls_config(tls)
        .user_agent(concat!("agentbox/", env!("CARGO_PKG_VERSION")))
        .accept_encoding("identity")
        .max_redirects(5)
        .timeout_connect(Some(CONNECT))
        .timeout_recv_response(Some(SILENCE))
        .timeout_per_read(Some(SILENCE));
    if is_loopback {
        config = config.proxy(None);
    }
    Ok(config.build().new_agent())
}
