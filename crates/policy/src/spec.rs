//! What a sandbox shall be. One value from the door to the walls: the CLI and the server build it, the keeper
//! carries it out, the state directory keeps it.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::network::NetworkPolicy;
use crate::{
    Life, Limits, Mount, PublishedPort, SandboxId, SandboxName, SandboxPath, User, Variable, Workspace,
};

/// The whole of what a sandbox shall be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SandboxSpec {
    /// Its id.
    pub id: SandboxId,
    /// The owner's name for it.
    pub name: Option<SandboxName>,
    /// What builds the walls.
    pub backend: Backend,
    /// What to do where a wall cannot be had.
    pub isolation: Isolation,
    /// The tree to work on.
    pub workspace: Workspace,
    /// The root file system.
    pub root: Root,
    /// Further directories of the owner's.
    pub mounts: Vec<Mount>,
    /// Variables for everything that runs inside.
    pub environment: Vec<Variable>,
    /// Where processes start.
    pub workdir: SandboxPath,
    /// Who they run as.
    pub user: User,
    /// How much they may use.
    pub limits: Limits,
    /// Whether user namespaces may be made inside.
    pub nesting: Nesting,
    /// When it is ended although nobody has asked for it.
    #[serde(default)]
    pub life: Life,
    /// Ports inside that are reached on the host while it runs.
    #[serde(default)]
    pub ports: Vec<PublishedPort>,
    /// What may leave it.
    #[serde(default)]
    pub network: NetworkPolicy,
}

/// What builds the walls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Backend {
    /// Namespaces, seccomp, Landlock and cgroups, by ourselves.
    Native,
    /// runsc: a kernel of the sandbox's own, within namespaces of ours.
    Gvisor,
    /// crun, within namespaces of ours.
    Crun,
    /// runc, within namespaces of ours.
    Runc,
}

/// What to do where a wall that is not needed in every case cannot be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Isolation {
    /// Refuse to start.
    Strict,
    /// Start, and report what is missing.
    BestEffort,
}

/// The root file system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Root {
    /// A listed part of the owner's system, read-only.
    Host(Tools),
    /// An image: its layers, read-only, and over them what is written, which ends with the sandbox's processes.
    Image(ImageRoot),
}

/// An image as a sandbox is made from it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImageRoot {
    /// What the owner calls it.
    pub name: String,
    /// The digest of its manifest.
    pub digest: String,
    /// The directories of its layers, the lowest first. They are the owner's, and their contents a stranger's.
    pub layers: Vec<PathBuf>,
}

/// Whether the owner's tool chains come along with the `host` root.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tools {
    /// Only the system's.
    System,
    /// rustup, nvm, pyenv and their like from the owner's home, read-only and without credential files.
    Owner,
}

/// Whether user namespaces may be made inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Nesting {
    /// They are refused.
    Closed,
    /// For tools that sandbox themselves; reported.
    Open,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Access, Size};

    prop_compose! {
        fn any_mount()(source in "/[a-z/]{0,20}", target in "/m[a-z]{1,9}", write in any::<bool>()) -> Mount {
            let access = if write { Access::ReadWrite } else { Access::ReadOnly };
            Mount { source: source.into(), target: target.parse().unwrap(), access }
        }
    }

    fn any_port((address, port, inside): (std::net::IpAddr, u16, u16)) -> PublishedPort {
        PublishedPort { host: crate::HostPort { address, port }, inside: inside.try_into().unwrap() }
    }

    prop_compose! {
        fn any_spec()(
            id in any::<[u8; 12]>(),
            name in proptest::option::of("[a-z][a-z0-9._-]{0,20}"),
            backend in proptest::sample::select(&Backend::ALL[..]),
            strict in any::<bool>(), tools in any::<bool>(), nested in any::<bool>(),
            mounts in proptest::collection::vec(any_mount(), 0..4),
            variables in proptest::collection::vec(("[A-Z_][A-Z0-9_]{0,8}", "[^\0]{0,20}"), 0..4),
            ports in proptest::collection::vec((any::<std::net::IpAddr>(), any::<u16>(), 1u16..), 0..4),
            uid in 1u32..65535, memory in 1u64..1 << 50, pids in 4u32..4_000_000, milli in 10u32..4_000_000,
            names in proptest::collection::vec("[a-z]{1,9}\\.[a-z]{2,4}(:[1-9][0-9]{0,3})?", 0..4),
            lifetime in proptest::option::of(1u64..365 * 24 * 3600),
            workspace in crate::workspace::any_workspace(),
            layers in proptest::option::of(proptest::collection::vec("/[a-z/]{0,20}", 0..4)),
        ) -> SandboxSpec {
            SandboxSpec {
                id: SandboxId::from_random(id),
                name: name.map(|name| name.parse().unwrap()),
                backend,
                isolation: if strict { Isolation::Strict } else { Isolation::BestEffort },
                workspace,
                root: match layers {
                    None => Root::Host(if tools { Tools::Owner } else { Tools::System }),
                    Some(layers) => Root::Image(ImageRoot {
                        name: "debian:12".to_owned(),
                        digest: "sha256:0".to_owned(),
                        layers: layers.into_iter().map(PathBuf::from).collect(),
                    }),
                },
                mounts,
                environment: variables.iter().map(|(name, value)| Variable::new(name, value).unwrap()).collect(),
                workdir: "/workspace".parse().unwrap(),
                user: User { uid, gid: uid },
                limits: Limits {
                    memory: Size::bytes(memory),
                    pids: pids.to_string().parse().unwrap(),
                    cpus: format!("{}.{:03}", milli / 1000, milli % 1000).parse().unwrap(),
                    disk: Size::gibibytes(1),
                },
                nesting: if nested { Nesting::Open } else { Nesting::Closed },
                life: Life {
                    lifetime: lifetime.map(|seconds| seconds.to_string().parse().unwrap()),
                    idle_timeout: None,
                },
                ports: ports.into_iter().map(any_port).collect(),
                network: NetworkPolicy {
                    mode: crate::network::Mode::Allowlist,
                    allow: names.iter().map(|name| name.parse().unwrap()).collect(),
                    ..NetworkPolicy::default()
                },
            }
        }
    }

    proptest! {
        #[test]
        fn a_spec_survives_its_file(spec in any_spec()) {
            let text = serde_json::to_string(&spec).unwrap();
            prop_assert_eq!(serde_json::from_str::<SandboxSpec>(&text).unwrap(), spec);
        }
    }
}
