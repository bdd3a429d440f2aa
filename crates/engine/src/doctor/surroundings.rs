//! What stands around the caller: settings of the kernel's, an enclosing container, the service manager. Read from
//! files, and therefore never a verdict: it only says which command mends what a probe was refused.

use std::fs;
use std::path::{Path, PathBuf};

use jail::Subordinates;
use rustix::process::{getegid, geteuid};
use rustix::system::uname;

use super::{Finding, Health};
use crate::setup::SUDO;

/// The settings that matter, as they are read here.
#[derive(Clone, Debug, Default)]
pub(crate) struct Surroundings {
    pub(super) kernel: String,
    pub(crate) uid: u32,
    pub(super) gid: u32,
    pub(crate) user: String,
    /// Our own program, for a profile that names it.
    pub(super) program: PathBuf,
    pub(super) container: Option<Container>,
    /// user.max_user_namespaces.
    pub(super) namespaces: Option<u64>,
    /// kernel.apparmor_restrict_unprivileged_userns is on.
    pub(crate) apparmor_restricts: bool,
    /// kernel.unprivileged_userns_clone, a setting of Debian's, is off.
    pub(super) clone_is_closed: bool,
    /// systemd runs the machine.
    pub(crate) has_systemd: bool,
    /// The security modules that are on, in their order.
    pub(super) security_modules: String,
    /// Setuid programs give the caller nothing.
    pub(super) no_new_privileges: bool,
    /// newuidmap and newgidmap are installed.
    pub(crate) has_helpers: bool,
    /// /etc/subuid and /etc/subgid give the caller a range.
    pub(crate) has_range: bool,
    /// The first id that no range of /etc/subuid or /etc/subgid has.
    pub(crate) free_ids: u64,
    /// The programs that install packages here.
    pub(super) installer: Option<Installer>,
}

/// What encloses the caller, and the trace that gave it away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Container {
    pub(super) engine: ContainerEngine,
    pub(super) trace: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ContainerEngine {
    Docker,
    Podman,
    Kubernetes,
    Other,
}

/// How a package is installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Installer {
    program: &'static str,
    /// The command, up to the package. It asks nothing: whoever runs it has seen it.
    command: &'static [&'static str],
    /// The package that has newuidmap.
    pub(super) uidmap: &'static str,
}

const INSTALLERS: [Installer; 5] = [
    Installer { program: "usr/bin/apt-get", command: &["apt-get", "install", "-y"], uidmap: "uidmap" },
    Installer { program: "usr/bin/dnf", command: &["dnf", "install", "-y"], uidmap: "shadow-utils" },
    Installer {
        program: "usr/bin/zypper",
        command: &["zypper", "--non-interactive", "install"],
        uidmap: "shadow",
    },
    Installer { program: "usr/bin/pacman", command: &["pacman", "-S", "--noconfirm"], uidmap: "shadow" },
    Installer { program: "sbin/apk", command: &["apk", "add"], uidmap: "shadow-uidmap" },
];
/// Where distributions begin to hand out subordinate ids.
const FIRST_SUBORDINATE: u64 = 100_000;

impl Surroundings {
    pub(crate) fn read() -> Self {
        let uid = geteuid().as_raw();
        Self {
            kernel: uname().release().to_string_lossy().into_owned(),
            uid,
            gid: getegid().as_raw(),
            user: user_name(&text(Path::new("/etc/passwd")), uid).unwrap_or_else(|| uid.to_string()),
            has_helpers: Subordinates::have_helpers(),
            has_range: Subordinates::on_file().is_some(),
            program: std::env::current_exe().unwrap_or_else(|_| "/usr/local/bin/agentbox".into()),
            ..Self::of(Path::new("/"))
        }
    }

    /// What stands in the files of a root file system.
    fn of(root: &Path) -> Self {
        let setting = |name: &str| text(&root.join("proc/sys").join(name)).trim().parse::<u64>().ok();
        let status = text(&root.join("proc/self/status"));
        Self {
            container: container(root),
            namespaces: setting("user/max_user_namespaces"),
            apparmor_restricts: setting("kernel/apparmor_restrict_unprivileged_userns") == Some(1),
            clone_is_closed: setting("kernel/unprivileged_userns_clone") == Some(0),
            has_systemd: root.join("run/systemd/system").is_dir(),
            security_modules: text(&root.join("sys/kernel/security/lsm")).trim().to_owned(),
            no_new_privileges: status.lines().any(|line| line == "NoNewPrivs:\t1"),
            free_ids: free_ids(&(text(&root.join("etc/subuid")) + &text(&root.join("etc/subgid")))),
            installer: INSTALLERS.into_iter().find(|installer| root.join(installer.program).exists()),
            ..Self::default()
        }
    }

    pub(crate) const fn is_root(&self) -> bool {
        self.uid == 0
    }

    /// A command that root runs, for whoever asks.
    pub(crate) fn as_root(&self, argv: Vec<String>) -> Vec<String> {
        let before = (!self.is_root()).then(|| SUDO.to_owned());
        before.into_iter().chain(argv).collect()
    }

    /// Where programs are installed that are for everybody.
    pub(crate) fn programs(&self) -> PathBuf {
        PathBuf::from("/usr/local/bin")
    }

    /// A range of ids that nobody has, as usermod takes it.
    pub(crate) fn free_range(&self) -> String {
        format!("{}-{}", self.free_ids, self.free_ids + 65535)
    }

