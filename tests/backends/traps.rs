//! What a driver of these programs has to know, each as a test of what would go wrong. More of it is held elsewhere: that
//! gVisor's kernel is nobody of the host's, in a user namespace of its own, by its golden posture (isolation); what it leaves
//! of its state and mounts, by `endings`; codes by `same`; panics and whoever vanishes, by `broken`; the address and the routes that
//! it takes at each start, by `own_stack`; the way back of datagrams, by every name that network asks for; that what is
//! bound shows, as its root is never "/", by the mounts of functional; memory in /dev/shm, by exhaustion 53.

use std::fs;

use harness::callers;
use policy::Backend;

use crate::{backends, has_gvisor, with};

// runsc makes missing mount points in the root that it is given, also where that is read-only.
callers!(nothing_appears_in_the_roots_of_the_host, |caller| {
    let listed = |path: &str| {
        let mut names: Vec<_> = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let before = [listed("/"), listed("/usr"), listed("/run")];
    let directory = caller.directory();
    let mount = format!("{}:/new/place:rw", directory.path().display());
    for backend in backends() {
        with(caller, backend).options(["--mount", &mount]).run(["touch", "/new/place/file"]).assert_success();
    }
    assert!(directory.path().join("file").exists());
    assert_eq!([listed("/"), listed("/usr"), listed("/run")], before);
});

// A tight limit of the host's would end gVisor's kernel; its own limit refuses a process and nothing more.
callers!(too_many_processes_are_refused_and_the_sandbox_goes_on, |caller| {
    for backend in backends() {
        let script = "my @started;
            while (@started < 150 && defined(my $pid = fork)) { if (!$pid) { sleep 60; exit } push @started, $pid }
            print scalar @started; kill 'KILL', @started; exit 9";
        let finished = with(caller, backend).options(["--pids", "40"]).run(["perl", "-e", script]);
        // Some were started and most were not, and who started them goes on.
        let started = finished.assert_code(9).stdout().parse::<u32>().unwrap();
        assert!((10..110).contains(&started), "{backend}: {started}");
    }
});

// Only what is the sandbox's alone may be kept in its kernel's memory: the owner changes the rest at any time.
callers!(what_the_owner_changes_is_seen_inside, |caller| {
    if !has_gvisor() {
        return;
    }
    let directory = caller.directory();
    let file = directory.path().join("file");
    fs::write(&file, "first\n").unwrap();
    caller.own(&file);
    let mount = format!("{}:/data:rw", directory.path().display());
    let script = "cat /data/file; read go; cat /data/file; ls /data; echo inside > /data/back";
    let mut running = with(caller, Backend::Gvisor).options(["--mount", &mount]).start(["sh", "-c", script]);
    running.wait_for("first\n");
    fs::write(&file, "second, and longer than the first\n").unwrap();
    fs::write(directory.path().join("other"), "").unwrap();
    std::io::Write::write_all(running.stdin.as_mut().unwrap(), b"go\n").unwrap();
    let stdout = running.finish().assert_success().stdout();
    assert!(stdout.contains("second, and longer than the first\n"), "{stdout}");
    assert!(stdout.contains("other"), "{stdout}");
    assert_eq!(fs::read_to_string(directory.path().join("back")).unwrap(), "inside\n");
});

// Its kernel keeps a descriptor for each entry that it remembers, and has no more of them than it may have.
callers!(a_tree_of_many_files_is_read_without_running_out_of_descriptors, |caller| {
    if !has_gvisor() {
        return;
    }
    let script = "mkdir t; cd t; for d in $(seq 60); do mkdir $d; (cd $d; seq 300 | xargs touch); done; find . -type f | wc -l; \
                  find . -type f | xargs cat | wc -c";
    let limited = ["/usr/bin/prlimit", "--nofile=4096:4096"];
    let finished = with(caller, Backend::Gvisor).behind(limited).run(["bash", "-c", script]);
    assert_eq!(finished.assert_success().stdout(), "18000\n0\n");
});

// The host's kernel keeps a mounted place where it is only for those in whose namespace it is mounted, which gVisor's kernel is
// not where it renames files itself: then the owner's next git command would run what the agent has put there instead.
callers!(what_is_covered_stays_where_it_is, |caller| {
    for backend in backends() {
        let tree = caller.directory();
        let write = |path: &str, text: &str| {
            let path = tree.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text).unwrap();
            path.ancestors().take_while(|above| above.starts_with(tree.path())).for_each(|it| caller.own(it));
        };
        write(".git/config", "[core]\n");
        write("deep/er/.git/config", "[core]\n");
        write("link/.git", "gitdir: ../.git\n");
        let attack = "mv .git x; mv deep x; mv deep/er x; mv deep/er/.git x; mv link x; mv link/.git x; rm -f link/.git; \
                      mkdir e; mv -T e .git; echo evil > f; mv -T f link/.git; rm -rf .git deep link; echo tried > here";
        let script = format!(
            "cd /m; ({attack}) 2>/dev/null; unshare -Urm sh -c 'umount .git; {attack}' 2>/dev/null; true"
        );
        let mount = format!("{}:/m:rw", tree.path().display());
        with(caller, backend).options(["--mount", &mount]).run(["sh", "-c", &script]).assert_success();
        let read = |path: &str| fs::read_to_string(tree.path().join(path)).unwrap_or_default();
        let found = ["here", ".git/config", "deep/er/.git/config", "link/.git"].map(read);
        assert_eq!(found, ["tried\n", "[core]\n", "[core]\n", "gitdir: ../.git\n"], "{backend}");
    }
});

// With `--isolation strict` it asks another process for files; what it does with a network is in own_stack.rs.
callers!(strict_isolation_takes_its_own_kernel_for_everything, |caller| {
    if !has_gvisor() || caller != Caller::Root {
        return;
    }
    let strict = || with(caller, Backend::Gvisor).options(["--isolation", "strict", "--report"]);
    let finished = strict().run(["sh", "-c", "echo mine > file; cat file; grep -c directfs /proc/mounts"]);
    assert_eq!(finished.assert_code(1).stdout(), "mine\n0\n");
    assert!(finished.stderr().contains("asks another process for files"), "{}", finished.stderr());
});

// The platform that was found once is not looked for again: each try is a whole sandbox, which leaves its record.
callers!(a_second_start_asks_nobody_what_the_program_is, |caller| {
    if !has_gvisor() {
        return;
    }
    let directory = caller.directory();
    let home = directory.path().join("state");
    let sandboxes = || fs::read_dir(home.join("audit")).map_or(0, Iterator::count);
    let start = || {
        let before = sandboxes();
        let agentbox = with(caller, Backend::Gvisor).env("AGENTBOX_HOME", &home.display().to_string());
        agentbox.run(["true"]).assert_success();
        sandboxes() - before
    };
    assert!(start() > 1, "a program that nobody has met was not tried");
    assert_eq!([start(), start()], [1, 1]);
    // What is known is known of this file alone.
    let known = home.join("backends.json");
    fs::write(&known, fs::read_to_string(&known).unwrap().replace("\"inode\": ", "\"inode\": 1")).unwrap();
    assert!(start() > 1, "another program was not tried");
});
