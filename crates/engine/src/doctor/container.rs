//! Inside another container: how to tell, and how that one has to be started for a sandbox to start in it. The
//! engines' defaults hide system calls, refuse mounts and cover parts of /proc, and the kernel then refuses a fresh
//! /proc, which would show what is covered.

use super::Finding;
use super::surroundings::{ContainerEngine, Surroundings};

const DOCKER: &str = "docker run --security-opt seccomp=unconfined --security-opt apparmor=unconfined \
                      --security-opt systempaths=unconfined";
const PODMAN: &str =
    "podman run --security-opt seccomp=unconfined --security-opt label=disable --security-opt unmask=ALL";
const KUBERNETES: &str = "in the pod: `hostUsers: false`, and in the container's securityContext: \
                          `procMount: Unmasked`, `seccompProfile: {type: Unconfined}`";

/// Whether there is one around us: no verdict, as everything that it refuses is a finding of its own.
pub(super) fn finding(surroundings: &Surroundings) -> Finding {
    let detail = surroundings.container.as_ref().map_or_else(
        || "no trace of one around us".to_owned(),
        |container| format!("{} is there: this may be a container", container.trace),
    );
    Finding::ok("container", detail)
}

/// How the container has to be started. Root inside also needs the capability to take hold of mounts.
pub(super) fn options(surroundings: &Surroundings) -> String {
    let capability = if surroundings.is_root() { " --cap-add SYS_ADMIN" } else { "" };
    let docker = format!("{DOCKER}{capability} …");
    let podman = format!("{PODMAN}{capability} …");
    match surroundings.container.as_ref().map(|container| container.engine) {
        Some(ContainerEngine::Docker) => docker,
        Some(ContainerEngine::Podman) => podman,
        Some(ContainerEngine::Kubernetes) => KUBERNETES.to_owned(),
        Some(ContainerEngine::Other) | None => format!("{docker}\n{podman}\nKubernetes, {KUBERNETES}"),
    }
}
