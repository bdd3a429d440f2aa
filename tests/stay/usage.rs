//! What sandboxes use, and the processes in them, as the host sees them.

use std::time::{Duration, Instant};

use harness::{backend, callers};
use serde_json::Value;

use crate::home::Home;

fn processes(home: &Home, id: &str) -> Vec<Value> {
    let said = home.say(&["ps", "--json", id]);
    serde_json::from_slice(&said.assert_success().stdout).unwrap()
}

/// Those whose command has this word.
#[track_caller]
fn find<'list>(list: &'list [Value], word: &str) -> &'list Value {
    let has = |process: &&Value| {
        process["command"].as_array().unwrap().iter().any(|part| part.as_str().unwrap() == word)
    };
    list.iter().find(has).unwrap_or_else(|| panic!("no {word} in {list:?}"))
}

callers!(what_each_exec_left_behind_is_known, |caller| {
    let home = Home::new(caller);
    let id = home.create(&[]);
    home.say(&["exec", "--detach", &id, "--", "sleep", "1000"]).assert_success();
    // One in its session, one that has left it, and one whose parents are gone.
    let script = "sleep 2000 & setsid sleep 3000 & (setsid sh -c 'sleep 4000 & exit'); exit 0";
    home.exec(&id, &["sh", "-c", script]);
    let list = processes(&home, &id);
    for (word, exec, left) in [("1000", 1, false), ("2000", 2, true), ("3000", 2, true), ("4000", 2, true)] {
        let process = find(&list, word);
        assert_eq!(
            (process["exec"].as_u64(), process["left"].as_bool()),
            (Some(exec), Some(left)),
            "{process}"
        );
        assert_eq!(process["user"], 1000);
        assert!(process["memory"].as_u64().unwrap() > 0);
        let inside = home.exec(&id, &["cat", &format!("/proc/{}/cmdline", process["pid"])]);
        assert_eq!(inside, format!("sleep\0{word}\0"));
    }
    assert_eq!(list.len(), 4, "{list:?}");
    let table = home.say(&["ps", &id]).assert_success().stdout();
    assert_eq!(table.matches("left behind").count(), 3, "{table}");
});

callers!(what_a_process_calls_itself_is_inert, |caller| {
    let home = Home::new(caller);
    let id = home.create(&[]);
    let script = "exec -a \"$(printf 'a\\033]0;x\\007\\033[31m\\nroot 1 b\\302\\233c')\" sleep 1000";
    home.say(&["exec", "--detach", &id, "--", "bash", "-c", script]).assert_success();
    let deadline = Instant::now() + Duration::from_secs(20);
    let table = loop {
        let table = home.say(&["ps", &id]).assert_success().stdout();
        if !table.contains("bash") || Instant::now() > deadline {
            break table;
        }
    };
    assert!(!table.contains(['\x1b', '\x07', '\u{9b}']), "{table:?}");
    assert!(table.lines().count() == 2 && table.contains("root 1 b"), "{table:?}");
});

// What the host sees can be looked at when there is room for nobody inside. A kernel of the sandbox's own counts for each
// user, and whoever tells is begun by init, which is another one where there are two ids.
callers!(one_that_is_full_is_looked_at_or_says_why_not, |caller| {
    let home = Home::new(caller);
    let id = home.create(&["--pids", "8"]);
    let script = "import os, time\ntry:\n  while os.fork(): pass\nexcept OSError: print('full', flush=True)\ntime.sleep(1000)";
    let running = home.begin(&["exec", &id, "--", "python3", "-c", script]);
    running.wait_for("full");
    let said = home.say(&["ps", &id]);
    if backend().has_own_kernel() && caller == Caller::Single {
        let said = said.assert_refused().stderr();
        assert!(said.contains("nobody could be started") && said.contains("hint: "), "{said}");
    } else {
        assert!(said.assert_success().stdout().matches("time.sleep(1000)").count() >= 4, "{said:?}");
    }
    home.say(&["stop", "--time", "1", &id]).assert_success();
});

callers!(who_is_busy_shows, |caller| {
    let home = Home::new(caller);
    let (busy, idle) = (home.create(&["--name", "busy"]), home.create(&[]));
    home.say(&["exec", "--detach", &busy, "--", "sh", "-c", "while :; do :; done"]).assert_success();
    let said = home.say(&["top", "--once", "--json", &busy, &idle]);
    let list: Vec<Value> = serde_json::from_slice(&said.assert_success().stdout).unwrap();
    let of = |id: &str| list.iter().find(|line| line["id"] == id).unwrap();
    assert!(of(&busy)["cpus"].as_f64().unwrap() > 0.05, "{list:?}");
    assert!(of(&idle)["cpus"].as_f64().unwrap() < of(&busy)["cpus"].as_f64().unwrap(), "{list:?}");
    assert!(of(&idle)["pids"].as_u64().unwrap() >= 1, "{list:?}");
    assert_eq!(of(&busy)["limits"]["pids"], 512);
    let table = home.say(&["top", "--once", "busy"]).assert_success().stdout();
    assert!(table.contains("busy") && table.lines().count() == 2, "{table}");
    home.say(&["stop", &idle]).assert_success();
    home.say(&["top", "--once", &idle]).assert_refused();
    home.say(&["ps", &idle]).assert_refused();
});

callers!(programs_are_answered_in_json, |caller| {
    let home = Home::new(caller);
    let id = home.create(&[]);
    let answer = |words: &[&str]| -> Value {
        serde_json::from_slice(&home.say(words).assert_success().stdout).unwrap()
    };
    for words in [&["pause", "--json", &id][..], &["resume", "--json", &id]] {
        assert_eq!(answer(words), serde_json::json!({"id": id}));
    }
    assert_eq!(answer(&["exec", "--detach", "--json", &id, "--", "true"]), serde_json::json!({"exec": 1}));
    assert_eq!(answer(&["stop", "--json", &id])["id"], id.as_str());
    for words in [&["update", "--json", "--pids", "99", &id][..], &["start", "--json", &id]] {
        assert_eq!(answer(words), serde_json::json!({"id": id}));
    }
    let other = answer(&["run", "--detach", "--json", "--", "true"]);
    let entry = home.entry(other["id"].as_str().unwrap());
    assert_eq!(entry["kept"], true, "{entry}");
    assert!(answer(&["gc", "--json"]).is_array());
    // It is about what goes on without us.
    home.say(&["run", "--json", "--", "true"]).assert_code(125);
});
