//! Processes: 10 to 14. The posture, 9, has a file of its own.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use harness::{
    Agentbox, Caller, binaries, breach, breach_all, callers, copy_program, holds, is_root, stands,
};
use policy::Wall;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};

use crate::canary::Canaries;
use crate::{all_refused, none_of, probe};

callers!(processes_10_init_is_out_of_reach, |caller| {
    if !harness::is_on(harness::HOST_KERNEL, "what its kernel shows of a process is its own") {
        return;
    }
    let check: harness::Check<'_> =
        &|start| all_refused(&probe(start(), &["trace", "1"]), &["EPERM", "EACCES"]);
    holds(caller, check);
    breach_all(caller, &[Wall::Seccomp, Wall::Capabilities, Wall::Landlock], check);
});

callers!(processes_10_supervisor_is_out_of_reach, |caller| {
    // Another sandbox of the same caller: its supervisor lives as long as the test does.
    let other = Agentbox::shipped(caller).start(["cat"]);
    let supervisor = other.processes().supervisor.to_string();
    stands(caller, Wall::PidNamespace, &|start| {
        all_refused(&probe(start(), &["trace", &supervisor]), &["ESRCH", "ENOENT"])
    });
    assert!(Path::new("/proc").join(&supervisor).exists());
});

callers!(processes_11_setuid_gains_nothing, |caller| {
    if !is_root("make programs of other users") {
        return;
    }
    let tree = caller.directory();
    let programs = set_id_programs(caller, tree.path());
    let check: harness::Check<'_> = &|start| {
        for program in &programs {
            let mount = format!("{}:/programs:rw", tree.path().display());
            let finished = start()
                .options(["--mount", &mount])
                .run([format!("/programs/{program}").as_str(), "identity"]);
            let output = finished.assert_success().stdout();
            none_of(&format!("gained by {program}"), output.lines().filter(|line| is_gain(line)))?;
        }
        Ok(())
    };
    holds(caller, check);
    // Only this map has another user inside whose files the owner could have: a subordinate id.
    if caller == Caller::Subordinate {
        breach_all(caller, &[Wall::NoNewPrivileges, Wall::Seccomp, Wall::Landlock], check);
    }
});

/// Anything but the agent's own ids and empty sets.
fn is_gain(line: &str) -> bool {
    let (name, value) = line.split_once(' ').unwrap_or((line, ""));
    match name {
        "Uid:" | "Gid:" => value != "1000 1000 1000 1000",
        "Groups:" => value.split(' ').any(|group| !["", "1000", "65534"].contains(&group)),
        "CapPrm:" | "CapEff:" | "CapAmb:" => value != "0000000000000000",
        _ => false,
    }
}

/// Copies of the probe that would make their caller somebody else: of root, of root inside, of a group, and with
/// a capability of their own.
fn set_id_programs(caller: Caller, directory: &Path) -> Vec<&'static str> {
    let copy = |name: &str, owner: u32, mode: u32| {
        let path = directory.join(name);
        assert!(copy_program(&binaries().probe(), &path));
        std::os::unix::fs::chown(&path, Some(owner), Some(owner)).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    };
    let inner_root = inner_root(caller);
    copy("setuid-root", 0, 0o4755);
    copy("setgid-root", 0, 0o2755);
    copy("setuid-inner-root", inner_root, 0o4755);
    let capable = copy("file-capability", inner_root, 0o755);
    rustix::fs::setxattr(
        &capable,
        "security.capability",
        &capability(inner_root),
        rustix::fs::XattrFlags::empty(),
    )
    .unwrap();
    vec!["setuid-root", "setgid-root", "setuid-inner-root", "file-capability"]
}

/// The host's id of root inside, where the caller has one that a file could belong to.
fn inner_root(caller: Caller) -> u32 {
    let ranges = fs::read_to_string("/etc/subuid").unwrap_or_default();
    let range = ranges.lines().find(|line| line.starts_with(caller.user()));
    range.and_then(|line| line.split(':').nth(1)?.parse().ok()).unwrap_or_default()
}

