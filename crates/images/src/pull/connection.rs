//! How a registry is connected to: by TLS, except where the owner says otherwise and with this machine itself, where it is
//! found out by asking.

use std::error::Error;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use ureq::Agent;
use ureq::config::RedirectAuthHeaders;
use ureq::tls::{RootCerts, TlsConfig};

use super::certificates::Certificates;
use super::{Pull, Transport};
use crate::error::ImageError;
use crate::weaken::Guard;

/// How long a registry may take to answer at all.
const CONNECT: Duration = Duration::from_secs(20);
/// How long it may be silent.
const SILENCE: Duration = Duration::from_secs(60);
/// How long one on this machine may take to say whether it speaks TLS.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// Further than that nobody is followed.
const MOST_REDIRECTIONS: u32 = 5;

/// What the standard library says where a name leads to no address.
const NO_ADDRESS: &str = "failed to lookup address information";

/// What speaks with a registry, and how.
pub(super) struct Connection {
    pub(super) agent: Agent,
    pub(super) transport: Transport,
}

impl Connection {
    pub(super) fn new(pull: &Pull<'_>, host: &str) -> Result<Self, ImageError> {
        let certificates = Certificates::find(&pull.certificates, pull.reference.registry())?;
        let is_loopback = pull.reference.is_loopback();
        let agent = |transport| agent(transport, is_loopback, &certificates);
        let transport = match pull.transport {
            // Whoever set TLS up on this machine meant it.
            Transport::Secure if is_loopback && !speaks_tls(&agent(Transport::Secure), host) => {
                Transport::Plain
            }
            transport => transport,
        };
        Ok(Self { agent: agent(transport), transport })
    }
}

fn agent(transport: Transport, is_loopback: bool, certificates: &Certificates) -> Agent {
    let tls = TlsConfig::builder()
        .root_certs(RootCerts::new_with_certs(&certificates.roots))
        .client_cert(certificates.own.clone())
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
        .build();
    let redirections = match Guard::Secrets.stands() {
        true => RedirectAuthHeaders::Never,
        false => RedirectAuthHeaders::SameHost,
    };
    let mut config = Agent::config_builder()
        .http_status_as_error(false)
        .https_only(transport == Transport::Secure && Guard::Secrets.stands())
        .tls_config(tls)
        .user_agent(concat!("agentbox/", env!("CARGO_PKG_VERSION")))
        .accept_encoding("identity")
        .max_redirects(MOST_REDIRECTIONS)
        // A registry sends us to whoever stores its blobs, who is to learn nothing of who we are to it.
        .redirect_auth_headers(redirections)
        .timeout_connect(Some(CONNECT))
        .timeout_recv_response(Some(SILENCE))
        .timeout_per_read(Some(SILENCE));
    if is_loopback {
        config = config.proxy(None);
    }
    config.build().new_agent()
}

/// Whether TLS is spoken there, however badly: only who answers with something else may be spoken to in plain.
fn speaks_tls(agent: &Agent, host: &str) -> bool {
    let asked = agent.get(format!("https://{host}/v2/"));
    match asked.config().timeout_global(Some(HANDSHAKE)).build().call() {
        Ok(_) => true,
        Err(error) => {
            tls_problem(&error).is_some_and(|problem| !matches!(problem, rustls::Error::InvalidMessage(_)))
        }
    }
}

/// What went wrong with TLS, where that is what went wrong.
pub(super) fn tls_problem<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a rustls::Error> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<rustls::Error>() {
            return Some(found);
        }
        // An error of input that holds another one names the cause of that one as its own.
        let held = |error: &'a io::Error| error.get_ref().map(|held| held as &(dyn Error + 'static));
        next = match (error.downcast_ref::<ureq::Error>(), error.downcast_ref::<io::Error>()) {
            (Some(ureq::Error::Rustls(found)), _) => return Some(found),
            (Some(ureq::Error::Io(inner)), _) => held(inner),
            (_, Some(inner)) => held(inner),
            _ => error.source(),
        };
    }
    None
}

/// What keeps us from a registry, where that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Obstacle {
    /// There is nobody of that name.
    NoSuchHost,
    /// Nobody listens at that port.
    Refused,
    /// Somebody does, and answers with something else than TLS.
    NotTls,
    /// Something else.
    Other,
}

/// Finds out what is at the bottom of it.
pub(crate) fn obstacle(error: &(dyn Error + 'static)) -> Obstacle {
    if matches!(tls_problem(error), Some(rustls::Error::InvalidMessage(_))) {
        return Obstacle::NotTls;
    }
    let kind = match error.downcast_ref::<ureq::Error>() {
        Some(ureq::Error::HostNotFound) => return Obstacle::NoSuchHost,
        Some(ureq::Error::Io(inner)) => Some(inner.kind()),
        _ => error.downcast_ref::<io::Error>().map(io::Error::kind),
    };
    match kind {
        Some(io::ErrorKind::ConnectionRefused) => Obstacle::Refused,
        // The standard library has no kind for it.
        _ if error.to_string().contains(NO_ADDRESS) => Obstacle::NoSuchHost,
        _ => Obstacle::Other,
    }
}

impl Obstacle {
    /// What can be done about it.
    pub(crate) fn hint(self, registry: &str) -> Option<String> {
        Some(match self {
            Self::NoSuchHost => {
                format!(
                    "nobody is called {registry}: look at how it is written, and whether there is a network"
                )
            }
            Self::Refused if has_port(registry) => {
                "nobody listens there: look whether it runs, and at which port".to_owned()
            }
            Self::Refused => format!(
                "nobody listens at its port 443: write another one as in {registry}:5000/NAME; a registry that speaks plain \
                 HTTP needs --insecure"
            ),
            Self::NotTls => {
                "it speaks no TLS: add --insecure, if it is yours and nobody else is on the way".to_owned()
            }
            Self::Other => return None,
        })
    }
}

fn has_port(registry: &str) -> bool {
    registry.rsplit_once(':').is_some_and(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()))
}
