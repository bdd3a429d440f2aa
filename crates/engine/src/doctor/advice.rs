//! The command that mends what a probe was refused, chosen by what the kernel said and by what stands around.

use jail::Probe;

use super::container;
use super::surroundings::Surroundings;
use crate::setup;

/// Where nothing tells what refuses.
const LOOK: &str = "look for a security module that refuses it (sudo dmesg | tail), or, in a container:";

const EPERM: i32 = 1;
const EACCES: i32 = 13;
const EINVAL: i32 = 22;
const ENOSPC: i32 = 28;
const ENOSYS: i32 = 38;
const EOPNOTSUPP: i32 = 95;

/// What mends a probe that was refused.
pub(super) fn fix(probe: Probe, errno: Option<i32>, surroundings: &Surroundings) -> String {
    match probe {
        Probe::Kernel => "boot a newer kernel: your distribution's current one will do".to_owned(),
        Probe::UserNamespace => namespace("user", errno, surroundings),
        Probe::PidNamespace => namespace("pid", errno, surroundings),
        Probe::NetNamespace => namespace("net", errno, surroundings),
        Probe::IpcNamespace => namespace("ipc", errno, surroundings),
        Probe::UtsNamespace => namespace("uts", errno, surroundings),
        Probe::CgroupNamespace => namespace("cgroup", errno, surroundings),
        Probe::MountNamespace | Probe::BindMount | Probe::ReadOnlyTree | Probe::DiskLimit => {
            namespace("mnt", errno, surroundings)
        }
        Probe::FreshProc => fresh_proc(errno, surroundings),
        Probe::Devpts => module("mnt", "devpts", errno, surroundings),
        Probe::Overlay => module("mnt", "overlay", errno, surroundings),
        Probe::NftTproxy => module("net", "nf_tables nft_tproxy nft_reject_inet", errno, surroundings),
        Probe::Seccomp => seccomp(errno, surroundings),
        Probe::Landlock => landlock(errno, surroundings),
        Probe::IdRange => id_range(errno, surroundings),
        Probe::IdMappedMount => id_mapped_mount(errno, surroundings),
    }
}

/// Namespaces and what is done in them. First the causes that can be told for sure.
fn namespace(kind: &str, errno: Option<i32>, surroundings: &Surroundings) -> String {
    let in_container = surroundings.container.is_some();
    match errno {
        Some(ENOSPC) if surroundings.namespaces == Some(0) => raise_limit("user"),
        Some(ENOSPC) => raise_limit(kind),
        _ if surroundings.clone_is_closed => "sudo sysctl -w kernel.unprivileged_userns_clone=1".to_owned(),
        Some(ENOSYS) if !in_container => "boot Linux 5.15 or later".to_owned(),
        Some(EINVAL) => "boot a kernel that is built with CONFIG_USER_NS and the other namespaces".to_owned(),
        Some(EPERM | EACCES) if surroundings.apparmor_restricts && !in_container => {
            setup::commands(&setup::apparmor(surroundings))
        }
        _ if in_container => container::options(surroundings),
        _ => format!("{LOOK}\n{}", container::options(surroundings)),
    }
}

pub(super) fn raise_limit(kind: &str) -> String {
    format!("sudo sysctl -w user.max_{kind}_namespaces=15000")
}

/// Mounted over in part, /proc gives no fresh one: that is a container's doing.
fn fresh_proc(errno: Option<i32>, surroundings: &Surroundings) -> String {
    match errno {
        Some(EPERM) if !surroundings.apparmor_restricts => container::options(surroundings),
        _ => namespace("mnt", errno, surroundings),
    }
}

/// What a module of the kernel's brings.
fn module(kind: &str, modules: &str, errno: Option<i32>, surroundings: &Surroundings) -> String {
    match errno {
        Some(EPERM | EACCES | ENOSPC | ENOSYS) => namespace(kind, errno, surroundings),
        _ => format!("sudo modprobe -a {modules}"),
    }
}

fn seccomp(errno: Option<i32>, surroundings: &Surroundings) -> String {
    match errno {
        Some(EINVAL | ENOSYS) if surroundings.container.is_none() => {
            "boot a kernel that is built with CONFIG_SECCOMP_FILTER".to_owned()
        }
        _ => namespace("user", errno, surroundings),
    }
}

fn landlock(errno: Option<i32>, surroundings: &Surroundings) -> String {
    match errno {
        Some(EOPNOTSUPP) => {
            let modules = format!("landlock,{}", surroundings.security_modules);
            format!("add to the kernel's command line and boot again: lsm={}", modules.trim_end_matches(','))
        }
        Some(ENOSYS) if surroundings.container.is_some() => container::options(surroundings),
        _ => "boot Linux 5.19 or later with CONFIG_SECURITY_LANDLOCK".to_owned(),
    }
}

