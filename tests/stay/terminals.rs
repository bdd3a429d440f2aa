//! Terminals that outlive whoever looks at them.

use harness::callers;
use rustix::process::Signal;

use crate::home::Home;

/// Ctrl-P, Ctrl-Q.
const LEAVE: &str = "\x10\x11";

/// The id of the one sandbox that runs.
#[track_caller]
fn only(home: &Home, name: &str) -> String {
    let list = home.say(&["ls", "--json"]);
    let list: serde_json::Value = serde_json::from_slice(&list.assert_success().stdout).unwrap();
    let named = list.as_array().unwrap().iter().find(|entry| entry["name"] == name);
    named.unwrap_or_else(|| panic!("{name} is not in {list}"))["id"].as_str().unwrap().to_owned()
}

#[track_caller]
fn wait_until_gone(home: &Home, id: &str) {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
    while home.say(&["inspect", id]).code == 0 {
        assert!(std::time::Instant::now() < deadline, "{id} goes on");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

callers!(a_run_is_left_and_come_back_to, |caller| {
    let home = Home::new(caller);
    let name = format!("left-{}", caller.user());
    let script = "echo first; read line; echo \"[$line]\"; read line; exit 5";
    let mut pty = home.pty(&["run", "--name", &name, "--", "sh", "-c", script]);
    pty.wait_for("first");
    pty.type_keys(LEAVE);
    assert_eq!(pty.finish(), 0);
    pty.wait_for("detached from terminal 'main'");
    let id = only(&home, &name);

    let mut again = home.pty(&["attach", &id]);
    again.wait_for("first");
    assert!(again.is_raw());
    again.type_keys("typed\r");
    again.wait_for("[typed]");
    // The command ends, and with it the sandbox: the one who looks gets its code.
    again.type_keys("\r");
    assert_eq!(again.finish(), 5);
    wait_until_gone(&home, &id);
});

callers!(whoever_looks_may_be_killed_or_hung_up_on, |caller| {
    let home = Home::new(caller);
    // Who ends a login session asks everybody to end, and hangs up right after.
    for (number, signals) in
        [&[Signal::KILL][..], &[Signal::HUP], &[Signal::TERM, Signal::HUP]].iter().enumerate()
    {
        let name = format!("cut-{number}-{}", caller.user());
        let mut pty = home.pty(&["run", "--name", &name, "--", "sh", "-c", "echo here; read line; exit 3"]);
        pty.wait_for("here");
        for signal in *signals {
            pty.signal(*signal);
        }
        pty.wait_for_end();
        let id = only(&home, &name);
        let mut again = home.pty(&["attach", &id, "main"]);
        again.wait_for("here");
        again.type_keys("\r");
        assert_eq!(again.finish(), 3, "{signals:?}");
        wait_until_gone(&home, &id);
    }
});

callers!(an_editor_is_there_again_as_it_was, |caller| {
    let home = Home::new(caller);
    let id = home.create(&[]);
    home.exec(&id, &["sh", "-c", "seq 1 100 | sed 's/^/line /' > text"]);
    let mut pty = home.pty(&["exec", "--terminal", "edit", &id, "--", "vi", "text"]);
    pty.wait_for("line 20");
    pty.type_keys("Gochanged here\x1b");
    pty.wait_for("changed here");
    pty.type_keys(LEAVE);
    assert_eq!(pty.finish(), 0);
    // What vi had taken is given back: the other screen is left.
    pty.wait_for("\x1b[?1049l");

    let mut again = home.pty(&["attach", &id, "edit"]);
    again.wait_for("changed here");
    let seen = again.seen();
    assert!(seen.contains("\x1b[?1049h") && seen.contains("line 100"), "{seen:?}");
    again.type_keys(":wq\r");
    assert_eq!(again.finish(), 0);
    assert_eq!(home.exec(&id, &["tail", "-n", "1", "text"]), "changed here\n");
});

callers!(two_look_at_one_terminal, |caller| {
    let home = Home::new(caller);
    let id = home.create(&[]);
    let script = "echo ready; while read line; do echo \"[$line]\"; done";
    let first = home.pty(&["exec", "--terminal", "shared", &id, "--", "sh", "-c", script]);
    first.wait_for("ready");
    let second = home.pty(&["attach", &id]);
    second.wait_for("ready");
    first.type_keys("from the first\r");
    second.wait_for("[from the first]");
    second.type_keys("from the second\r");
    first.wait_for("[from the second]");
    home.say(&["send", "--enter", &id, "shared", "from a script"]).assert_success();
    first.wait_for("[from a script]");
    second.wait_for("[from a script]");
    let listed = home.say(&["terminals", &id]).assert_success().stdout();
    assert!(listed.contains("shared") && listed.contains("while read line"), "{listed}");
});

callers!(terminals_that_are_not_there_or_taken, |caller| {
    let home = Home::new(caller);
    let id = home.create(&[]);
    home.say(&["attach", &id]).assert_refused();
    home.say(&["send", &id, "text"]).assert_refused();
    let first = home.pty(&["exec", "--terminal", "one", &id, "--", "sleep", "600"]);
    home.wait_for_terminals(&id, 1);
    let mut taken = home.pty(&["exec", "--terminal", "one", &id, "--", "true"]);
    assert_eq!(taken.finish(), 125);
    let second = home.pty(&["exec", "--terminal", "two", &id, "--", "sleep", "600"]);
    home.wait_for_terminals(&id, 2);
    let said = home.say(&["attach", &id]);
    assert!(said.assert_refused().stderr().contains("one, two"), "{}", said.stderr());
    home.say(&["attach", &id, "three"]).assert_refused();
    drop((first, second));
});

callers!(the_size_is_that_of_the_last_who_came, |caller| {
    let home = Home::new(caller);
    let id = home.create(&[]);
    let script = "trap 'stty size' WINCH; echo ready; while :; do sleep 0.05; done";
    let first = home.pty(&["exec", "--terminal", "sized", &id, "--", "sh", "-c", script]);
    first.wait_for("ready");
    first.resize(30, 100);
    first.wait_for("30 100");
    let second = home.pty(&["attach", &id]);
    second.wait_for("24 80");
});

callers!(whoever_is_killed_before_the_command_runs_leaves_nothing, |caller| {
    let home = Home::new(caller);
    let name = format!("early-{}", caller.user());
    for round in 0..20_u64 {
        let pty = home.pty(&["run", "--name", &name, "--", "sleep", "600"]);
        std::thread::sleep(std::time::Duration::from_micros(700 * round));
        pty.signal(Signal::KILL);
        drop(pty);
        // Either the command runs, and can be come back to, or there is no sandbox at all.
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
        loop {
            let said = home.say(&["terminals", "--json", &name]);
            if said.code == 125 {
                break;
            }
            if said.stdout().contains("sleep") {
                home.say(&["stop", "--time", "0", &name]).assert_success();
                break;
            }
            assert!(std::time::Instant::now() < deadline, "round {round}: it idles: {}", said.stdout());
        }
    }
});

callers!(a_terminal_can_be_had_without_anybody_at_it, |caller| {
    let home = Home::new(caller);
    let id = home.create(&[]);
    let script = "test -t 0 && stty size; read line; echo \"[$line]\"; read line";
    home.say(&["exec", "--detach", "--tty", "--terminal", "alone", &id, "--", "sh", "-c", script])
        .assert_success();
    home.say(&["send", "--enter", &id, "alone", "typed"]).assert_success();
    let pty = home.pty(&["attach", &id, "alone"]);
    pty.wait_for("24 80");
    pty.wait_for("[typed]");
    // Without being asked for there is none, also where the one who starts it sits at a terminal.
    let mut pty = home.pty(&["exec", "--detach", &id, "--", "sh", "-c", "test -t 0 || echo pipes > f"]);
    assert_eq!(pty.finish(), 0);
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
    while home.say(&["exec", &id, "--", "cat", "f"]).stdout() != "pipes\n" {
        assert!(std::time::Instant::now() < deadline);
    }
});