    /// What brings newuidmap, where the machine's installer is known.
    pub(crate) fn install_uidmap(&self) -> Option<Vec<String>> {
        self.installer.map(|installer| self.install_with(installer, installer.uidmap))
    }

    /// What installs a package of Debian's or of those that descend from it; of others' nothing is known here.
    pub(crate) fn install_debian(&self, package: &str) -> Option<Vec<String>> {
        let installer = self.installer.filter(|installer| installer.program == INSTALLERS[0].program)?;
        Some(self.install_with(installer, package))
    }

    fn install_with(&self, installer: Installer, package: &str) -> Vec<String> {
        self.as_root(installer.command.iter().copied().chain([package]).map(str::to_owned).collect())
    }

    /// The profile that gives our program its user namespaces.
    pub(crate) fn apparmor_profile(&self) -> String {
        let program = self.program.display();
        format!(
            "abi <abi/4.0>,\ninclude <tunables/global>\nprofile agentbox \"{program}\" flags=(unconfined) {{\n  userns,\n}}\n"
        )
    }

    /// The limit on user namespaces, as a finding of its own.
    pub(super) fn namespace_limit(&self) -> Finding {
        const NAME: &str = "max-user-namespaces";
        match self.namespaces {
            Some(0) => Finding {
                name: NAME,
                state: Health::Missing,
                detail: "0: no user namespace may be made".to_owned(),
                fix: Some(super::advice::raise_limit("user")),
            },
            Some(limit) => Finding::ok(NAME, limit.to_string()),
            None => Finding::ok(NAME, "the kernel sets no limit"),
        }
    }
}

/// The text of a small file, empty if it cannot be read.
fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

fn user_name(passwd: &str, uid: u32) -> Option<String> {
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(uid)).then(|| name.to_owned())
    })
}

/// The first id above every range.
fn free_ids(ranges: &str) -> u64 {
    let end = |line: &str| {
        let mut fields = line.split(':').skip(1);
        Some(fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?)
    };
    ranges.lines().filter_map(end).fold(FIRST_SUBORDINATE, u64::max)
}

/// The container around the caller, by the traces that engines leave.
fn container(root: &Path) -> Option<Container> {
    use ContainerEngine::{Docker, Kubernetes, Other, Podman};
    let files = [
        ("var/run/secrets/kubernetes.io", Kubernetes),
        ("run/.containerenv", Podman),
        (".dockerenv", Docker),
        ("run/systemd/container", Other),
    ];
    let cgroups = [("kubepods", Kubernetes), ("libpod", Podman), ("docker", Docker), ("lxc", Other)];
    let found = files.into_iter().find(|(path, _)| root.join(path).exists());
    if let Some((path, engine)) = found {
        return Some(Container { engine, trace: format!("/{path}") });
    }
    let places = text(&root.join("proc/self/cgroup"));
    let (word, engine) = cgroups.into_iter().find(|(word, _)| places.contains(word))?;
    Some(Container { engine, trace: format!("'{word}' in /proc/self/cgroup") })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn an_ubuntu_that_restricts_user_namespaces() {
        let root = tempfile::tempdir().unwrap();
        write(root.path(), "proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1\n");
        write(root.path(), "proc/sys/user/max_user_namespaces", "62891\n");
        write(root.path(), "usr/bin/apt-get", "");
        let found = Surroundings::of(root.path());
        assert!(found.apparmor_restricts && !found.clone_is_closed);
        assert_eq!((found.namespaces, found.container), (Some(62891), None));
        assert_eq!(found.installer.unwrap().uidmap, "uidmap");
    }

    #[test]
    fn containers_are_known_by_their_traces() {
        let engine = |path: &str, contents: &str| {
            let root = tempfile::tempdir().unwrap();
            write(root.path(), path, contents);
            container(root.path()).map(|container| container.engine)
        };
        assert_eq!(engine(".dockerenv", ""), Some(ContainerEngine::Docker));
        assert_eq!(engine("run/.containerenv", ""), Some(ContainerEngine::Podman));
        assert_eq!(engine("proc/self/cgroup", "0::/kubepods/pod1\n"), Some(ContainerEngine::Kubernetes));
        assert_eq!(engine("proc/self/cgroup", "0::/user.slice\n"), None);
    }

    #[test]
    fn free_ids_lie_above_every_range() {
        assert_eq!(free_ids(""), 100_000);
        assert_eq!(free_ids("a:100000:65536\nb:165536:65536\nc:1:10\nnonsense\n"), 231_072);
        let passwd = "root:x:0:0::/root:/bin/sh\nann:x:1001:1001::/home/ann:/bin/sh\n";
        assert_eq!(user_name(passwd, 1001).as_deref(), Some("ann"));
        assert_eq!(user_name(passwd, 1002), None);
    }

    #[test]
    fn an_ordinary_user_asks_another_for_what_takes_root() {
        let user =
            Surroundings { uid: 1000, user: "ann".to_owned(), free_ids: 100_000, ..Default::default() };
        assert_eq!(user.as_root(vec!["true".to_owned()]), ["sudo", "true"]);
        let root = Surroundings { uid: 0, ..Default::default() };
        assert_eq!(root.as_root(vec!["true".to_owned()]), ["true"]);
        assert_eq!(user.free_range(), "100000-165535");
    }
}
