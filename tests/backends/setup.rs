//! `agentbox setup --yes`, with a directory of the test's own in the place where programs are installed: this machine is as it
//! was before.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use harness::{Agentbox, Caller, Finished, is_full, is_root};
use tempfile::TempDir;

/// Where programs for everybody are installed.
const PROGRAMS: &str = "/usr/local/bin";
/// Where Go's own package puts it.
const GO: &str = "/usr/local/go/bin";
/// The distribution's runc, which has known holes.
const OLD: &str = "/usr/sbin/runc";

/// A runtime is built in a minute or two where nothing of it is there yet.
const BUILDING: Duration = Duration::from_secs(1200);

/// A machine like this one, on which something else is installed.
struct Machine {
    directory: TempDir,
}

impl Machine {
    fn new() -> Self {
        let machine = Self { directory: Caller::Root.directory() };
        fs::create_dir(machine.programs()).unwrap();
        machine
    }

    /// What is installed.
    fn programs(&self) -> PathBuf {
        self.directory.path().join("programs")
    }

    /// An /etc, where it has one of its own.
    fn etc(&self) -> PathBuf {
        self.directory.path().join("etc")
    }

    /// A Go of ours, which builds by copying a program.
    fn with_go(&self, program: &Path) -> PathBuf {
        let directory = self.directory.path().join("go");
        fs::create_dir(&directory).unwrap();
        let script = format!("#!/bin/sh\nexec install -D '{}' \"$GOBIN/runc\"\n", program.display());
        fs::write(directory.join("go"), script).unwrap();
        fs::set_permissions(directory.join("go"), fs::Permissions::from_mode(0o755)).unwrap();
        directory
    }

    fn say(&self, path: &str, words: &[&str]) -> Finished {
        let programs = self.programs().display().to_string();
        let state = self.directory.path().join("state").display().to_string();
        let place = format!("mount --bind \"$0\" {PROGRAMS} && exec \"$@\"");
        let prefix = ["/usr/bin/unshare", "--mount", "--", "/bin/sh", "-c", &place, &programs];
        let agentbox =
            Agentbox::shipped(Caller::Root).env("AGENTBOX_HOME", &state).env("PATH", path).behind(prefix);
        // Where modules come from is this machine's affair.
        let is_for_go = |name: &str| name.starts_with("GO") || name.to_ascii_lowercase().ends_with("_proxy");
        let known = std::env::vars().filter(|(name, _)| is_for_go(name) || name.starts_with("SSL_CERT_"));
        let agentbox = known.fold(agentbox, |agentbox, (name, value)| agentbox.env(&name, &value));
        agentbox.start_words(words).finish_within(BUILDING)
    }
}

#[test]
fn a_current_runsc_is_built_and_seen_to_work() {
    let has_go = Path::new(GO).exists() || Path::new("/usr/bin/go").exists();
    if !is_full() || !is_root("a directory is put over another") || !has_go {
        return;
    }
    let _turn = harness::together();
    let machine = Machine::new();
    let path = format!("{PROGRAMS}:/usr/sbin:/usr/bin:/sbin:/bin:{GO}");
    let before = fs::read_dir(PROGRAMS).unwrap().count();
    let told = machine.say(&path, &["setup", "gvisor", "--yes"]);
    let stdout = told.assert_success().stdout();
    let commands: Vec<&str> = stdout.lines().filter(|line| !line.starts_with('#')).collect();
    let [build, check, install, remove, works] = commands[..] else { panic!("{stdout}") };
    assert!(build.contains("go install gvisor.dev/gvisor/runsc@"), "{stdout}");
    assert!(check.ends_with("setup/runsc --version"), "{stdout}");
    assert!(install.starts_with("install -D -m 755 ") && remove.starts_with("rm "), "{stdout}");
    assert!(works.starts_with("a sandbox starts with gvisor "), "{stdout}");
    assert!(machine.programs().join("runsc").is_file());
    let left = fs::read_dir(machine.directory.path().join("state/setup")).unwrap().count();
    assert_eq!(left, 0, "what was built is there twice");
    let inside = machine.say(&path, &["run", "--backend", "gvisor", "--", "dmesg"]);
    assert!(inside.assert_success().stdout().contains("gVisor"), "{inside:?}");
    // Once more there is nothing to do.
    let again = machine.say(&path, &["setup", "gvisor", "--yes"]).assert_success().stdout();
    assert!(again.starts_with("# /usr/local/bin/runsc ") && again.contains(" is there\n"), "{again}");
    assert_eq!(fs::read_dir(PROGRAMS).unwrap().count(), before, "the machine was changed");
}

