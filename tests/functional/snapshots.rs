//! Whole outputs as a person reads them, against files that are written and reviewed by hand. Nothing here
//! writes those files: whoever changes a word changes the file.

use std::fs;

use harness::{Caller, callers, workspace_root};

use crate::program::agentbox;

/// Compares all that a call says with `snapshots/NAME.txt`.
#[track_caller]
fn assert_says(caller: Caller, name: &str, words: &[&str]) {
    let finished = agentbox(caller, words);
    let mut said = format!("$ agentbox {}\n", words.join(" "));
    said.push_str(&normalised(&finished.stdout()));
    if !finished.stderr.is_empty() {
        said.push_str("-- stderr\n");
        said.push_str(&normalised(&finished.stderr()));
    }
    said.push_str(&format!("-- exit {}\n", finished.code));
    let path = workspace_root().join("tests/functional/snapshots").join(format!("{name}.txt"));
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert!(said == expected, "{} differs; what is said now is:\n{said}", path.display());
}

/// Without what differs between machines and runs: ids of ranges, the kernel's Landlock, heads of records, our version.
fn normalised(text: &str) -> String {
    let text = text.replace(env!("CARGO_PKG_VERSION"), "VERSION");
    let mut lines = Vec::new();
    for line in text.lines() {
        let before = |mark: &str| line.find(mark).map(|at| &line[..at + mark.len()]);
        let number = before("ids of its own from ").or(before("subuids from ")).or(before("interface "));
        let number = number.or(before("head sha256:"));
        lines.push(number.map_or_else(|| line.to_owned(), |start| format!("{start}N")));
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

#[test]
fn help() {
    let caller = Caller::ALL.into_iter().find(|caller| caller.is_available()).unwrap();
    assert_says(caller, "nothing", &[]);
    assert_says(caller, "help", &["--help"]);
    assert_says(caller, "help-run", &["run", "--help"]);
    assert_says(caller, "help-run-short", &["run", "-h"]);
    for command in [
        "config",
        "create",
        "exec",
        "ls",
        "inspect",
        "start",
        "stop",
        "wait",
        "pause",
        "resume",
        "update",
        "ps",
        "top",
        "cp",
        "diff",
        "apply",
        "discard",
        "logs",
        "attach",
        "terminals",
        "send",
        "port",
        "net",
        "policy",
        "proxy",
        "rm",
        "audit",
        "gc",
        "image",
        "commit",
    ] {
        assert_says(caller, &format!("help-{command}"), &[command, "--help"]);
    }
    for command in ["pull", "import", "bootstrap", "ls", "inspect", "tag", "rm", "gc", "export"] {
        assert_says(caller, &format!("help-image-{command}"), &["image", command, "--help"]);
    }
    assert_says(caller, "help-proxy-token", &["proxy", "token", "--help"]);
    assert_says(caller, "help-doctor", &["doctor", "--help"]);
    assert_says(caller, "help-setup", &["setup", "--help"]);
    assert_says(caller, "help-help", &["help", "--help"]);
    assert_says(caller, "help-version", &["version", "--help"]);
    assert_says(caller, "help-completions", &["completions", "--help"]);
    assert_says(caller, "help-man", &["man", "--help"]);
    assert_says(caller, "version", &["version"]);
    assert_says(caller, "version-flag", &["--version"]);
}

#[test]
fn help_by_a_word_of_its_own_is_the_same() {
    let caller = Caller::ALL.into_iter().find(|caller| caller.is_available()).unwrap();
    for command in [&[][..], &["run"], &["image"], &["image", "pull"], &["proxy", "token"], &["help"]] {
        let asked = agentbox(caller, &[&["help"], command].concat());
        let told = agentbox(caller, &[command, &["--help"]].concat());
        assert_eq!(asked.assert_success().stdout(), told.assert_success().stdout(), "{command:?}");
        assert!(asked.stdout().contains("Usage: agentbox"), "{command:?}");
    }
}

#[test]
fn errors() {
    let _turn = harness::together();
    let caller = Caller::ALL.into_iter().find(|caller| caller.is_available()).unwrap();
    // Without the report of missing walls, which is as each caller has it.
    assert_says(caller, "error-no-command", &["run"]);
    assert_says(caller, "error-agent", &["run", "claude", "--", "-p", "fix it"]);
    assert_says(caller, "error-size", &["run", "--memory", "5Q", "--", "true"]);
    assert_says(caller, "error-option", &["run", "--moun", "/a:/b", "--", "true"]);
    assert_says(caller, "error-image-option", &["image", "import", "--frob", "app.tar"]);
    assert_says(caller, "error-image-name", &["image", "pull", "UPPER"]);
    assert_says(caller, "error-mount", &["run", "--mount", "/no/such:/data", "--", "true"]);
    assert_says(caller, "error-mount-host", &["run", "--mount", "/:/host", "--", "true"]);
    assert_says(caller, "error-workspace", &["run", "--workspace", "/", "--", "true"]);
    assert_says(caller, "error-environment", &["run", "--env", "NOT_SET_ANYWHERE", "--", "true"]);
    assert_says(caller, "error-terminal", &["run", "--tty", "--", "true"]);
    assert_says(caller, "error-user", &["run", "--user", "root", "--", "true"]);
}

// The report of each kind of caller, on a machine with cgroup v1 controllers and Landlock.
callers!(report, |caller| {
    let name = match caller {
        Caller::Root => "report-root",
        Caller::Subordinate => "report-subordinate",
        Caller::Single => "report-single",
    };
    if !fs::exists("/sys/fs/cgroup/memory").unwrap() || !fs::exists("/sys/fs/cgroup/pids").unwrap() {
        eprintln!("skipped: the controllers are not on cgroup v1");
        return;
    }
    assert_says(caller, name, &["run", "--report", "--", "echo", "started"]);
});

/// The endings that are said: as root, whose machine lacks nothing.
#[test]
fn endings() {
    harness::as_caller(Caller::Root, harness::Company::Anybody, |caller| {
        assert_says(caller, "ending-not-found", &["run", "--", "no-such-program"]);
        assert_says(caller, "ending-not-executable", &["run", "--", "/etc/passwd"]);
        assert_says(caller, "ending-workdir", &["run", "--workdir", "/no/such", "--", "true"]);
        assert_says(caller, "ending-time", &["run", "--timeout", "100ms", "--", "sleep", "1000"]);
        let hog = ["run", "--memory", "32M", "--", "/usr/bin/python3", "-c", "x = bytearray(200 << 20)"];
        assert_says(caller, "ending-memory", &hog);
    });
}