/// Every capability, effective, for the user namespace of this root: the kernel's third format.
fn capability(root: u32) -> Vec<u8> {
    const VERSION_3: u32 = 0x0300_0000;
    const EFFECTIVE: u32 = 1;
    let words = [VERSION_3 | EFFECTIVE, u32::MAX, 0, 0x1ff, 0, root];
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// A process of the caller's on the host.
struct Bystander(Child);

impl Bystander {
    fn start(caller: Caller) -> Self {
        let mut command: Command = caller.command(Path::new("/bin/sleep"));
        Self(command.arg("600").stdin(Stdio::null()).spawn().unwrap())
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.0)
    }

    fn is_alive(&mut self) -> bool {
        self.0.try_wait().unwrap().is_none() && test_kill_process(self.pid()).is_ok()
    }
}

impl Drop for Bystander {
    fn drop(&mut self) {
        let _ = kill_process(self.pid(), Signal::KILL);
        let _ = self.0.wait();
    }
}

callers!(processes_12_signals_stay_inside, |caller| {
    let mut bystander = Bystander::start(caller);
    let neighbour = Agentbox::shipped(caller).start(["cat"]);
    let processes = neighbour.processes();
    // The sandbox survives: the kernel lets nobody inside end PID 1, and nobody's shot at everyone hits itself.
    let script = "sleep 60 & kill -9 1; kill -TERM 1; kill -9 -1; echo survived; wait";
    // gVisor's kernel lets whoever has init's id end it, and where there is one id that is the agent: its own sandbox
    // ends, and nothing else.
    let is_one = harness::backend() == policy::Backend::Gvisor && caller == Caller::Single;
    let finished = Agentbox::shipped(caller).run(["bash", "-c", script]);
    if !is_one {
        assert_eq!(finished.assert_success().stdout(), "survived\n");
    }
    assert!(bystander.is_alive());
    for pid in [processes.keeper, processes.supervisor, processes.init, processes.command] {
        assert!(Path::new(&format!("/proc/{pid}")).exists(), "{processes:?}: {pid}");
    }
    let pid = bystander.pid().as_raw_nonzero().to_string();
    stands(caller, Wall::PidNamespace, &|start| {
        all_refused(&probe(start(), &["signal", &pid, "0"]), &["ESRCH"])
    });
});

callers!(processes_13_working_directories, |caller| {
    let canaries = Canaries::plant(caller);
    for workdir in
        ["/proc/self/fd/0", "/proc/self/fd/3", "/proc/1/cwd", "/proc/1/root", "/workspace/../..", "/var/tmp"]
    {
        let sandbox = || Agentbox::shipped(caller).options(["--workdir", workdir]);
        let finished = sandbox().run(["/bin/pwd", "-P"]);
        match finished.code {
            0 => canaries.check(sandbox()).unwrap(),
            _ => drop(finished.assert_refused()),
        }
    }
    // A link of the owner's that leads out of its tree leads nowhere inside.
    let tree = caller.directory();
    std::os::unix::fs::symlink("/root", tree.path().join("out")).unwrap();
    let mount = format!("{}:/data", tree.path().display());
    let finished =
        Agentbox::shipped(caller).options(["--mount", &mount, "--workdir", "/data/out"]).run(["/bin/pwd"]);
    finished.assert_refused();
});