/// Whether there is a runc with known holes, as Debian's is.
fn has_old_runc() -> bool {
    let told = std::process::Command::new(OLD).arg("--version").output();
    told.is_ok_and(|told| String::from_utf8_lossy(&told.stdout).starts_with("runc version 1.1."))
}

#[test]
fn what_is_built_with_known_holes_is_not_put_into_place() {
    if !is_root("a directory is put over another") || !has_old_runc() {
        return;
    }
    let _turn = harness::together();
    let machine = Machine::new();
    let path = format!("{}:{PROGRAMS}:/usr/bin:/bin", machine.with_go(Path::new(OLD)).display());
    let told = machine.say(&path, &["setup", "runc", "--yes"]).assert_code(125).stderr();
    assert!(told.contains("CVE-2025-52881") && told.contains("setup/runc'"), "{told}");
    assert_eq!(fs::read_dir(machine.programs()).unwrap().count(), 0);
}

#[test]
fn an_old_one_that_is_found_first_is_named() {
    let path = harness::path();
    let mut found = path.split(':').map(|directory| Path::new(directory).join("runc"));
    let current = found.find(|program| program.is_file() && program != Path::new(OLD));
    let is_possible = is_root("a directory is put over another") && has_old_runc();
    let Some(current) = current.filter(|_| is_possible) else { return };
    let _turn = harness::together();
    let machine = Machine::new();
    let go = machine.with_go(&current).display().to_string();
    let first = machine.say(&format!("{go}:/usr/sbin:{PROGRAMS}:/usr/bin:/bin"), &["setup", "runc", "--yes"]);
    let told = first.assert_code(125).stderr();
    assert!(
        told.contains("'/usr/sbin/runc' is still the one that is found") && told.contains("CVE-"),
        "{told}"
    );
    assert!(told.contains("hint: take it away, or put /usr/local/bin before it"), "{told}");
    assert!(machine.programs().join("runc").is_file());
    let behind =
        machine.say(&format!("{go}:{PROGRAMS}:/usr/sbin:/usr/bin:/bin"), &["setup", "runc", "--yes"]);
    assert!(behind.assert_success().stdout().contains("a sandbox starts with runc 1."), "{behind:?}");
}

/// A machine like this one for an ordinary user, with an /etc of its own: whom sudo lets do what, and who has which ids, is
/// written there and goes with it.
struct Office {
    machine: Machine,
    caller: Caller,
}

impl Office {
    fn new(caller: Caller) -> Self {
        let machine = Machine::new();
        let copied = std::process::Command::new("cp").args(["-a", "/etc"]).arg(machine.etc()).status();
        assert!(copied.unwrap().success());
        fs::create_dir(machine.directory.path().join("state")).unwrap();
        let state = machine.directory.path().join("state");
        fs::set_permissions(&state, fs::Permissions::from_mode(0o700)).unwrap();
        caller.own(&state);
        Self { machine, caller }
    }

    /// Lets sudo do everything for the caller, and ask nothing.
    fn trust(&self) {
        let file = self.machine.etc().join("sudoers.d/agentbox-test");
        let user = self.caller.user();
        // As on many machines, another rule of the same user's would ask for a password.
        fs::write(&file, format!("{user} ALL=(ALL:ALL) ALL\n{user} ALL=(ALL) NOPASSWD: ALL\n")).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o440)).unwrap();
    }

    fn ranges(&self) -> String {
        fs::read_to_string(self.machine.etc().join("subuid")).unwrap()
    }

    fn say(&self, path: &str, words: &[&str]) -> Finished {
        let place = |directory: PathBuf| directory.display().to_string();
        let [programs, etc] = [place(self.machine.programs()), place(self.machine.etc())];
        // What acts on the machine itself, or brings packages to it, does nothing.
        let covers = "for name in loginctl systemctl apt-get; do \
             [ ! -e /usr/bin/$name ] || mount --bind /usr/bin/true /usr/bin/$name || exit; done";
        let mounts = format!(
            "mount --bind '{programs}' {PROGRAMS} && mount --bind '{etc}' /etc && {{ {covers}; }} && exec \"$@\""
        );
        let prefix = ["/usr/bin/unshare", "--mount", "--", "/bin/sh", "-c", &mounts, "sh"];
        let state = place(self.machine.directory.path().join("state"));
        let agentbox = Agentbox::shipped(self.caller).env("AGENTBOX_HOME", &state).env("PATH", path);
        agentbox.behind(prefix).start_words(words).finish_within(BUILDING)
    }
}

