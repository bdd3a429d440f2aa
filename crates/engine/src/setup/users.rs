//! What sandboxes of an ordinary user need of a machine: user namespaces, a range of ids, limits. The doctor prints the same
//! steps for each thing that it finds missing.

use std::path::Path;

use super::{SetupHow, SetupStep};
use crate::doctor::{Surroundings, lacking_limits};

/// Where profiles of AppArmor's are.
const PROFILE: &str = "/etc/apparmor.d/agentbox";

/// All of it that is missing here; root needs hardly any.
pub(super) fn needs(surroundings: &Surroundings) -> Vec<SetupStep> {
    let mut steps = Vec::new();
    if surroundings.apparmor_restricts && !Path::new(PROFILE).exists() {
        steps.extend(apparmor(surroundings));
    }
    if !surroundings.is_root() {
        steps.extend(ids(surroundings));
    }
    steps.extend(lacking_limits(surroundings));
    steps
}

/// Ubuntu gives user namespaces only to programs that a profile names. This one takes nothing else away.
pub(crate) fn apparmor(surroundings: &Surroundings) -> Vec<SetupStep> {
    let load = ["apparmor_parser", "-r", PROFILE].map(str::to_owned).to_vec();
    vec![
        SetupStep {
            why: "AppArmor gives user namespaces only to programs that a profile names".to_owned(),
            how: SetupHow::Write { path: PROFILE.into(), contents: surroundings.apparmor_profile() },
        },
        SetupStep::run("the profile holds once it is loaded", surroundings.as_root(load)),
    ]
}

/// The programs that map ids, and a range that nobody has: each where it is missing.
pub(crate) fn ids(surroundings: &Surroundings) -> Vec<SetupStep> {
    let helpers = (!surroundings.has_helpers).then(|| helpers(surroundings));
    let range = (!surroundings.has_range).then(|| {
        let (range, user) = (surroundings.free_range(), &surroundings.user);
        let argv = ["usermod", "--add-subuids", &range, "--add-subgids", &range, user];
        let argv = surroundings.as_root(argv.map(str::to_owned).to_vec());
        SetupStep::run("sandboxes have one id each without a range of them", argv)
    });
    helpers.into_iter().chain(range).collect()
}

/// The programs that map ids.
pub(crate) fn helpers(surroundings: &Surroundings) -> SetupStep {
    const WHY: &str = "newuidmap and newgidmap are not installed";
    match surroundings.install_uidmap() {
        Some(argv) => SetupStep::run(WHY, argv),
        None => {
            let packages = "install newuidmap and newgidmap (package uidmap, shadow or shadow-utils)";
            SetupStep::by_hand(WHY, [packages.to_owned()])
        }
    }
}
