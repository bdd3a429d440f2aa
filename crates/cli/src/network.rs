//! What may leave a sandbox: what the options of `run` and `policy set` mean, `agentbox policy` and `agentbox net`.

mod blocked;
mod explain;
mod show;

use std::io::{self, Write as _};

use engine::{read_allowlist, standing_rules};
use policy::network::{HOST_ALIAS, Mode, NetworkPolicy, Refusal};
use serde_json::{Value, json};

use crate::arguments::{NetworkOptions, Way};
use crate::configuration::upstream_proxy;
use crate::failure::Failure;

pub(crate) use blocked::Blocked;
pub(crate) use explain::policy;
pub(crate) use show::net;

/// What the options mean together with the lists that stand.
pub(crate) fn resolve(options: NetworkOptions) -> Result<NetworkPolicy, Failure> {
    let mode = mode(&options)?;
    if mode == Mode::Full {
        // Nobody is to overlook it.
        let _ = writeln!(
            io::stderr(),
            "warning: the whole public network is open to this sandbox; what it reads there it may obey, and what it \
             holds it can send anywhere"
        );
    }
    let mut allow = options.allow;
    allow.extend(options.preset.into_iter().flat_map(|preset| preset.rules));
    for path in &options.allow_file {
        allow.extend(read_allowlist(path)?);
    }
    if mode == Mode::Allowlist {
        allow.extend(standing_rules()?);
    }
    let (deny, private, services) = (options.deny, options.allow_private, options.service);
    for (place, service) in services.iter().enumerate() {
        if let Some(other) = services[..place].iter().find(|other| other.inside == service.inside) {
            let port = service.inside;
            return Err(Failure::new(format!(
                "'{}' and '{}' are both on port {port} inside",
                other.name, service.name
            ))
            .hint(format!(
                "give one another port there: --service {}={}@PORT",
                service.name, service.address
            )));
        }
    }
    if let (Some(size), Mode::None) = (options.bandwidth, mode) {
        return Err(Failure::new(format!("there is no network to let {size} a second through"))
            .hint("say what may be reached, as with --allow, or leave --bandwidth out"));
    }
    let upstream = match (options.upstream_proxy, mode) {
        (Some(choice), _) => choice.proxy(),
        // What does not matter is not read.
        (None, Mode::None) => None,
        (None, Mode::Allowlist | Mode::Full) => upstream_proxy()?.proxy(),
    };
    Ok(NetworkPolicy { mode, allow, deny, private, services, upstream, bandwidth: options.bandwidth })
}

/// What the options of a change mean: whoever wants nothing to leave says so.
pub(crate) fn resolve_change(options: NetworkOptions) -> Result<NetworkPolicy, Failure> {
    let is_said = options.network.is_some();
    let policy = resolve(options)?;
    if policy.mode == Mode::None && !is_said {
        return Err(Failure::new("there is nothing to change the policy to")
            .hint("say what may leave, as with --allow; --network none closes everything"));
    }
    Ok(policy)
}

/// A policy as it is printed: whoever looks over a shoulder gets no password.
pub(crate) fn shown(policy: &NetworkPolicy) -> Value {
    let mut shown = json!(policy);
    if let Some(proxy) = &policy.upstream {
        shown["upstream"] = json!(proxy.to_string());
    }
    shown
}

/// Whoever allows something wants it to be reached.
fn mode(options: &NetworkOptions) -> Result<Mode, Failure> {
    let something = !options.allow.is_empty()
        || !options.allow_file.is_empty()
        || !options.preset.is_empty()
        || !options.service.is_empty()
        || !options.allow_private.is_empty();
    match options.network {
        _ if options.full_network => Ok(Mode::Full),
        Some(Way::Full) => Ok(Mode::Full),
        Some(Way::Allowlist) => Ok(Mode::Allowlist),
        Some(Way::None) if something => {
            Err(Failure::new("something is to be reached, and the sandbox is to have no network")
                .hint("leave --network none out"))
        }
        None if something => Ok(Mode::Allowlist),
        Some(Way::None) | None => Ok(Mode::None),
    }
}

/// The option of `run` that would let somebody be reached, where one would.
pub(crate) fn option(refusal: Refusal, host: &str, port: u16) -> Option<String> {
    if host == HOST_ALIAS.to_string() {
        return Some(format!("--service NAME=127.0.0.1:{port}"));
    }
    refusal.remedy(host, port)
}
