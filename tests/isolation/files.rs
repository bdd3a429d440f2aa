//! Files: 1, 7, 8.

use std::fs;
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use harness::{Agentbox, HOST_KERNEL, backend, breach, breach_all, callers, holds, is_on, is_root, stands};
use policy::{Backend, Wall};

use crate::canary::{Canaries, token};
use crate::listener::Listener;
use crate::{all_refused, none_of, probe};

callers!(files_01_host_canaries, |caller| {
    let canaries = Canaries::plant(caller);
    stands(caller, Wall::MountNamespace, &|start| canaries.check(start()));
});

callers!(files_01_descriptors, |caller| {
    // A shell of the caller's that has a file, a directory and a pipe open when it starts agentbox.
    let holding = ["/bin/sh", "-c", "exec 7</etc/hostname 8</ 9>/dev/null; exec \"$@\"", "sh"];
    stands(caller, Wall::Descriptors, &|start| {
        let output = probe(start().behind(holding), &["descriptors"]);
        let is_standard = |line: &&str| ["0", "1", "2"].contains(&line.split(' ').nth(1).unwrap_or_default());
        let pipes = output.lines().filter(is_standard).filter(|line| line.contains(" pipe:["));
        assert_eq!(pipes.count(), 3, "{output}");
        none_of("inherited", output.lines().filter(|line| !is_standard(line)))
    });
});

callers!(files_01_environment, |caller| {
    let token = token();
    stands(caller, Wall::Environment, &|start| {
        let sandbox = start().env("CANARY_KEY", &token).env("SSH_AUTH_SOCK", "/tmp/canary");
        let output = probe(sandbox, &["environments", &token]);
        let mut expected = vec!["AGENTBOX_EXEC", "HOME", "LANG", "PATH", "USER"];
        if backend() == Backend::Gvisor {
            // Which is said in docs/backends.md: how git is faster there.
            expected.extend(["GIT_CONFIG_COUNT", "GIT_CONFIG_KEY_0", "GIT_CONFIG_VALUE_0"]);
            expected.extend(["GIT_CONFIG_KEY_1", "GIT_CONFIG_VALUE_1"]);
        }
        let is_unexpected = |line: &&str| {
            let name = line.strip_prefix("variable ").and_then(|line| line.split('=').next());
            !expected.contains(&name.unwrap_or_default())
        };
        none_of("in an environment", output.lines().filter(is_unexpected).take(2))
    });
    // Nor does any process of the sandbox have it, as the host sees them.
    if !is_root("look into processes that are not dumpable") {
        return;
    }
    let running = Agentbox::shipped(caller).env("CANARY_KEY", &token).start(["cat"]);
    let processes = running.processes();
    for pid in [processes.keeper, processes.supervisor, processes.init, processes.command] {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap();
        assert!(!String::from_utf8_lossy(&environment).contains(&token), "{processes:?}: {pid}");
    }
});

callers!(files_01_memory, |caller| {
    if !is_root("look into the memory of others") {
        return;
    }
    let token = token();
    stands(caller, Wall::Environment, &|start| {
        let mut running = start().env("CANARY_KEY", &token).start(["cat"]);
        // By then all of them have come to rest.
        running.write(b"there\n");
        running.wait_for("there");
        let processes = running.processes();
        let ours = [processes.keeper, processes.supervisor, processes.init];
        let told = ours.map(|pid| (pid, occurrences(&token, pid))).into_iter();
        let told: Vec<_> = told.filter(|(_, count)| *count > 0).map(|told| format!("{told:?}")).collect();
        none_of("in memory", told.iter().map(String::as_str))
    });
});

