//! What is said of the walls around a sandbox's network. That the owner opened one is no gap of the machine's, and is said
//! all the same.

use policy::network::{Mode, NetworkPolicy};
use policy::{Report, Wall};

/// The hint of walls that the owner has chosen to do without.
pub(crate) const LEAVE_OUT_FULL: &str = "leave --full-network out, and name with --allow what is needed";
pub(crate) const LEAVE_OUT_UPSTREAM: &str = "leave --upstream-proxy out where names can be resolved here";
pub(crate) const LEAVE_OUT_PRIVATE: &str = "leave --allow-private out";

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
