//! The whole life of a sandbox, as a person lives it.

use std::time::{Duration, Instant};

use harness::{callers, callers_apart, leaks_of};

use crate::home::Home;

callers!(made_used_ended_started_again_and_removed, |caller| {
    let home = Home::new(caller);
    let id = home.create(&["--name", "box", "--env", "COLOUR=blue"]);
    assert_eq!(home.entry(&id)["state"], "running");
    assert_eq!(home.entry(&id)["name"], "box");

    assert_eq!(home.exec("box", &["sh", "-c", "echo $COLOUR; pwd; id -u"]), "blue\n/workspace\n1000\n");
    home.exec(&id, &["sh", "-c", "echo kept > f; echo out > /mnt/user-data/outputs/o; echo gone > /tmp/t"]);
    assert_eq!(home.exec(&id[..5], &["cat", "f", "/tmp/t"]), "kept\ngone\n");
    home.say(&["exec", "box", "--", "sh", "-c", "exit 7"]).assert_code(7);
    let with =
        ["exec", "--env", "COLOUR=red", "--workdir", "/tmp", "box", "--", "sh", "-c", "echo $COLOUR; pwd"];
    assert_eq!(home.say(&with).assert_success().stdout(), "red\n/tmp\n");
    assert_eq!(home.say_with(b"through", &["exec", "box", "--", "cat"]).assert_success().stdout(), "through");

    home.say(&["stop", "box"]).assert_success();
    assert_eq!(home.entry(&id)["state"], "stopped");
    assert_eq!(home.entry(&id)["reason"], "stopped");
    home.say(&["exec", "box", "--", "true"]).assert_refused();

    home.say(&["start", "box"]).assert_success();
    assert_eq!(home.exec("box", &["cat", "f", "/mnt/user-data/outputs/o"]), "kept\nout\n");
    home.say(&["exec", "box", "--", "cat", "/tmp/t"]).assert_code(1);
    home.say(&["start", "box"]).assert_refused();

    home.say(&["rm", "box"]).assert_refused();
    home.say(&["rm", "--force", "box"]).assert_success();
    assert!(home.list().is_empty() && !home.kept(&id).exists());
    home.say(&["exec", "box", "--", "true"]).assert_refused();
});

callers!(a_detached_command_goes_on_and_takes_the_sandbox_with_it, |caller| {
    let home = Home::new(caller);
    let script = "echo begun; read line; echo never";
    let said =
        home.say(&["run", "--detach", "--", "sh", "-c", "echo begun; sleep 0.5; echo done > f; exit 9"]);
    let id = said.assert_success().stdout().trim().to_owned();
    assert_eq!(home.entry(&id)["state"], "running");
    assert_eq!(home.say(&["wait", &id]).assert_success().stdout(), "9\n");
    let entry = home.entry(&id);
    assert_eq!(
        (&entry["state"], &entry["reason"], &entry["code"]),
        (&"stopped".into(), &"exited".into(), &9.into())
    );
    assert_eq!(std::fs::read_to_string(home.kept(&id).join("workspace/f")).unwrap(), "done\n");
    // Its stdin is at its end, as nobody is there to type.
    let id =
        home.say(&["run", "--detach", "--", "sh", "-c", script]).assert_success().stdout().trim().to_owned();
    home.say(&["wait", &id]).assert_success();
});

callers!(a_command_that_cannot_start_leaves_no_sandbox, |caller| {
    let home = Home::new(caller);
    home.say(&["run", "--detach", "--", "no-such-program"]).assert_code(127);
    home.say(&["create", "--mount", "/no/such:/x"]).assert_refused();
    assert!(home.list().is_empty(), "{:?}", home.list());
});

callers!(what_an_attached_run_has_can_be_seen_and_entered, |caller| {
    let home = Home::new(caller);
    let running =
        home.begin(&["run", "--name", "attached", "--", "sh", "-c", "echo here > f; echo ready; cat"]);
    running.wait_for("ready");
    let listed = home.say(&["ls"]).assert_success().stdout();
    assert!(listed.contains("attached"), "{listed}");
    assert_eq!(home.exec("attached", &["cat", "f"]), "here\n");
    running.finish().assert_success();
    home.say(&["exec", "attached", "--", "true"]).assert_refused();
});

callers!(files_of_the_workspace_belong_to_the_owner, |caller| {
    use std::os::unix::fs::MetadataExt as _;
    let home = Home::new(caller);
    let id = home.create(&[]);
    home.exec(&id, &["sh", "-c", "touch f; mkdir -p d/e; chmod 0 d"]);
    let metadata = std::fs::metadata(home.kept(&id).join("workspace/f")).unwrap();
    assert_eq!((metadata.uid(), metadata.gid()), (caller.uid(), caller.gid()));
    // What was closed against reading is removed all the same.
    home.say(&["rm", "--force", &id]).assert_success();
    assert!(!home.kept(&id).exists());
});

// A process has only so many descriptors, and a path only so many bytes.
callers!(a_workspace_of_any_depth_is_removed, |caller| {
    let home = Home::new(caller);
    let id = home.create(&[]);
    let script = "import os; top = os.open('.', 0)
for _ in range(3000): os.mkdir('d'); os.chdir('d')
os.mkdir('done', dir_fd=top)";
    home.say(&["exec", "--detach", &id, "--", "python3", "-c", script]).assert_success();
    let deadline = Instant::now() + Duration::from_secs(20);
    while !home.kept(&id).join("workspace/done").exists() {
        assert!(Instant::now() < deadline, "it is never made");
        // It cannot be watched, and is paused for that.
        let _ = home.say(&["resume", &id]);
    }
    let removed = home.say_behind(&["prlimit", "--nofile=256"], &["rm", "--force", &id]);
    removed.assert_success();
    assert_eq!(std::fs::read_dir(home.state().join("sandboxes")).unwrap().count(), 0, "{removed:?}");
});

callers_apart!(nothing_is_left_of_many, |caller| {
    let home = Home::new(caller);
    let before = leaks_of(caller);
    let ids: Vec<String> = (0..5).map(|_| home.create(&[])).collect();
    for id in &ids {
        home.say(&["exec", "--detach", id, "--", "sleep", "600"]).assert_success();
    }
    std::thread::sleep(Duration::from_millis(50));
    let all: Vec<&str> = ids.iter().map(String::as_str).collect();
    home.say(&[&["rm", "--force"][..], &all].concat()).assert_success();
    before.assert_nothing_left();
    assert!(home.list().is_empty());
});