/// How often a process has a text in what it can write of its memory.
fn occurrences(token: &str, pid: i32) -> usize {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    let memory = fs::File::open(format!("/proc/{pid}/mem")).unwrap();
    let mut looked_at = 0;
    // What is shared is the memory of those inside, where they have a kernel of their own.
    let count = maps.lines().filter(|line| line.contains(" rw-p ")).map(|line| {
        let (first, last) = line.split(' ').next().unwrap().split_once('-').unwrap();
        let [first, last] = [first, last].map(|number| u64::from_str_radix(number, 16).unwrap());
        let mut bytes = vec![0; usize::try_from(last - first).unwrap()];
        memory.read_exact_at(&mut bytes, first).unwrap();
        looked_at += bytes.len();
        bytes.windows(token.len()).filter(|window| *window == token.as_bytes()).count()
    });
    let count = count.sum();
    assert!(looked_at > 100 << 10, "{looked_at} bytes of {pid} could be read");
    count
}

callers!(files_01_sockets_beneath_mounts, |caller| {
    let tree = caller.directory();
    let deep = tree.path().join("a/b");
    // A directory that may be passed through but not listed, as the daemons of other users have them.
    let closed = tree.path().join("closed");
    for directory in [&deep, &closed] {
        fs::create_dir_all(directory).unwrap();
    }
    let sockets = ["top.sock", "a/b/deep.sock", "closed/hidden.sock"];
    let listeners = sockets.map(|name| (name, Listener::at(&tree.path().join(name))));
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o711)).unwrap();
    let mount = |suffix: &str| format!("{}:/data{suffix}", tree.path().display());
    for (name, listener) in &listeners {
        let path = tree.path().join(name).display().to_string();
        let outside = caller.command(&harness::binaries().probe()).args(["connect", "unix", &path]).output();
        assert!(String::from_utf8_lossy(&outside.unwrap().stdout).ends_with(" ok\n"), "{path} is no canary");
        for suffix in ["", ":rw"] {
            holds(caller, &|start| {
                let sandbox = start().options(["--mount", &mount(suffix)]);
                listener.check(name, || probe(sandbox, &["connect", "unix", &format!("/data/{name}")]))
            });
        }
    }
    // A socket may not be mounted by its own name either.
    let direct = format!("{}:/data.sock", tree.path().join("top.sock").display());
    Agentbox::shipped(caller).options(["--mount", &direct]).run(["true"]).assert_refused();
});

callers!(files_01_sockets_that_come_and_go, |caller| {
    let tree = caller.directory();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in (0..8).cycle().take_while(|_| !is_over.load(Ordering::Relaxed)) {
                let path = tree.path().join(format!("{number}.sock"));
                drop(UnixListener::bind(&path));
                std::thread::sleep(Duration::from_micros(300));
                let _ = fs::remove_file(&path);
            }
        });
        let mount = format!("{}:/data", tree.path().display());
        let started = std::panic::catch_unwind(|| {
            for _ in 0..20 {
                Agentbox::shipped(caller).options(["--mount", &mount]).run(["true"]).assert_success();
            }
        });
        is_over.store(true, Ordering::Relaxed);
        started.unwrap();
    });
});

callers!(files_01_sockets_beneath_the_system, |caller| {
    if !is_root("make a socket in /usr") {
        return;
    }
    let path = format!("/usr/local/lib/{}.sock", token());
    let listener = Listener::at(Path::new(&path));
    let reached = std::panic::catch_unwind(|| {
        listener.check(&path, || probe(Agentbox::shipped(caller), &["connect", "unix", &path]))
    });
    fs::remove_file(&path).unwrap();
    reached.unwrap().unwrap();
});

