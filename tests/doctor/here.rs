//! What the doctor finds on the machine that the tests run on, which has every wall that is never optional.

use harness::{binaries, callers, callers_apart, copy_program, leaks_of};
use policy::Wall;

use crate::checkup::{command, examine};

callers_apart!(a_sound_machine_is_said_to_be_one, |caller| {
    let before = leaks_of(caller);
    let checkup = examine(caller, &[]);
    assert_eq!(checkup.code, 0, "{:#}", checkup.json);
    for wall in Wall::ALL.iter().filter(|wall| wall.name().ends_with("-namespace") || **wall == Wall::Seccomp)
    {
        assert_eq!(checkup.state(wall.name()), "ok");
    }
    for name in ["fresh-proc", "bind-mount", "read-only-tree", "devpts", "disk-limit", "sandbox"] {
        assert_eq!(checkup.state(name), "ok", "{:?}", checkup.probe(name));
    }
    before.assert_nothing_left();
});

callers!(the_form_is_the_documented_one, |caller| {
    let json = examine(caller, &[]).json;
    let keys = |value: &serde_json::Value| -> Vec<String> {
        let mut keys: Vec<String> = value.as_object().unwrap().keys().cloned().collect();
        keys.sort();
        keys
    };
    assert_eq!(keys(&json), ["caller", "kernel", "probes", "report", "version"]);
    assert_eq!(keys(&json["caller"]), ["gid", "name", "uid"]);
    assert_eq!(json["caller"]["uid"], caller.uid());
    for finding in json["probes"].as_array().unwrap() {
        assert_eq!(keys(finding), ["detail", "fix", "name", "state"]);
        assert!(finding["fix"].is_null() || finding["state"] != "ok", "{finding}");
    }
    let walls = Wall::ALL.iter().filter(|wall| policy::Backend::Native.has_wall(**wall));
    assert_eq!(json["report"].as_array().unwrap().len(), walls.count());
});

callers!(ids_are_told_by_who_calls, |caller| {
    let checkup = examine(caller, &[]);
    let (state, detail, fix) = checkup.probe("id-range");
    match caller {
        Caller::Root => assert_eq!((state, fix), ("ok", None), "{detail}"),
        Caller::Subordinate => assert_eq!((state, fix), ("ok", None), "{detail}"),
        Caller::Single => {
            assert_eq!(state, "weaker");
            let fix = fix.unwrap();
            assert!(fix.contains("usermod --add-subuids") && fix.ends_with(caller.user()), "{fix}");
        }
    }
});

callers!(the_table_is_plain_text_on_stdout, |caller| {
    let output = command(caller, &[]).output().unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert!(!stdout.contains('\u{1b}'), "no colour without a terminal: {stdout}");
    assert!(stdout.lines().any(|line| line.starts_with("ok        sandbox")), "{stdout}");
    assert!(stdout.ends_with("with every wall that is never optional\n"), "{stdout}");
});

callers!(a_failure_of_its_own_is_told_from_a_finding, |caller| {
    // Without the program that becomes PID 1 beside it, nothing can be found out.
    let directory = caller.directory();
    let lonely = directory.path().join("agentbox");
    assert!(copy_program(&binaries().shipped(), &lonely));
    let output = caller.command(&lonely).arg("doctor").output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), output.stdout.is_empty()), (Some(125), true), "{stderr}");
    assert!(stderr.starts_with("error: ") && stderr.contains("\nhint: "), "{stderr}");
});
