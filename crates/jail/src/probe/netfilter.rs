//! The rules by which the gateway gets every connection of a sandbox, given to the kernel in a network namespace of its
//! own.

use policy::State;
use rustix::net::netlink::NETFILTER;

use super::trial::{Refusal, Trial};
use super::{Finding, Probe};
use crate::netlink::tell;
use crate::network::{self, Place};

/// Without them there is a network all the same, on the ports that its policy names.
pub(super) fn tproxy() -> Result<Finding, Refusal> {
    let rules = network::rules(Place::Here);
    let add = || tell(Some(NETFILTER), &rules);
    let refusal = match Trial::namespaces(libc::CLONE_NEWNET).run(&[("add leading nftables rules", &add)]) {
        Ok(()) => return Ok(Finding::given(Probe::NftTproxy.meaning())),
        Err(refusal) => refusal,
    };
    match refusal.source.raw_os_error() {
        Some(errno) if network::are_rules_absent(errno) => {
            let lack = network::lack(&refusal.source);
            let detail =
                format!("{lack}: a network leads out only on ports 80, 443 and those that its policy names");
            Ok(Finding { state: State::Weaker, detail, errno: Some(errno) })
        }
        _ => Err(refusal),
    }
}
