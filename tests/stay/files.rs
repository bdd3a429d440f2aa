//! Files and trees in and out, by `cp`.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

use harness::callers;

use crate::home::Home;

callers!(a_tree_goes_in_and_comes_out_as_it_was, |caller| {
    let home = Home::new(caller);
    let id = home.create(&[]);
    let here = caller.directory();
    let tree = here.path().join("tree");
    fs::create_dir_all(tree.join("deep/er")).unwrap();
    fs::write(tree.join("deep/file"), "contents").unwrap();
    fs::set_permissions(tree.join("deep/file"), fs::Permissions::from_mode(0o640)).unwrap();
    fs::write(tree.join("run.sh"), "#!/bin/sh\necho ran\n").unwrap();
    fs::set_permissions(tree.join("run.sh"), fs::Permissions::from_mode(0o4755)).unwrap();
    symlink("deep/file", tree.join("link")).unwrap();
    for path in
        [&tree, &tree.join("deep"), &tree.join("deep/er"), &tree.join("deep/file"), &tree.join("run.sh")]
    {
        caller.own(path);
    }
    let source = tree.display().to_string();

    home.say(&["cp", &source, &format!("{id}:/workspace")]).assert_success();
    let shown = home.exec(
        &id,
        &[
            "sh",
            "-c",
            "cat tree/link; stat -c '%a %U' tree/deep/file tree/run.sh; readlink tree/link; tree/run.sh",
        ],
    );
    assert_eq!(shown, "contents640 agent\n755 agent\ndeep/file\nran\n");
    // Under another name, where that is not there.
    home.say(&["cp", &source, &format!("{id}:other")]).assert_success();
    assert_eq!(home.exec(&id, &["cat", "/workspace/other/deep/file"]), "contents");

    let back = here.path().join("back");
    home.say(&["cp", &format!("{id}:tree"), &back.display().to_string()]).assert_success();
    assert_eq!(fs::read_to_string(back.join("deep/file")).unwrap(), "contents");
    assert_eq!(fs::read_link(back.join("link")).unwrap().to_str(), Some("deep/file"));
    let metadata = fs::metadata(back.join("deep/file")).unwrap();
    assert_eq!((metadata.mode() & 0o7777, metadata.uid()), (0o640, caller.uid()));
    // Into a directory that is there.
    home.say(&["cp", &format!("{id}:tree/run.sh"), &here.path().display().to_string()]).assert_success();
    assert!(here.path().join("run.sh").exists());
});

callers!(archives_go_through, |caller| {
    let home = Home::new(caller);
    let id = home.create(&[]);
    home.exec(&id, &["sh", "-c", "mkdir d; echo one > d/1; echo two > d/2"]);
    let archive = home.say(&["cp", &format!("{id}:d"), "-"]);
    let archive = &archive.assert_success().stdout;
    home.say_with(archive, &["cp", "-", &format!("{id}:/tmp")]).assert_success();
    assert_eq!(home.exec(&id, &["cat", "/tmp/d/1", "/tmp/d/2"]), "one\ntwo\n");
    // What is no archive is refused, and so is one that leaves.
    home.say_with(b"no archive at all, though long enough", &["cp", "-", &format!("{id}:/tmp")])
        .assert_refused();
});

callers!(nothing_that_an_agent_puts_there_hangs_or_escapes, |caller| {
    let home = Home::new(caller);
    let id = home.create(&[]);
    let here = caller.directory();
    let canary = here.path().join("canary");
    fs::write(&canary, "untouched").unwrap();
    caller.own(&canary);
    let script = "mkdir t; mkfifo t/pipe; ln -s ../../canary t/up; ln -s /etc/passwd t/passwd; echo fine > t/file; \
                  ln t/file t/hard; python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"t/socket\")'";
    home.exec(&id, &["sh", "-c", script]);
    let out = here.path().join("out");
    fs::create_dir(&out).unwrap();
    caller.own(&out);
    let said = home.say(&["cp", &format!("{id}:t"), &out.display().to_string()]);
    let said = said.assert_success().stderr();
    assert!(said.contains("'t/pipe' (a pipe)") && said.contains("'t/socket' (a socket)"), "{said}");
    assert_eq!(fs::read_to_string(out.join("t/file")).unwrap(), "fine\n");
    // Links come as links: nothing of the owner's was read in their place.
    assert_eq!(fs::read_link(out.join("t/passwd")).unwrap().to_str(), Some("/etc/passwd"));
    // The same once more, over what is there: a link is replaced and never written through.
    home.exec(&id, &["sh", "-c", "rm t/up; echo gotcha > t/up"]);
    home.say(&["cp", &format!("{id}:t"), &out.display().to_string()]).assert_success();
    assert_eq!(fs::read_to_string(&canary).unwrap(), "untouched");
    assert_eq!(fs::read_to_string(out.join("t/up")).unwrap(), "gotcha\n");
    // A pipe by itself is refused at once.
    home.say(&["cp", &format!("{id}:t/pipe"), &out.display().to_string()]).assert_refused();
});

