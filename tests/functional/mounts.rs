//! `--mount`: what is brought in, under whose ids, and what never is.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;

use harness::{Agentbox, Caller, Finished, backend, callers, copy_program};

fn mounted(caller: Caller, source: &Path, target: &str, script: &str) -> Finished {
    let mount = format!("{}:{target}", source.display());
    Agentbox::shipped(caller).options(["--mount", &mount]).run(["sh", "-c", script])
}

/// A file of the caller's.
fn write(caller: Caller, path: &Path, contents: &str) {
    fs::write(path, contents).unwrap();
    caller.own(path);
}

fn make_directory(caller: Caller, path: &Path) {
    fs::create_dir(path).unwrap();
    caller.own(path);
}

callers!(read_only_unless_asked, |caller| {
    let tree = caller.directory();
    write(caller, &tree.path().join("data"), "mine\n");
    for target in ["/data", "/data:ro", "/home/agent/deep/down"] {
        let inside = target.trim_end_matches(":ro");
        let script = format!(
            "cat {inside}/data; echo x > {inside}/data; touch {inside}/new; rm -f {inside}/data; true"
        );
        let finished = mounted(caller, tree.path(), target, &script);
        assert_eq!(finished.assert_success().stdout(), "mine\n");
        assert_eq!(finished.stderr().matches("Read-only file system").count(), 3, "{}", finished.stderr());
    }
    assert_eq!(fs::read_to_string(tree.path().join("data")).unwrap(), "mine\n");
    assert_eq!(fs::read_dir(tree.path()).unwrap().count(), 1);
});

callers!(from_where_the_caller_stands, |caller| {
    let tree = caller.directory();
    make_directory(caller, &tree.path().join("sub"));
    write(caller, &tree.path().join("sub/data"), "here\n");
    for source in ["sub", "./sub", "sub/../sub", "."] {
        let mount = format!("{source}:/m");
        let output = Agentbox::shipped(caller)
            .options(["--mount", &mount])
            .command(["sh", "-c", "cat /m/data /m/sub/data 2>/dev/null; true"])
            .current_dir(tree.path())
            .output()
            .unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "here\n", "{source}");
    }
});

callers!(one_file, |caller| {
    let tree = caller.directory();
    let file = tree.path().join("notes");
    write(caller, &file, "before\n");
    write(caller, &tree.path().join("beside"), "not this one\n");
    let finished = mounted(caller, &file, "/workspace/notes:rw", "cat notes; echo after > notes; ls");
    assert_eq!(finished.assert_success().stdout(), "before\nnotes\n");
    assert_eq!(fs::read_to_string(&file).unwrap(), "after\n");
});

callers!(new_files_belong_to_the_owner_of_the_directory, |caller| {
    let tree = caller.directory();
    // As root the owner may be anybody.
    let owner = match caller {
        Caller::Root => (4321, 8765),
        Caller::Subordinate | Caller::Single => (caller.uid(), caller.gid()),
    };
    chown(tree.path(), Some(owner.0), Some(owner.1)).unwrap();
    let script = "cd /m && mkdir -p a/b && echo 1 > a/b/file && ln -s file a/b/link && ln a/b/file a/hard && \
                  chmod 700 a && mkfifo fifo && stat -c %u:%g . a a/b/file";
    let finished = mounted(caller, tree.path(), "/m:rw", script);
    assert_eq!(finished.assert_success().stdout(), "1000:1000\n".repeat(3));
    for path in ["a", "a/b", "a/b/file", "a/b/link", "a/hard", "fifo"] {
        if path == "fifo" && backend().has_own_kernel() {
            // What is no file is its kernel's own, and on no disk.
            assert!(!tree.path().join(path).exists());
            continue;
        }
        let metadata = fs::symlink_metadata(tree.path().join(path)).unwrap();
        assert_eq!((metadata.uid(), metadata.gid()), owner, "{path}");
    }
    assert_eq!(fs::metadata(tree.path().join("a")).unwrap().mode() & 0o777, 0o700);
});

