//! Where a name leads, asked of the host's own resolvers, and only when somebody is about to be dialled.

use std::fs;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use hickory_resolver::TokioResolver;
use hickory_resolver::config::{LookupIpStrategy, ResolveHosts};
use policy::network::{HostName, Refusal};

/// The host's own words about it.
const CONFIGURATION: &str = "/etc/resolv.conf";

/// How long one resolver may take for an answer, and how often it is asked.
const PATIENCE: Duration = Duration::from_secs(3);
const ATTEMPTS: usize = 2;

/// The host's resolvers.
#[derive(Debug, Default)]
pub(crate) struct Resolver {
    asked: Mutex<Option<Asked>>,
}

/// Those that were asked last, and of when the configuration was that named them.
#[derive(Debug)]
struct Asked {
    resolver: Arc<TokioResolver>,
    changed: Option<SystemTime>,
}

impl Resolver {
    /// The addresses of a host.
    pub(crate) async fn resolve(&self, name: &HostName) -> Result<Vec<IpAddr>, Refusal> {
        let resolver = self.current().ok_or(Refusal::NotResolved)?;
        // With a dot at its end it is this name and no other: none that begins with it is tried.
        match resolver.lookup_ip(format!("{name}.")).await {
            Ok(found) => Ok(found.iter().collect()),
            Err(error) if error.is_no_records_found() => Err(Refusal::NoSuchHost),
            Err(_) => Err(Refusal::NotResolved),
        }
    }

    /// The resolvers of now: the host may be in another network than it was.
    fn current(&self) -> Option<Arc<TokioResolver>> {
        let changed = fs::metadata(CONFIGURATION).and_then(|file| file.modified()).ok();
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(asked) = asked.as_ref().filter(|asked| asked.changed == changed) {
            return Some(Arc::clone(&asked.resolver));
        }
        let mut builder = TokioResolver::builder_tokio().ok()?;
        let options = builder.options_mut();
        options.ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
        options.use_hosts_file = ResolveHosts::Always;
        options.timeout = PATIENCE;
        options.attempts = ATTEMPTS;
        let resolver = Arc::new(builder.build().ok()?);
        *asked = Some(Asked { resolver: Arc::clone(&resolver), changed });
        Some(resolver)
    }
}
