//! Files of the host's that must never be seen inside.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use harness::{Agentbox, Caller};

use crate::{none_of, probe};

/// Where canaries are put, below the root and, without a leading slash, below every home directory.
const PLACES: [&str; 18] = [
    ".ssh",
    ".aws",
    ".kube",
    ".config/gcloud",
    ".docker",
    "project",
    "/boot",
    "/data",
    "/etc",
    "/etc/ssl/private",
    "/media",
    "/mnt",
    "/opt",
    "/run/secrets/kubernetes.io/serviceaccount",
    "/srv",
    "/tmp",
    "/var/lib",
    "/var/lib/cloud/instance",
];

/// What is on most hosts and on none of the sandboxes.
const ABSENT: [&str; 13] = [
    "/etc/shadow",
    "/etc/gshadow",
    "/etc/sudoers",
    "/etc/ssh",
    "/etc/machine-id",
    "/etc/subuid",
    "/root",
    "/run/agentbox",
    "/var/lib/agentbox",
    "/run/dbus/system_bus_socket",
    "/var/run/docker.sock",
    "/run/docker.sock",
    "/run/secrets",
];

/// Directories that were made for canaries, and how many tests need each.
static MADE: Mutex<BTreeMap<PathBuf, usize>> = Mutex::new(BTreeMap::new());

/// Planted files; they go when dropped, with the directories that were made for them.
pub(crate) struct Canaries {
    token: String,
    files: Vec<PathBuf>,
    directories: Vec<PathBuf>,
    absent: Vec<String>,
}

/// A text that is nowhere else.
pub(crate) fn token() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("canary-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

impl Canaries {
    /// Plants one wherever this process may. Everybody could read them: only the walls keep them away.
    pub(crate) fn plant(caller: Caller) -> Self {
        let homes: Vec<PathBuf> = homes();
        let mut canaries =
            Self { token: token(), files: Vec::new(), directories: Vec::new(), absent: Vec::new() };
        for place in PLACES {
            match place.strip_prefix('/') {
                Some(_) => canaries.plant_in(Path::new(place)),
                None => homes.iter().for_each(|home| canaries.plant_in(&home.join(place))),
            }
        }
        assert!(!canaries.files.is_empty(), "no canary could be planted");
        canaries.absent.extend(ABSENT.iter().map(ToString::to_string));
        canaries.absent.push(format!("/tmp/agentbox-{}", caller.uid()));
        canaries.absent.extend(homes.iter().map(|home| home.display().to_string()));
        canaries.absent.extend(canaries.files.iter().map(|file| file.display().to_string()));
        canaries
    }

    fn plant_in(&mut self, directory: &Path) {
        let mut made = MADE.lock().unwrap();
        let needed: Vec<&Path> =
            directory.ancestors().take_while(|path| !path.exists() || made.contains_key(*path)).collect();
        for directory in needed.into_iter().rev() {
            if !directory.exists() && fs::create_dir(directory).is_err() {
                return;
            }
            *made.entry(directory.to_owned()).or_default() += 1;
            self.directories.push(directory.to_owned());
        }
        let file = directory.join(&self.token);
        if fs::write(&file, &self.token).is_ok() {
            fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
            self.files.push(file);
        }
    }

    /// No way leads to any of them.
    pub(crate) fn check(&self, sandbox: Agentbox) -> Result<(), String> {
        let mut words = vec!["hunt", &self.token];
        words.extend(self.absent.iter().map(String::as_str));
        none_of("reachable inside", probe(sandbox, &words).lines().take(3))
    }
}

impl Drop for Canaries {
    fn drop(&mut self) {
        self.files.iter().for_each(|file| drop(fs::remove_file(file)));
        let mut made = MADE.lock().unwrap();
        for directory in self.directories.iter().rev() {
            let Some(users) = made.get_mut(directory) else { continue };
            *users -= 1;
            if *users == 0 {
                made.remove(directory);
                let _ = fs::remove_dir(directory);
            }
        }
    }
}

/// The home directories of those who call, and of nobody else.
fn homes() -> Vec<PathBuf> {
    let passwd = fs::read_to_string("/etc/passwd").unwrap();
    let home = |caller: Caller| {
        let line = passwd.lines().find(|line| line.split(':').next() == Some(caller.user()))?;
        line.split(':').nth(5).map(PathBuf::from)
    };
    Caller::ALL.into_iter().filter_map(home).filter(|home| home.is_dir()).collect()
}
