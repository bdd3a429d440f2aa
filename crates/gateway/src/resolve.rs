//! Where a name leads, asked of the host's own resolvers, and only when somebody is about to be dialled.

use std::fs;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use hickory_resolver::TokioResolver;
use hickory_resolver::config::{LookupIpStrategy, ResolveHosts};
use policy::network::{HostName, Refusal};

/// The host's own words about it.
const CONFIGURATION: &str = "/etc/resolv.conf";

/// How long it is taken for what it was.
const A_WHILE: Duration = Duration::from_secs(1);

/// How long one resolver may take for an answer, and how often it is asked.
const PATIENCE: Duration = Duration::from_secs(3);
const ATTEMPTS: usize = 2;

/// A family of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    V4,
    V6,
}

/// The host's resolvers.
#[derive(Debug, Default)]
pub(crate) struct Resolver {
    asked: Mutex<Option<Asked>>,
}

/// Those that were asked last, and of when the configuration was that named them.
#[derive(Debug)]
struct Asked {
    /// One for each family.
    resolvers: [Arc<TokioResolver>; 2],
    changed: Option<SystemTime>,
    /// When it was last looked at.
    looked: Instant,
}

impl Resolver {
    /// The addresses of a host.
    pub(crate) async fn resolve(&self, name: &HostName, family: Family) -> Result<Vec<IpAddr>, Refusal> {
        let [v4, v6] = self.current().ok_or(Refusal::NotResolved)?;
        let resolver = match family {
            Family::V4 => v4,
            Family::V6 => v6,
        };
        // With a dot at its end it is this name and no other: none that begins with it is tried.
        match resolver.lookup_ip(format!("{name}.")).await {
            Ok(found) => Ok(found.iter().collect()),
            Err(error) if error.is_no_records_found() => Err(Refusal::NoSuchHost),
            Err(_) => Err(Refusal::NotResolved),
        }
    }

    /// The resolvers of now: the host may be in another network than it was.
    fn current(&self) -> Option<[Arc<TokioResolver>; 2]> {
        let now = Instant::now();
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(asked) = asked.as_ref()
            && now.saturating_duration_since(asked.looked) < A_WHILE
        {
            return Some(asked.resolvers.clone());
        }
        let changed = fs::metadata(CONFIGURATION).and_then(|file| file.modified()).ok();
        if let Some(asked) = asked.as_mut().filter(|asked| asked.changed == changed) {
            asked.looked = now;
            return Some(asked.resolvers.clone());
        }
        let resolvers = [resolver(LookupIpStrategy::Ipv4Only)?, resolver(LookupIpStrategy::Ipv6Only)?];
        *asked = Some(Asked { resolvers: resolvers.clone(), changed, looked: now });
        Some(resolvers)
    }
}

fn resolver(strategy: LookupIpStrategy) -> Option<Arc<TokioResolver>> {
    let mut builder = TokioResolver::builder_tokio().ok()?;
    let options = builder.options_mut();
    options.ip_strategy = strategy;
    options.use_hosts_file = ResolveHosts::Always;
    options.timeout = PATIENCE;
    options.attempts = ATTEMPTS;
    Some(Arc::new(builder.build().ok()?))
}
