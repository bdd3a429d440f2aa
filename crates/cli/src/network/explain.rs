//! `agentbox policy`: what may leave a sandbox, changed, shown, and explained by the same function that decides.

use std::io::{self, Write as _};
use std::net::IpAddr;
use std::num::NonZeroU16;
use std::process::ExitCode;

use engine::{Engine, Held};
use policy::network::{
    HostError, HostName, HttpPath, HttpRuleError, Method, NetworkPolicy, Refusal, Request, Verdict,
};
use serde_json::json;

use crate::arguments::{Explain, Policy, PolicyAction, SetPolicy, ShowPolicy};
use crate::failure::{Failure, escape};
use crate::output::{json_line, print};
use crate::stay::in_runtime;

use super::{option, resolve_change, shown};

pub(crate) fn policy(policy: Policy) -> Result<ExitCode, Failure> {
    match policy.action {
        PolicyAction::Show(show) => self::show(&show),
        PolicyAction::Set(set) => self::set(*set),
        PolicyAction::Explain(explain) => self::explain(&explain),
    }
}

fn show(show: &ShowPolicy) -> Result<ExitCode, Failure> {
    let engine = Engine::open()?;
    let policy = engine.policy(&engine.find(&show.sandbox)?)?;
    if show.json {
        return print(&json_line(&shown(&policy)));
    }
    let NetworkPolicy { mode, allow, deny, private, services, upstream, bandwidth } = &policy;
    let mut text = format!("network        {}\n", mode.name());
    deny.iter().for_each(|target| text.push_str(&format!("deny           {target}\n")));
    allow.iter().for_each(|rule| text.push_str(&format!("allow          {rule}\n")));
    private.iter().for_each(|rule| text.push_str(&format!("allow-private  {rule}\n")));
    services.iter().for_each(|service| text.push_str(&format!("service        {service}\n")));
    upstream.iter().for_each(|proxy| text.push_str(&format!("upstream-proxy {proxy}\n")));
    bandwidth.iter().for_each(|size| text.push_str(&format!("bandwidth {size}\n")));
    print(&escape_lines(&text))
}

/// What comes from a file is inert on a terminal, line by line.
fn escape_lines(text: &str) -> String {
    text.lines().map(|line| escape(line) + "\n").collect()
}

fn set(set: SetPolicy) -> Result<ExitCode, Failure> {
    let engine = Engine::open()?;
    let id = engine.find(&set.sandbox)?;
    let policy = resolve_change(set.network)?;
    if let Held::OnPorts { open, closed } = in_runtime(async { Ok(engine.set_policy(&id, policy).await?) })? {
        let _ = writeln!(io::stderr(), "warning: {}", not_yet(&open, &closed));
    }
    Ok(ExitCode::SUCCESS)
}

/// What of a policy waits for the next start, on a kernel without rules to lead every port by.
fn not_yet(open: &[u16], closed: &[u16]) -> String {
    let list = |ports: &[u16]| ports.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let open = format!(
        "only ports {} lead out of this sandbox, as the kernel has no nftables with tproxy",
        list(open)
    );
    match closed {
        [] => format!("{open}; a port is served that a rule names when the sandbox starts"),
        closed => format!("{open}; {} will be reached once it is started anew", list(closed)),
    }
}

/// What is to be reached, as it was written.
struct Meant {
    host: Host,
    port: NonZeroU16,
    /// For the address of a page: how it is asked for.
    page: Option<(Method, HttpPath)>,
}

enum Host {
    Name(HostName),
    Address(IpAddr),
}