callers!(processes_13_hostile_environment, |caller| {
    if !harness::is_on(harness::HOST_KERNEL, "what runs inside is none of the host's processes") {
        return;
    }
    if !is_root("look into processes that are not dumpable") {
        return;
    }
    let tree = caller.directory();
    let library = build_preload(tree.path());
    let mount = format!("{}:/preload", tree.path().display());
    let library = format!("/preload/{}", library.file_name().unwrap().display());
    let mut running = Agentbox::shipped(caller)
        .options(["--mount", &mount, "--env", &format!("LD_PRELOAD={library}")])
        .options(["--env", "LD_LIBRARY_PATH=/preload", "--env", "LD_AUDIT=/preload/none.so"])
        .options(["--env", "GLIBC_TUNABLES=glibc.malloc.check=3", "--env", "BASH_ENV=/preload/none"])
        .start(["cat"]);
    // Once it answers, its loader has done what it was told.
    running.write(b"loaded\n");
    running.wait_for("loaded");
    let processes = running.processes();
    let maps = |pid: i32| fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    assert!(
        maps(processes.command).contains("preload"),
        "the library is no canary: {}",
        maps(processes.command)
    );
    for pid in [processes.init, processes.supervisor, processes.keeper, processes.cli] {
        assert!(!maps(pid).contains("preload"), "{processes:?}: {pid}");
    }
    // A runtime gives it two variables of its own making.
    let environment = fs::read_to_string(format!("/proc/{}/environ", processes.init)).unwrap();
    let others = environment.split_terminator('\0').filter(|line| !RUNTIMES.contains(line));
    let is_native = harness::backend() == policy::Backend::Native;
    let found: Vec<&str> =
        if is_native { environment.split_terminator('\0').collect() } else { others.collect() };
    assert_eq!(found, [""; 0]);
});

/// What runtimes put into the environment of init.
const RUNTIMES: [&str; 2] = ["PATH=/usr/bin:/bin", "HOME=/"];

/// A library that does nothing; that it is loaded shows.
fn build_preload(directory: &Path) -> PathBuf {
    let path = directory.join("preload.so");
    let built = Command::new("gcc")
        .args(["-shared", "-fPIC", "-x", "c", "-o"])
        .arg(&path)
        .arg("/dev/null")
        .status()
        .expect("gcc is there: tests/setup.sh installs it");
    assert!(built.success());
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

callers!(processes_14_programs_stay_as_they_are, |caller| {
    // The owner's own copies, which the agent's id could write to if they were not behind walls.
    for (build, program) in [("shipped", binaries().shipped()), ("weakened", binaries().weakened())] {
        let home = caller.directory();
        let place = home.path().join("bin");
        copy_programs(caller, program.parent().unwrap(), &place);
        let inside = place.join("agentbox").display().to_string();
        let paths = [inside.clone(), format!("/host{inside}"), format!("/host{inside}-init")];
        let before = contents(&place);
        let check: harness::Check<'_> = &|start| {
            let mut words = vec!["overwrite"];
            words.extend(paths.iter().map(String::as_str));
            let output = probe(start().program(&place.join("agentbox")), &words);
            if contents(&place) == before {
                return Ok(());
            }
            none_of("changed on the host", output.lines().filter(|line| line.ends_with(" ok")).take(3))
        };
        if build == "shipped" {
            holds(caller, check);
        } else {
            breach_all(caller, &[Wall::MountNamespace, Wall::Landlock], check);
        }
    }
});

fn copy_programs(caller: Caller, from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    fs::set_permissions(to, fs::Permissions::from_mode(0o777)).unwrap();
    for name in ["agentbox", "agentbox-init"] {
        let path = to.join(name);
        assert!(copy_program(&from.join(name), &path));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
        caller.own(&path);
    }
}

/// The names and bytes of all files in a directory.
fn contents(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

callers!(processes_nobody_inside_is_root, |caller| {
    let check: harness::Check<'_> =
        &|start| none_of("not the agent", probe(start(), &["identity"]).lines().filter(|line| is_gain(line)));
    holds(caller, check);
    if caller != Caller::Single {
        breach(caller, Wall::NonRoot, check);
    }
});

callers!(processes_a_caller_that_ignores_signals, |caller| {
    if !harness::is_on(harness::HOST_KERNEL, "its kernel does not tell") {
        return;
    }
    let ignoring = ["/usr/bin/env", "--ignore-signal=CHLD,HUP,INT,TERM"];
    let finished =
        Agentbox::shipped(caller).behind(ignoring).run(["sh", "-c", "grep SigIgn /proc/self/status; exit 7"]);
    assert_eq!(finished.assert_code(7).stdout(), "SigIgn:\t0000000000000000\n");
});
