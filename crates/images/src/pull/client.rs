//! One registry, spoken to by HTTP: who we are to it, and what it answers.

use std::io::Read as _;
use std::sync::{Mutex, PoisonError};

use ureq::http::{self, Uri};
use ureq::{Agent, Body, ResponseExt as _};

use super::challenge::Challenge;
use super::connection::{self, Connection};
use super::credentials::{self, Found, Login};
use super::token::Wanted;
use super::{Pull, Transport};
use crate::digest::Digest;
use crate::document::{DOCKER_INDEX, DOCKER_MANIFEST, LARGEST_MANIFEST, OCI_INDEX, OCI_MANIFEST};
use crate::error::ImageError;
use crate::weaken::Guard;

/// The largest answer that is looked at for a reason.
const LARGEST_REASON: u64 = 1 << 20;
/// As much as is shown of what it says.
const SHOWN: usize = 200;

/// A registry, and one of its repositories.
pub(super) struct Client {
    connection: Connection,
    pub(super) registry: String,
    base: String,
    repository: String,
    login: Option<Found>,
    /// What goes with each question, once it is known.
    authorization: Mutex<Option<String>>,
}

pub(super) type Answer = http::Response<Body>;

impl Client {
    pub(super) fn new(pull: &Pull<'_>) -> Result<Self, ImageError> {
        let registry = pull.reference.registry().to_owned();
        // Docker's own registry has another host than its name.
        let host = if registry == "docker.io" { "registry-1.docker.io" } else { registry.as_str() };
        let connection = Connection::new(pull, host)?;
        let scheme = match connection.transport {
            Transport::Plain => "http",
            Transport::Secure => "https",
        };
        let base = format!("{scheme}://{host}/v2/{}", pull.reference.repository());
        let login = credentials::find(&pull.credentials, pull.reference)?;
        let repository = pull.reference.repository().to_owned();
        Ok(Self { connection, registry, base, repository, login, authorization: Mutex::new(None) })
    }

    pub(super) const fn agent(&self) -> &Agent {
        &self.connection.agent
    }

    pub(super) const fn transport(&self) -> Transport {
        self.connection.transport
    }

    pub(super) fn login(&self) -> Option<&Login> {
        self.login.as_ref().map(|found| &found.login)
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
        // Whoever the registry has sent us to may ask for nothing of its.
        if Guard::Secrets.stands() && !self.is_of_registry(answer.get_uri()) {
            return Err(self.refused(what, answer));
        }
        let said = answer.headers().get_all("www-authenticate").iter();
        let challenge = Challenge::choose(said.filter_map(|header| header.to_str().ok()));
        let authorization = match (challenge, self.login()) {
            (Some(Challenge::Basic), Some(Login::Password(password))) => password.reveal().to_owned(),
            (Some(Challenge::Bearer { realm, service, scope }), _) => {
                let scope = scope.unwrap_or_else(|| format!("repository:{}:pull", self.repository));
                let wanted = Wanted { realm: &realm, service: service.as_deref(), scope: &scope };
                format!("Bearer {}", self.token(&wanted)?)
            }
            _ => return Err(self.refused(what, answer)),
        };
        *self.authorization.lock().unwrap_or_else(PoisonError::into_inner) = Some(authorization);
        self.ask_once(path, headers)
    }

    fn is_of_registry(&self, uri: &Uri) -> bool {
        let base = self.base.parse::<Uri>().ok();
        base.is_some_and(|base| base.scheme() == uri.scheme() && base.authority() == uri.authority())
    }

    fn ask_once(&self, path: &str, headers: &[(&str, &str)]) -> Result<Answer, ImageError> {
        let mut request = self.agent().get(format!("{}/{path}", self.base));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if let Some(authorization) = &*self.authorization.lock().unwrap_or_else(PoisonError::into_inner) {
            request = request.header("Authorization", authorization);
        }
        request.call().map_err(|error| self.lost(error))
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
        let _ = answer.body_mut().as_reader().take(LARGEST_REASON).read_to_end(&mut bytes);
        let said =
            serde_json::from_slice::<Said>(&bytes).ok().and_then(|said| said.errors.into_iter().next());
        let said = said.map(|Line { code, message }| {
            let text: String = format!(": {code}: {message}").chars().take(SHOWN).collect();
            text.escape_debug().to_string()
        });
        let status = format!("{}{}", answer.status(), said.unwrap_or_default());
        let login = self.login.as_ref().map(|found| found.source.clone());
        ImageError::Registry { registry: self.registry.clone(), what: what.to_owned(), status, login }
    }

    pub(super) fn lost(&self, error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> ImageError {
        let (registry, source) = (self.registry.clone(), error.into());
        match connection::tls_problem(&*source) {
            Some(rustls::Error::InvalidCertificate(_)) => ImageError::Certificate { registry, source },
            _ => ImageError::Unreachable { registry, source },
        }
    }
}