fn explain(explain: &Explain) -> Result<ExitCode, Failure> {
    let engine = Engine::open()?;
    let policy = engine.policy(&engine.find(&explain.sandbox)?)?;
    let meant = read(explain)?;
    let verdict = match (&meant.host, &meant.page) {
        (Host::Name(name), None) => policy.decide(&Request::Connect(name, meant.port)),
        (Host::Name(name), Some((method, path))) => {
            policy.decide(&Request::Http(name, meant.port, method, path))
        }
        (Host::Address(address), _) => policy.decide(&Request::Raw(*address, meant.port)),
    };
    let host = match &meant.host {
        Host::Name(name) => name.to_string(),
        Host::Address(address) => address.to_string(),
    };
    let port = meant.port.get();
    let (word, rule, refusal) = describe(verdict);
    let hint = refusal.and_then(|refusal| option(refusal, &host, port));
    let text = if explain.json {
        let allowed = refusal.is_none();
        json_line(&json!({
            "host": host, "port": port, "allowed": allowed, "verdict": word, "rule": rule, "hint": hint
        }))
    } else {
        let place = if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
        let by = rule.map(|rule| format!(" by {rule}")).unwrap_or_default();
        let why = refusal.map(|refusal| format!("refused: {refusal} ({})", refusal.code()));
        let why = why.unwrap_or_else(|| "allowed".to_owned());
        let hint = hint.map(|hint| format!("\nto allow: {hint}")).unwrap_or_default();
        format!("{place}: {why}{by}{hint}\n")
    };
    print(&text)?;
    Ok(if refusal.is_none() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The word for a verdict, what it comes from, and why not.
fn describe(verdict: Verdict<'_>) -> (&'static str, Option<String>, Option<Refusal>) {
    match verdict {
        Verdict::Rule(rule) => ("allowed", Some(format!("--allow {rule}")), None),
        Verdict::Private(rule) => ("allowed", Some(format!("--allow-private {rule}")), None),
        Verdict::Public => ("allowed", Some("--full-network".to_owned()), None),
        Verdict::Service(service) => ("allowed", Some(format!("--service {service}")), None),
        Verdict::Refused(refusal) => (refusal.code(), None, Some(refusal)),
    }
}

fn read(explain: &Explain) -> Result<Meant, Failure> {
    const HTTPS: NonZeroU16 = NonZeroU16::new(443).expect("443 is not zero");
    const HTTP: NonZeroU16 = NonZeroU16::new(80).expect("80 is not zero");
    let unusable = |error: String| {
        Failure::new(format!("'{}' is nothing that can be reached", escape(&explain.target)))
            .cause(error)
            .hint("write HOST, HOST:PORT, ADDRESS:PORT or the address of a page")
    };
    let plain = explain.target.strip_prefix("http://");
    let secret = explain.target.strip_prefix("https://");
    let rest = plain.or(secret).unwrap_or(&explain.target);
    let is_page = plain.is_some() || secret.is_some();
    let (place, path) = match rest.find('/') {
        Some(at) if is_page => rest.split_at(at),
        _ => (rest, "/"),
    };
    let usual = if plain.is_some() { HTTP } else { HTTPS };
    let (host, port) = place_of(place, usual).map_err(unusable)?;
    // What is asked over TLS is not seen.
    let page = match plain {
        Some(_) => {
            let unusable = |error: HttpRuleError| unusable(error.to_string());
            Some((explain.method.parse().map_err(unusable)?, path.parse().map_err(unusable)?))
        }
        None => None,
    };
    Ok(Meant { host, port, page })
}

fn place_of(place: &str, usual: NonZeroU16) -> Result<(Host, NonZeroU16), String> {
    let (host, port) = match place.strip_prefix('[') {
        Some(rest) => {
            let (address, rest) = rest.split_once(']').ok_or("a bracket is open")?;
            (address, rest.strip_prefix(':'))
        }
        None => match place.rsplit_once(':') {
            Some((host, port)) if !host.contains(':') => (host, Some(port)),
            _ => (place, None),
        },
    };
    let port = match port {
        Some(port) => port.parse().map_err(|_| format!("'{}' is no port", escape(port)))?,
        None => usual,
    };
    let host = match host.parse() {
        Ok(address) => Host::Address(address),
        Err(_) => Host::Name(host.parse().map_err(|error: HostError| error.to_string())?),
    };
    Ok((host, port))
}
