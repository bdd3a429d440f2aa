//! Variables: built from nothing, and what the owner names. And the processors, of which all are there.

use std::fs;
use std::process::Command;

use harness::{Agentbox, Caller, backend, callers};

/// The variables of the command, sorted.
fn variables(agentbox: Agentbox) -> Vec<String> {
    let finished = agentbox.run(["env"]);
    let mut lines: Vec<String> = finished.assert_success().stdout().lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

const NOTHING: [&str; 5] = [
    "AGENTBOX_EXEC=1",
    "HOME=/home/agent",
    "LANG=C.UTF-8",
    "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "USER=agent",
];

/// The same with a kernel of the sandbox's own, in which git is faster when it is told so.
const TOLD_TO_GIT: [&str; 5] = [
    "GIT_CONFIG_COUNT=2",
    "GIT_CONFIG_KEY_0=core.preloadIndex",
    "GIT_CONFIG_KEY_1=core.untrackedCache",
    "GIT_CONFIG_VALUE_0=false",
    "GIT_CONFIG_VALUE_1=true",
];

/// What is there although nobody named it, sorted.
fn nothing() -> Vec<&'static str> {
    let more: &[&str] = if backend().has_own_kernel() { &TOLD_TO_GIT } else { &[] };
    let mut all = [&NOTHING[..], more].concat();
    all.sort_unstable();
    all
}

/// A file of variables that the caller can read.
fn file(caller: Caller, contents: &[u8]) -> (tempfile::TempDir, String) {
    let directory = caller.directory();
    let path = directory.path().join("variables");
    fs::write(&path, contents).unwrap();
    (directory, path.display().to_string())
}

callers!(from_nothing, |caller| {
    let agentbox =
        Agentbox::shipped(caller).env("SECRET_TOKEN", "canary").env("SSH_AUTH_SOCK", "/tmp/canary");
    assert_eq!(variables(agentbox), nothing());
});

callers!(every_processor, |caller| {
    // While the walls go up there was one less.
    let look = ["sh", "-c", "taskset -p $$ | sed 's/.*: //'"];
    let outside = Command::new(look[0]).args(&look[1..]).output().unwrap().stdout;
    assert_eq!(Agentbox::shipped(caller).run(look).assert_success().stdout().as_bytes(), outside);
});

callers!(by_value_and_by_name, |caller| {
    let agentbox = Agentbox::shipped(caller).env("MINE", "passed on").env("NOT_MINE", "stays").options([
        "--env",
        "A=1",
        "-e",
        "EMPTY=",
        "--env=MINE",
        "-e",
        "TEXT=a = b \"c\" größe",
    ]);
    let found = variables(agentbox);
    for line in ["A=1", "EMPTY=", "MINE=passed on", "TEXT=a = b \"c\" größe"] {
        assert!(found.iter().any(|it| it == line), "no {line} in {found:?}");
    }
    assert_eq!(found.len(), nothing().len() + 4, "{found:?}");
});

callers!(ours_can_be_replaced, |caller| {
    let found = variables(Agentbox::shipped(caller).options(["-e", "HOME=/tmp", "-e", "LANG=C"]));
    let mut expected = nothing();
    for (ours, theirs) in [(NOTHING[1], "HOME=/tmp"), (NOTHING[2], "LANG=C")] {
        let place = expected.iter().position(|line| *line == ours).unwrap();
        expected[place] = theirs;
    }
    assert_eq!(found, expected);
});

callers!(from_files, |caller| {
    let contents = b"# a comment\n\nA=from the file\n  B= kept as it is \nMINE\nC=1\n";
    let (_directory, path) = file(caller, contents);
    let agentbox = Agentbox::shipped(caller).env("MINE", "passed on").options([
        "--env",
        "A=from the line",
        "--env-file",
        &path,
    ]);
    let found = variables(agentbox);
    for line in ["A=from the line", "B= kept as it is ", "C=1", "MINE=passed on"] {
        assert!(found.iter().any(|it| it == line), "no {line} in {found:?}");
    }
});

callers!(bad_names_and_values, |caller| {
    for text in ["1A=x", "A B=x", "=x", "", "A-B=x", "NOT_SET_ANYWHERE"] {
        let finished = Agentbox::shipped(caller).option(&format!("--env={text}")).run(["true"]);
        let stderr = finished.assert_refused().stderr();
        assert!(stderr.contains("error: cannot use --env\ncause: ") && stderr.contains("hint: "), "{stderr}");
    }
});

callers!(bad_files, |caller| {
    let long = [b"GOOD=1\nA B=2\n".as_slice(), &[b'x'; 100]].concat();
    let cases: [(&[u8], &str); 4] = [
        (b"A=1\nB=a\0b\n", "line 2: the value of 'B' holds a NUL"),
        (b"\0=x\n", "line 1: '\\0' is not the name of a variable"),
        (&long, "line 2: 'A B' is not the name of a variable"),
        (b"A=\xff\n", "UTF-8"),
    ];
    for (contents, cause) in cases {
        let (_directory, path) = file(caller, contents);
        let finished = Agentbox::shipped(caller).options(["--env-file", &path]).run(["true"]);
        let stderr = finished.assert_refused().stderr();
        let error = format!("error: cannot use the variables of '{path}'\ncause: ");
        assert!(stderr.contains(&error) && stderr.contains(cause), "{stderr}");
    }
    let missing = Agentbox::shipped(caller).options(["--env-file", "/no/such"]).run(["true"]);
    assert!(missing.assert_refused().stderr().contains("cause: No such file or directory"));
});

callers!(too_large, |caller| {
    let lines = |count: usize, length: usize| {
        let value = "x".repeat(length);
        (0..count).map(|number| format!("V{number}={value}\n")).collect::<String>()
    };
    let run = |contents: &str| {
        let (_directory, path) = file(caller, contents.as_bytes());
        Agentbox::shipped(caller).options(["--env-file", &path]).run(["sh", "-c", "env | wc -l"])
    };
    assert_eq!(
        run(&lines(100, 10_000)).assert_success().stdout(),
        format!("{}\n", 100 + nothing().len() + 1)
    );
    for (count, length) in [(300, 10_000), (3, 10_000_000)] {
        let stderr = run(&lines(count, length)).assert_refused().stderr();
        assert!(stderr.contains("error: the command and its variables are too large\ncause: "), "{stderr}");
    }
    // One that is small enough among all, but not by itself.
    let stderr = run(&lines(1, 200_000)).assert_code(126).stderr();
    let cause = if backend().has_own_kernel() { "Filename too long" } else { "Argument list too long" };
    assert!(stderr.contains(&format!("cause: {cause}")), "{stderr}");
});
