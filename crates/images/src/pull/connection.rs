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
