//! The rules by which the gateway gets every connection of a sandbox, given to the kernel in a network namespace of its
//! own.

use rustix::net::netlink::NETFILTER;

use super::trial::{Refusal, Trial};
use crate::netlink::tell;
use crate::network;

pub(super) fn redirect() -> Result<(), Refusal> {
    let rules = network::rules();
    let add = || tell(Some(NETFILTER), &rules);
    Trial::namespaces(libc::CLONE_NEWNET).run(&[("add redirecting nftables rules", &add)])
}
