//! Exit codes: the command's own, and those that agentbox adds.

use harness::{Agentbox, Caller, callers};

fn shell(caller: Caller, script: &str) -> harness::Finished {
    Agentbox::shipped(caller).run(["sh", "-c", script])
}

callers!(the_commands_own, |caller| {
    for code in [0, 1, 3, 42, 124, 125, 127, 255] {
        let finished = shell(caller, &format!("exit {code}"));
        finished.assert_code(code);
        assert!(!finished.stderr().contains("error:"), "{}", finished.stderr());
    }
});

callers!(ended_by_a_signal, |caller| {
    for (signal, code) in
        [("HUP", 129), ("INT", 130), ("ABRT", 134), ("KILL", 137), ("SEGV", 139), ("TERM", 143)]
    {
        let finished = shell(caller, &format!("kill -{signal} $$"));
        finished.assert_code(code);
        // Killed is not the same as out of memory.
        assert!(!finished.stderr().contains("memory (limit"), "{}", finished.stderr());
    }
});

callers!(not_found, |caller| {
    let finished = Agentbox::shipped(caller).run(["no-such-program"]);
    finished.assert_code(127);
    let stderr = finished.stderr();
    assert!(stderr.contains("error: 'no-such-program' is not found inside\n"), "{stderr}");
    assert!(stderr.contains("hint: "), "{stderr}");
    assert!(!stderr.contains("outside"), "{stderr}");
});

callers!(not_found_but_outside, |caller| {
    let directory = caller.directory();
    let program = directory.path().join("only-outside");
    std::fs::write(&program, "#!/bin/sh\n").unwrap();
    std::os::unix::fs::chown(&program, Some(caller.uid()), Some(caller.gid())).unwrap();
    let hint = "hint: --tools brings your tool chains along, --mount DIR:DIR any other directory\n";

    // Without the executable bit it would not run outside either.
    let path = format!("{}:{}", directory.path().display(), harness::path());
    let run = || Agentbox::shipped(caller).env("PATH", &path).run(["only-outside"]);
    assert!(!run().assert_code(127).stderr().contains("outside,"));

    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let by_name = run();
    let by_path = Agentbox::shipped(caller).run([program.display().to_string()]);
    for finished in [by_name, by_path] {
        let stderr = finished.assert_code(127).stderr();
        let cause =
            format!("cause: it is at '{}' outside, which is not part of the sandbox\n", program.display());
        assert!(stderr.contains(&cause) && stderr.contains(hint), "{stderr}");
    }
});

callers!(not_executable, |caller| {
    for program in ["/etc/passwd", "/etc", "/workspace/"] {
        let stderr = Agentbox::shipped(caller).run([program]).assert_code(126).stderr();
        assert!(stderr.contains(&format!("error: '{program}' cannot be executed\n")), "{stderr}");
        assert!(stderr.contains("cause: ") && stderr.contains("hint: "), "{stderr}");
    }
});

callers!(out_of_time, |caller| {
    let stderr =
        Agentbox::shipped(caller).option("--timeout=300ms").run(["sleep", "1000"]).assert_code(124).stderr();
    assert!(stderr.contains("error: the command ran out of time\nhint: "), "{stderr}");
    // One that does not listen is killed, and one that ends in time is left alone.
    Agentbox::shipped(caller)
        .option("--timeout=300ms")
        .run(["sh", "-c", "trap '' TERM; while :; do sleep 1000; done"])
        .assert_code(124);
    Agentbox::shipped(caller).option("--timeout=1h").run(["sh", "-c", "exit 9"]).assert_code(9);
});

callers!(time_out_says_goodbye_first, |caller| {
    let script = "trap 'echo asked to end; exit 5' TERM; echo up; while :; do sleep 0.05; done";
    let finished = Agentbox::shipped(caller).option("--timeout=1s").run(["sh", "-c", script]);
    assert_eq!(finished.assert_code(124).stdout(), "up\nasked to end\n");
});

#[test]
fn out_of_memory() {
    harness::as_caller(Caller::Root, harness::Company::Anybody, |caller| {
        let hog = "/usr/bin/python3";
        let script = "x = bytearray(300 << 20)";
        let run =
            |limit: &str| Agentbox::shipped(caller).options(["--memory", limit]).run([hog, "-c", script]);
        let stderr = run("64M").assert_code(137).stderr();
        let command =
            "error: the command ran out of memory (limit 64MiB)\nhint: give it more with --memory\n";
        // The kernel may end a kernel of the sandbox's own, and with it all that it holds.
        let sandbox =
            "error: the sandbox ran out of memory (limit 64MiB)\ncause: the kernel has ended all of it\n";
        let is_said =
            stderr.contains(command) || (harness::backend().has_own_kernel() && stderr.contains(sandbox));
        assert!(is_said, "{stderr}");
        assert!(!run("1G").assert_success().stderr().contains("memory (limit"));
    });
}

callers!(failures_of_our_own, |caller| {
    let missing = Agentbox::shipped(caller).option("--workdir=/no/such").run(["true"]);
    missing.assert_refused();
    assert!(missing.stderr().contains("error: cannot start in '/no/such'\ncause: "), "{}", missing.stderr());
    Agentbox::shipped(caller).option("--mount=/no/such:/x").run(["true"]).assert_refused();
    Agentbox::shipped(caller).option("--memory=lots").run(["true"]).assert_refused();
});