callers!(files_of_others_stay_theirs, |caller| {
    let tree = caller.directory();
    let other = tree.path().join("other");
    fs::write(&other, "not yours\n").unwrap();
    fs::set_permissions(&other, fs::Permissions::from_mode(0o644)).unwrap();
    if caller != Caller::Root && !rustix::process::geteuid().is_root() {
        return;
    }
    chown(&other, Some(12), Some(12)).unwrap();
    let finished =
        mounted(caller, tree.path(), "/m:rw", "cat /m/other; echo x >> /m/other; chown agent /m/other; true");
    assert_eq!(finished.assert_success().stdout(), "not yours\n");
    let metadata = fs::metadata(&other).unwrap();
    assert_eq!((metadata.uid(), metadata.gid(), metadata.size()), (12, 12, 10));
});

callers!(sockets_are_covered_and_named, |caller| {
    let tree = caller.directory();
    make_directory(caller, &tree.path().join("deep"));
    let sockets = [tree.path().join("agent.sock"), tree.path().join("deep/docker.sock")];
    let listeners: Vec<UnixListener> = sockets.iter().map(|path| UnixListener::bind(path).unwrap()).collect();
    for path in &sockets {
        fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
    }
    let script = "for s in /m/agent.sock /m/deep/docker.sock; do \
                  test -S $s && echo \"$s is a socket\"; \
                  /usr/bin/python3 -c 'import socket,sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])' $s \
                  && echo \"$s connected\"; done; echo looked";
    for access in ["", ":rw"] {
        let finished = mounted(caller, tree.path(), &format!("/m{access}"), script);
        assert_eq!(finished.assert_success().stdout(), "looked\n");
        for path in &sockets {
            let line = format!("covered   {}: a socket of the host's in a mounted tree\n", path.display());
            assert!(finished.stderr().contains(&line), "no {line} in {}", finished.stderr());
        }
    }
    for listener in &listeners {
        listener.set_nonblocking(true).unwrap();
        assert!(listener.accept().is_err(), "something inside has connected");
    }
});

callers!(a_repository_is_read_only_in_a_writable_tree, |caller| {
    let tree = caller.directory();
    for path in [".git", ".git/hooks", "vendor", "vendor/.git", "worktree"] {
        make_directory(caller, &tree.path().join(path));
    }
    write(caller, &tree.path().join(".git/config"), "[core]\n");
    write(caller, &tree.path().join("worktree/.git"), "gitdir: ../.git/worktrees/x\n");
    let script = "cd /m; echo evil >> .git/config; echo evil > .git/hooks/post-checkout; echo / > .git/commondir; \
                  rm -rf .git; mv .git elsewhere; mv vendor elsewhere; mv worktree elsewhere; touch vendor/.git/x; \
                  echo evil > worktree/.git; rm worktree/.git; echo fine > source; ls -A";
    let finished = mounted(caller, tree.path(), "/m:rw", script);
    assert_eq!(finished.assert_success().stdout(), ".git\nsource\nvendor\nworktree\n");
    let read = |path: &str| fs::read_to_string(tree.path().join(path)).unwrap();
    assert_eq!(read(".git/config"), "[core]\n");
    assert_eq!(read("worktree/.git"), "gitdir: ../.git/worktrees/x\n");
    assert_eq!(read("source"), "fine\n");
    for path in [".git/hooks", "vendor/.git"] {
        assert_eq!(fs::read_dir(tree.path().join(path)).unwrap().count(), 0, "{path}");
    }
    assert!(!tree.path().join(".git/commondir").exists());
});

callers!(setuid_programs_in_a_mount_give_nothing, |caller| {
    let tree = caller.directory();
    let program = tree.path().join("id");
    assert!(copy_program(Path::new("/usr/bin/id"), &program));
    if caller == Caller::Root {
        chown(&program, Some(0), Some(0)).unwrap();
    } else {
        caller.own(&program);
    }
    fs::set_permissions(&program, fs::Permissions::from_mode(0o6755)).unwrap();
    let finished = mounted(caller, tree.path(), "/m:rw", "/m/id -u; /m/id -g");
    assert_eq!(finished.assert_success().stdout(), "1000\n1000\n");
});