callers!(a_tree_that_is_changed_meanwhile_leads_nowhere, |caller| {
    let home = Home::new(caller);
    let id = home.create(&[]);
    let here = caller.directory();
    // A directory and a link to the host's own files take turns while the tree is copied out and in.
    let script = "mkdir -p t/d; echo inside > t/d/hostname; echo ready; \
                  while :; do mv t/d t/e; ln -s /etc t/d; rm t/d; mv t/e t/d; done";
    let number = home.say(&["exec", "--detach", &id, "--", "sh", "-c", script]).assert_success().stdout();
    let watching = home.begin(&["logs", "--follow", &id, number.trim()]);
    watching.wait_for("ready");
    for round in 0..50 {
        let out = here.path().join(format!("out-{round}"));
        // It may find nothing there at the moment; what it finds is from inside.
        home.say(&["cp", &format!("{id}:t"), &out.display().to_string()]);
        for (path, is_link) in
            [(out.join("d/hostname"), out.join("d").is_symlink()), (out.join("e/hostname"), false)]
        {
            if !is_link && let Ok(text) = fs::read_to_string(&path) {
                assert_eq!(text, "inside\n", "{}", path.display());
            }
        }
    }
    home.say(&["stop", "--time", "0", &id]).assert_success();
    let _ = watching.finish();
});

callers!(a_file_that_cannot_be_read_is_missed_aloud, |caller| {
    let home = Home::new(caller);
    let id = home.create(&[]);
    home.exec(&id, &["sh", "-c", "mkdir t; echo fine > t/a; echo closed > t/b; chmod 0 t/b"]);
    let here = caller.directory();
    let out = here.path().join("out");
    let said = home.say(&["cp", &format!("{id}:t"), &out.display().to_string()]);
    assert!(said.assert_refused().stderr().contains("'t/b' (it cannot be read)"), "{}", said.stderr());
    assert_eq!(fs::read_to_string(out.join("a")).unwrap(), "fine\n");
    // Into the sandbox the same; root can read all that there is.
    if caller.uid() != 0 {
        let tree = here.path().join("tree");
        fs::create_dir(&tree).unwrap();
        fs::write(tree.join("closed"), "").unwrap();
        fs::set_permissions(tree.join("closed"), fs::Permissions::from_mode(0o000)).unwrap();
        caller.own(&tree);
        let said = home.say(&["cp", &tree.display().to_string(), &format!("{id}:/tmp")]);
        assert!(
            said.assert_refused().stderr().contains("'tree/closed' (it cannot be read)"),
            "{}",
            said.stderr()
        );
    }
});

callers!(what_cannot_be_copied_is_said, |caller| {
    let home = Home::new(caller);
    let id = home.create(&[]);
    let here = caller.directory();
    let place = here.path().display().to_string();
    for words in [
        ["cp".to_owned(), "/no/such".to_owned(), format!("{id}:/tmp")],
        ["cp".to_owned(), format!("{id}:/no/such"), place.clone()],
        ["cp".to_owned(), format!("{id}:"), place.clone()],
        ["cp".to_owned(), place.clone(), place.clone()],
        ["cp".to_owned(), format!("{id}:/tmp"), format!("{id}:/tmp/x")],
        ["cp".to_owned(), "/etc/hostname".to_owned(), format!("{id}:/etc/x")],
        ["cp".to_owned(), "/etc/hostname".to_owned(), format!("{id}:/proc/1/mem")],
        ["cp".to_owned(), "/etc/hostname".to_owned(), "nobody:/tmp".to_owned()],
    ] {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        home.say(&words).assert_refused();
    }
    home.say(&["stop", &id]).assert_success();
    home.say(&["cp", "/etc/hostname", &format!("{id}:/tmp")]).assert_refused();
});

callers!(a_sandbox_that_can_start_nothing_says_so, |caller| {
    let home = Home::new(caller);
    let id = home.create(&["--pids", "16"]);
    let fill = "import os, time
while True:
    try:
        if os.fork() == 0: time.sleep(600)
    except OSError:
        print('full', flush=True)
        time.sleep(0.05)";
    let filling = home.begin(&["exec", &id, "--", "python3", "-c", fill]);
    filling.wait_for("full");
    let here = caller.directory();
    fs::write(here.path().join("f"), "").unwrap();
    let file = here.path().join("f").display().to_string();
    let said = home.say(&["cp", &file, &format!("{id}:/workspace")]);
    // Where no cgroup counts and init is another user than the agent, there is room for one more; gVisor's kernel counts
    // each user's processes, too, and asks when one is made, not when it becomes another user's.
    let is_counted_by_user = caller == Caller::Subordinate
        || (harness::backend() == policy::Backend::Gvisor && caller == Caller::Root);
    if !is_counted_by_user {
        let said = said.assert_refused().stderr();
        assert!(said.contains("nobody could be started inside") && said.contains("--pids"), "{said}");
        let said = home.say(&["exec", &id, "--", "true"]);
        let said = said.assert_refused().stderr();
        assert!(said.contains("cannot start 'true'") && said.contains("--pids"), "{said}");
    }
    home.say(&["stop", "--time", "0", &id]).assert_success();
    let _ = filling.finish();
});
