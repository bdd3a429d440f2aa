//! Stdin, stdout and stderr as a script has them: apart, whole and untouched.

use std::io::Read as _;
use std::process::Stdio;

use harness::{Agentbox, callers};

/// Bytes of every value in no order, the same in each run.
fn noise(length: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}

/// Without what agentbox itself has to report.
fn words_of_the_command(stderr: &str) -> String {
    let ours = ["given ", "weaker ", "missing ", "covered ", "hint: "];
    let theirs = stderr.lines().filter(|line| !ours.iter().any(|word| line.starts_with(word)));
    theirs.map(|line| format!("{line}\n")).collect()
}

callers!(binary_both_ways, |caller| {
    let bytes = noise(8 << 20);
    let finished = Agentbox::shipped(caller).stdin(bytes.clone()).run(["cat"]);
    assert!(finished.assert_success().stdout == bytes, "{} bytes came back", finished.stdout.len());
});

callers!(binary_on_stderr, |caller| {
    let bytes = noise(1 << 20);
    let finished = Agentbox::shipped(caller).stdin(bytes.clone()).run(["sh", "-c", "cat >&2"]);
    assert!(finished.assert_success().stderr.ends_with(&bytes));
    assert_eq!(finished.stdout, b"");
});

callers!(apart, |caller| {
    let finished = Agentbox::shipped(caller).run(["sh", "-c", "echo out; echo err >&2; echo out again"]);
    assert_eq!(finished.assert_success().stdout(), "out\nout again\n");
    assert_eq!(words_of_the_command(&finished.stderr()), "err\n");
});

callers!(opened_again_by_name, |caller| {
    let script =
        "echo out > /dev/stdout; echo err > /dev/stderr; cat /dev/stdin; echo out again > /proc/self/fd/1";
    let finished = Agentbox::shipped(caller).stdin("in\n").run(["sh", "-c", script]);
    assert_eq!(finished.assert_success().stdout(), "out\nin\nout again\n");
    assert_eq!(words_of_the_command(&finished.stderr()), "err\n");
});

callers!(end_of_file_is_passed_on, |caller| {
    let empty = Agentbox::shipped(caller).run(["sh", "-c", "cat; echo over"]);
    assert_eq!(empty.assert_success().stdout(), "over\n");
    let some =
        Agentbox::shipped(caller).stdin("some\n").run(["sh", "-c", "wc -l; read line || echo nothing more"]);
    assert_eq!(some.assert_success().stdout(), "1\nnothing more\n");
});

callers!(stdin_is_not_waited_for, |caller| {
    // Open and silent: the command does not read, so nobody else does.
    let mut running = Agentbox::shipped(caller).start(["echo", "done"]);
    let held = running.stdin.take();
    assert_eq!(running.finish().assert_success().stdout(), "done\n");
    drop(held);
});

callers!(conversation, |caller| {
    let mut running =
        Agentbox::shipped(caller).start(["sh", "-c", "while read word; do echo \"<$word>\"; done"]);
    for word in ["one", "two", "three"] {
        running.write(format!("{word}\n").as_bytes());
        running.wait_for(&format!("<{word}>\n"));
    }
    assert_eq!(running.finish().assert_success().stdout(), "<one>\n<two>\n<three>\n");
});

callers!(no_terminal_no_colour_no_prompt, |caller| {
    let script =
        "test -t 0 || test -t 1 || test -t 2 || echo no terminal; ls --color=auto -d /; echo ${TERM-unset}";
    let finished =
        Agentbox::shipped(caller).env("TERM", "xterm-256color").option("--report").run(["sh", "-c", script]);
    assert_eq!(finished.assert_success().stdout(), "no terminal\n/\nunset\n");
    let refused =
        Agentbox::shipped(caller).env("TERM", "xterm-256color").option("--memory=lots").run(["true"]);
    for finished in [finished, refused] {
        assert!(
            !finished.stdout.contains(&0x1b) && !finished.stderr.contains(&0x1b),
            "{}",
            finished.stderr()
        );
    }
});

callers!(a_reader_that_leaves_ends_the_command, |caller| {
    for script in ["cat /dev/zero", "yes", "cat /dev/zero 2>/dev/null; sleep 1000"] {
        let mut child = Agentbox::shipped(caller)
            .command(["sh", "-c", script])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut first = vec![0; 1 << 20];
        child.stdout.take().unwrap().read_exact(&mut first).unwrap();
        // The pipe is closed by now; nothing but the end of the command lets this return.
        assert_eq!(child.wait().unwrap().code(), Some(141), "{script}");
    }
});

callers!(a_full_disk_is_said, |caller| {
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let output = Agentbox::shipped(caller)
        .command(["echo", "lost"])
        .stdin(Stdio::null())
        .stdout(full)
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(125), "{stderr}");
    assert!(
        stderr.contains("error: cannot write what the command says to stdout\ncause: No space left"),
        "{stderr}"
    );
});

callers!(nobody_reads_stderr, |caller| {
    // What agentbox has to say gets lost, the exit code does not.
    let code = |argv: &[&str]| {
        let mut child = Agentbox::shipped(caller)
            .option("--report")
            .command(argv)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stderr.take());
        child.wait().unwrap().code()
    };
    assert_eq!(code(&["sh", "-c", "exit 6"]), Some(6));
    assert_eq!(code(&["no-such-program"]), Some(127));
});

callers!(the_words_of_a_command_are_any_bytes, |caller| {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;
    let mut command = Agentbox::shipped(caller).command(["printf", "%s|"]);
    command.arg(OsStr::from_bytes(b"\xff\xfe")).arg(OsStr::from_bytes(b"")).arg("--env").arg("a\nb");
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert_eq!(output.stdout, b"\xff\xfe||--env|a\nb|");
});