// The host itself, however it is spelled.
callers!(never_the_host_itself, |caller| {
    let links = caller.directory();
    let link = links.path().join("to-run");
    symlink("/run", &link).unwrap();
    let own = match caller {
        Caller::Root => vec!["/run/agentbox".to_owned(), "/var".to_owned(), "/var/lib".to_owned()],
        Caller::Subordinate | Caller::Single => {
            let home = format!("/home/{}", caller.user());
            let runtime = format!("/tmp/agentbox-{}", caller.uid());
            vec![format!("{runtime}/sandboxes"), runtime, "/tmp".to_owned(), home, "/home".to_owned()]
        }
    };
    let host =
        ["/", "/proc", "/proc/self", "/sys", "/sys/fs", "/dev", "/dev/shm", "/run", "/var/run", "/usr/.."];
    let link = link.display().to_string();
    for source in host.into_iter().chain([link.as_str()]).chain(own.iter().map(String::as_str)) {
        for access in ["", ":rw"] {
            let mount = format!("{source}:/x{access}");
            let finished = Agentbox::shipped(caller).options(["--mount", &mount]).run(["ls", "/x"]);
            let stderr = finished.assert_refused().stderr();
            assert!(stderr.contains("may not be mounted: it is, or holds, /"), "{mount}: {stderr}");
            assert!(stderr.contains("hint: "), "{stderr}");
            assert_eq!(finished.stdout(), "");
        }
    }
});

// Our own directories also where the way to them goes over a link.
callers!(never_our_own_directories_behind_a_link, |caller| {
    let directory = caller.directory();
    let real = directory.path().join("real");
    make_directory(caller, &real);
    fs::set_permissions(&real, fs::Permissions::from_mode(0o700)).unwrap();
    let link = directory.path().join("link");
    symlink(&real, &link).unwrap();
    let mount = format!("{}:/x", real.display());
    let finished = Agentbox::shipped(caller)
        .env("XDG_RUNTIME_DIR", &link.display().to_string())
        .env("AGENTBOX_HOME", &link.join("state").display().to_string())
        .options(["--mount", &mount])
        .run(["true"]);
    assert!(finished.assert_refused().stderr().contains("may not be mounted: it is, or holds, "));
});

callers!(never_over_a_wall, |caller| {
    let tree = caller.directory();
    for target in
        ["/", "/proc", "/proc/sys", "/sys", "/dev/shm", "/run", "/etc", "/etc/ssl", "/.agentbox/init"]
    {
        let mount = format!("{}:{target}", tree.path().display());
        let stderr =
            Agentbox::shipped(caller).options(["--mount", &mount]).run(["true"]).assert_refused().stderr();
        assert!(
            stderr.contains(&format!("cause: '{target}' inside is not a place to mount on\n")),
            "{stderr}"
        );
    }
});

callers!(several_and_over_each_other, |caller| {
    let (outer, inner) = (caller.directory(), caller.directory());
    make_directory(caller, &outer.path().join("sub"));
    write(caller, &outer.path().join("sub/hidden"), "");
    write(caller, &inner.path().join("shown"), "");
    let mount =
        |tree: &tempfile::TempDir, target: &str| format!("--mount={}:{target}", tree.path().display());
    let options = [mount(&outer, "/data:rw"), mount(&inner, "/data/sub"), mount(&inner, "/data2:rw")];
    let script = "ls /data/sub /data2; touch /data/new /data2/new; touch /data/sub/not || echo refused";
    let finished = Agentbox::shipped(caller).options(&options).run(["sh", "-c", script]);
    let expected = "/data/sub:\nshown\n\n/data2:\nshown\nrefused\n";
    assert_eq!(finished.assert_success().stdout(), expected, "{}", finished.stderr());
    assert!(outer.path().join("new").exists() && inner.path().join("new").exists());
});