// Who takes anybody's datagrams does not listen, and is reached all the same where nothing covers it.
callers!(files_01_datagrams_beneath_the_system, |caller| {
    if !is_root("make a socket in /usr") {
        return;
    }
    let path = format!("/usr/local/lib/{}.sock", token());
    let socket = UnixDatagram::bind(&path).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
    socket.set_nonblocking(true).unwrap();
    let script =
        "import socket, sys; socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b'x', sys.argv[1])";
    let arguments = ["-c", script, &path];
    let outside = Command::new("/usr/bin/python3").args(arguments).status().unwrap();
    let reached = (outside.success(), socket.recv(&mut [0; 9]).is_ok());
    let inside = Agentbox::shipped(caller).run([&["/usr/bin/python3"][..], &arguments].concat());
    let late = socket.recv(&mut [0; 9]);
    fs::remove_file(&path).unwrap();
    assert_eq!(reached, (true, true), "it is no canary");
    assert!(inside.code != 0 && late.is_err(), "{inside:?} {late:?}");
});

callers!(files_repositories_beneath_mounts, |caller| {
    let tree = caller.directory();
    let configuration = tree.path().join("vendor/library/.git/config");
    fs::create_dir_all(configuration.parent().unwrap()).unwrap();
    fs::write(&configuration, "of the owner").unwrap();
    let parts = ["vendor", "vendor/library", "vendor/library/.git", "vendor/library/.git/config"];
    parts.iter().for_each(|part| caller.own(&tree.path().join(part)));
    let mount = format!("{}:/data:rw", tree.path().display());
    let script = "cd /data && touch written
        for path in vendor/library/.git/config vendor/library/.git vendor/library vendor; do
          mv $path away 2>&1; rm -rf $path 2>&1
        done
        mkdir -p vendor/library/.git && echo hostile > vendor/library/.git/config
        echo hostile > vendor/library/.git/commondir";
    let finished = Agentbox::shipped(caller).options(["--mount", &mount]).run(["sh", "-c", script]);
    assert_ne!(finished.code, 0, "{}", finished.stdout());
    assert!(tree.path().join("written").exists(), "{} {}", finished.stdout(), finished.stderr());
    assert_eq!(fs::read_to_string(&configuration).unwrap(), "of the owner");
    assert!(!configuration.with_file_name("commondir").exists());
    // Nor may one be named itself, to be written to.
    let direct = format!("{}:/data:rw", configuration.parent().unwrap().display());
    Agentbox::shipped(caller).options(["--mount", &direct]).run(["true"]).assert_refused();
});

callers!(files_07_mounts_and_masks, |caller| {
    // A kernel of the sandbox's own need not have heard of the newest of them.
    let ways: &[&str] = if backend().has_own_kernel() { &["EPERM", "ENOSYS"] } else { &["EPERM"] };
    let check: harness::Check<'_> = &|start| all_refused(&probe(start(), &["mounts"]), ways);
    holds(caller, check);
    breach_all(caller, &[Wall::Seccomp, Wall::Capabilities, Wall::Landlock], check);
});

callers!(files_08_devices, |caller| {
    if !is_on(HOST_KERNEL, "its devices are its own kernel's") {
        return;
    }
    let check: harness::Check<'_> = &|start| {
        let output = probe(start(), &["nodes"]);
        let lines = |prefix: &'static str| output.lines().filter(move |line| line.starts_with(prefix));
        let nodes = [
            "fd", "full", "null", "ptmx", "pts", "random", "shm", "stderr", "stdin", "stdout", "tty",
            "urandom", "zero",
        ];
        // What crun calls so is a link to what is covered in /proc.
        let is_link = |line: &str| backend() == Backend::Crun && line == "node /dev/core";
        let is_listed = |line: &str| nodes.iter().any(|node| line == format!("node /dev/{node}"));
        assert_eq!(lines("node ").filter(|line| is_listed(line)).count(), nodes.len(), "{output}");
        none_of("made", lines("mknod-").filter(|line| !line.ends_with(" EPERM")))?;
        none_of("opened", lines("open ").filter(|line| !line.ends_with(" ENOENT")))?;
        none_of("there", lines("node ").filter(|line| !is_listed(line) && !is_link(line)).take(3))
    };
    stands(caller, Wall::Seccomp, check);
    breach(caller, Wall::MountNamespace, check);
});
