//! What is said of the walls around a sandbox's network. That the owner opened one is no gap of the machine's, and is said
//! all the same.

use std::io;

use policy::network::{Mode, NetworkPolicy};
use policy::{Report, State, Wall};

/// The hint of walls that the owner has chosen to do without.
pub(crate) const LEAVE_OUT_FULL: &str = "leave --full-network out, and name with --allow what is needed";
pub(crate) const LEAVE_OUT_UPSTREAM: &str = "leave --upstream-proxy out where names can be resolved here";
pub(crate) const LEAVE_OUT_PRIVATE: &str = "leave --allow-private out";

/// The hint where the kernel has no rules for packets.
pub(crate) const LOAD: &str =
    "load the kernel's nftables: `sudo modprobe -a nf_tables nft_tproxy nft_reject_inet`";

pub(crate) fn report(report: &mut Report, policy: &NetworkPolicy) {
    let NetworkPolicy { mode, allow, private, services, upstream, .. } = policy;
    let counted = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    match mode {
        Mode::None => {
            for wall in [Wall::Egress, Wall::EgressAddresses, Wall::EgressNames] {
                report.given(wall, "there is no network");
            }
            return;
        }
        Mode::Allowlist => {
            let (rules, services) =
                (counted(allow.len() + private.len(), "rule"), counted(services.len(), "service"));
            report.given(Wall::Egress, format!("{rules} and {services} of the host"));
        }
        Mode::Full => report.missing(Wall::Egress, "every public address can be reached", LEAVE_OUT_FULL),
    }
    if let Some(proxy) = upstream {
        let detail = format!("{proxy} finds out where a name leads");
        report.weaker(Wall::EgressAddresses, detail, LEAVE_OUT_UPSTREAM);
    } else if private.is_empty() {
        report.given(Wall::EgressAddresses, Wall::EgressAddresses.meaning());
    } else {
        let names: Vec<String> = private.iter().map(ToString::to_string).collect();
        let detail = format!("{} may lead into a private network", names.join(", "));
        report.weaker(Wall::EgressAddresses, detail, LEAVE_OUT_PRIVATE);
    }
    report.given(Wall::EgressNames, Wall::EgressNames.meaning());
}

/// What the kernel lacks, and how it said so.
pub(crate) fn lack(error: &io::Error) -> String {
    format!("the kernel has no nftables with tproxy ({error})")
}

/// Says that only these ports lead out, beside what has been said of the wall.
pub(crate) fn report_ports(report: &mut Report, ports: &[u16], error: &io::Error) {
    let Some(line) = report.walls().into_iter().find(|line| line.wall == Wall::Egress).cloned() else {
        return;
    };
    let ports: Vec<String> = ports.iter().map(ToString::to_string).collect();
    let (lack, ports) = (lack(error), ports.join(", "));
    let detail = format!(
        "{}; {lack}: only ports {ports} lead out, and nothing inside can listen on them",
        line.detail
    );
    let mut instead = Report::default();
    match (line.state, line.hint) {
        (State::Missing, Some(hint)) => instead.missing(Wall::Egress, detail, format!("{hint}; {LOAD}")),
        _ => instead.weaker(Wall::Egress, detail, LOAD),
    }
    report.replace(instead);
}