fn id_range(errno: Option<i32>, surroundings: &Surroundings) -> String {
    if surroundings.is_root() {
        return "run agentbox as an ordinary user here: this root has not all ids (a user namespace of its own), \
                or not the capability to map them"
            .to_owned();
    }
    if errno.is_some() && surroundings.no_new_privileges {
        return "start the caller without no_new_privs: newuidmap cannot gain its privileges".to_owned();
    }
    if errno.is_some() {
        let install = setup::commands(&[setup::helpers(surroundings)]);
        return format!(
            "{install}    # again: newuidmap or newgidmap is there and refuses, or cannot be run"
        );
    }
    setup::commands(&setup::ids(surroundings))
}

fn id_mapped_mount(errno: Option<i32>, surroundings: &Surroundings) -> String {
    match errno {
        Some(EPERM) => container::options(surroundings),
        _ => {
            "run agentbox as the user who owns the directories, or keep them on ext4, xfs or btrfs".to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::surroundings::{Container, ContainerEngine};
    use super::*;

    fn user() -> Surroundings {
        Surroundings { uid: 1000, user: "ann".to_owned(), free_ids: 100_000, ..Default::default() }
    }

    #[track_caller]
    fn check(probe: Probe, errno: Option<i32>, surroundings: &Surroundings, expected: &str) {
        let fix = fix(probe, errno, surroundings);
        assert!(fix.contains(expected), "{fix}");
    }

    #[test]
    fn apparmor_lets_the_namespace_succeed_and_refuses_the_mount() {
        let program = "/opt/our tools/agentbox".into();
        let ubuntu = Surroundings { apparmor_restricts: true, program, ..user() };
        let profile =
            "profile agentbox \"/opt/our tools/agentbox\" flags=(unconfined) {\n  userns,\n}\nEOF\n";
        check(Probe::MountNamespace, Some(EACCES), &ubuntu, profile);
        check(Probe::UserNamespace, Some(EPERM), &ubuntu, "sudo apparmor_parser -r /etc/apparmor.d/agentbox");
    }

    #[test]
    fn limits_and_switches_have_their_own_command() {
        let closed = Surroundings { clone_is_closed: true, ..user() };
        check(Probe::UserNamespace, Some(EPERM), &closed, "kernel.unprivileged_userns_clone=1");
        let none = Surroundings { namespaces: Some(0), ..user() };
        check(Probe::NetNamespace, Some(ENOSPC), &none, "user.max_user_namespaces=15000");
        check(Probe::NetNamespace, Some(ENOSPC), &user(), "user.max_net_namespaces=15000");
        check(Probe::Overlay, Some(19), &user(), "sudo modprobe -a overlay");
    }

    #[test]
    fn a_container_is_started_with_other_options() {
        let inside = |engine| {
            let container = Some(Container { engine, trace: String::new() });
            Surroundings { container, ..user() }
        };
        let docker = inside(ContainerEngine::Docker);
        check(Probe::UserNamespace, Some(EPERM), &docker, "docker run --security-opt seccomp=unconfined");
        check(Probe::FreshProc, Some(EPERM), &docker, "systempaths=unconfined …");
        let root = Surroundings { uid: 0, ..docker };
        check(Probe::BindMount, Some(EPERM), &root, "--cap-add SYS_ADMIN");
        check(Probe::FreshProc, Some(EPERM), &inside(ContainerEngine::Podman), "unmask=ALL");
        check(Probe::FreshProc, Some(EPERM), &inside(ContainerEngine::Kubernetes), "procMount: Unmasked");
        check(Probe::FreshProc, Some(EPERM), &user(), "podman run");
    }

    #[test]
    fn landlock_is_added_to_the_modules_that_are_on() {
        let lsm = Surroundings { security_modules: "lockdown,yama".to_owned(), ..user() };
        check(Probe::Landlock, Some(EOPNOTSUPP), &lsm, "lsm=landlock,lockdown,yama");
        check(Probe::Landlock, None, &user(), "5.19");
    }

    #[test]
    fn ids_come_from_what_is_free() {
        let grant = "sudo usermod --add-subuids 100000-165535 --add-subgids 100000-165535 ann";
        check(Probe::IdRange, None, &user(), grant);
        let helped = Surroundings { has_helpers: true, ..user() };
        assert_eq!(fix(Probe::IdRange, None, &helped), grant, "what is there is not installed");
        let ranged = fix(Probe::IdRange, None, &Surroundings { has_range: true, ..user() });
        assert!(
            ranged.contains("newuidmap") && !ranged.contains("usermod"),
            "a range that is there: {ranged}"
        );
        let held = Surroundings { no_new_privileges: true, ..user() };
        check(Probe::IdRange, Some(EPERM), &held, "no_new_privs");
        check(Probe::IdRange, Some(EPERM), &Surroundings { uid: 0, ..user() }, "as an ordinary user");
    }
}
