//! The part of a name that says who is asked: a host, and perhaps a port.

use std::net::{IpAddr, Ipv6Addr};

pub(super) const LONGEST_REGISTRY: usize = 253;

/// Whether the first part of a name is a registry, by docker's rule.
pub(super) fn is_host_like(text: &str) -> bool {
    text == "localhost" || text.contains(['.', ':']) || text.bytes().any(|byte| byte.is_ascii_uppercase())
}

/// Whether a host is this machine, by its name alone.
pub(crate) fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// The host of a registry, without the port.
pub(crate) fn host_of(registry: &str) -> &str {
    if registry.starts_with('[') {
        return registry.split_inclusive(']').next().unwrap_or(registry);
    }
    registry.split(':').next().unwrap_or(registry)
}

/// Whether a text is a host, with or without a port.
pub(super) fn is_registry(text: &str) -> bool {
    let host = host_of(text);
    let port = &text[host.len()..];
    let port_is_well = port.is_empty()
        || port.strip_prefix(':').is_some_and(|port| {
            port.len() <= 5
                && port.bytes().all(|byte| byte.is_ascii_digit())
                && port.parse::<u16>().is_ok_and(|port| port != 0)
        });
    let label = |label: &str| {
        let inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        (1..=63).contains(&label.len())
            && label.bytes().all(inner)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let bracketed = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let host_is_well = match bracketed {
        Some(address) => address.parse::<Ipv6Addr>().is_ok(),
        None => host.len() <= LONGEST_REGISTRY && host.split('.').all(label),
    };
    host_is_well && port_is_well
}