/// Whether there is what these need: sudo, and a runc that can be put into place.
fn current_runc() -> Option<PathBuf> {
    let path = harness::path();
    let mut found = path.split(':').map(|directory| Path::new(directory).join("runc"));
    let current = found.find(|program| program.is_file() && program != Path::new(OLD));
    let is_possible = is_root("a directory is put over another") && Path::new("/usr/bin/sudo").exists();
    current.filter(|_| is_possible)
}

#[test]
fn an_ordinary_user_is_shown_sudo_and_with_it_things_are_done() {
    let Some(current) = current_runc() else { return };
    let _turn = harness::together();
    let office = Office::new(Caller::Single);
    let go = office.machine.with_go(&current).display().to_string();
    let path = format!("{go}:/usr/sbin:/usr/bin:/sbin:/bin");
    // Shown, and not done.
    let shown = office.say(&path, &["setup", "runc"]).assert_code(1).stdout();
    let commands: Vec<&str> = shown.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(commands[0], "sudo true", "{shown}");
    assert!(commands[3].starts_with("sudo install -D -m 755 "), "{shown}");
    assert!(shown.ends_with("nothing was done: add --yes to run these commands\n"), "{shown}");
    // Refused, before anything is built.
    let refused = office.say(&path, &["setup", "runc", "--yes"]).assert_refused().stderr();
    assert!(refused.contains("error: cannot do 'sudo true'\n"), "{refused}");
    assert!(refused.contains("hint: sudo is not there, or does not let you"), "{refused}");
    assert!(!office.machine.directory.path().join("state/setup/runc").exists());
    // Done, and seen to work.
    office.trust();
    let first = format!("{go}:{PROGRAMS}:/usr/sbin:/usr/bin:/sbin:/bin");
    let done = office.say(&first, &["setup", "runc", "--yes"]).assert_success().stdout();
    assert!(done.contains("a sandbox starts with runc 1."), "{done}");
    let installed = fs::metadata(office.machine.programs().join("runc")).unwrap();
    assert_eq!(std::os::unix::fs::MetadataExt::uid(&installed), 0, "it is root's");
}

#[test]
fn a_user_gets_a_range_that_nobody_has() {
    if current_runc().is_none() {
        return;
    }
    let _turn = harness::together();
    let office = Office::new(Caller::Single);
    office.trust();
    let before = office.ranges();
    assert!(!before.contains(Caller::Single.user()), "{before}");
    let path = format!("{}:/usr/bin", harness::path());
    // What of the rest takes a person is told, and keeps nothing from being done.
    let told = office.say(&path, &["setup", "all", "--yes"]);
    assert!([0, 1].contains(&told.code), "{}", told.stderr());
    assert!(told.stdout().contains("a sandbox starts with runc "), "{}", told.stdout());
    let after = office.ranges();
    let line = after.lines().find(|line| line.starts_with(Caller::Single.user())).unwrap();
    let fields: Vec<u64> = line.split(':').skip(1).map(|field| field.parse().unwrap()).collect();
    for other in before.lines() {
        let other: Vec<u64> = other.split(':').skip(1).map(|field| field.parse().unwrap()).collect();
        assert!(fields[0] >= other[0] + other[1] || fields[0] + fields[1] <= other[0], "{line}: {before}");
    }
    assert_eq!(fields[1], 65536);
    assert!(
        !fs::read_to_string("/etc/subuid").unwrap().contains(Caller::Single.user()),
        "this machine was changed"
    );
}
