//! The same sandbox with every backend.

use std::fs;

use harness::{Agentbox, callers};
use policy::{Backend, Wall};

use crate::{backends, with};

callers!(a_command_runs_as_the_agent_and_its_code_comes_back, |caller| {
    for backend in backends() {
        let script =
            "id -u; pwd; echo to stderr >&2; cat; touch /workspace/mine /tmp/mine; ls -ln /workspace; exit 7";
        let finished = with(caller, backend).stdin("from stdin\n").run(["sh", "-c", script]);
        let stdout = finished.assert_code(7).stdout();
        assert!(stdout.starts_with("1000\n/workspace\nfrom stdin\n"), "{backend}: {stdout}");
        assert!(stdout.contains(" 1000 1000 "), "{backend}: {stdout}");
        assert!(finished.stderr().contains("to stderr"), "{backend}");
    }
});

callers!(codes_that_a_runtime_uses_itself_are_the_commands_own, |caller| {
    for backend in backends() {
        for code in [0, 1, 2, 128, 137] {
            with(caller, backend).run(["sh", "-c", &format!("exit {code}")]).assert_code(code);
        }
    }
});

callers!(a_report_lists_the_walls_of_its_backend_and_no_others, |caller| {
    for backend in backends() {
        let finished = with(caller, backend).option("--report").run(["true"]);
        let listed: Vec<String> = finished
            .assert_success()
            .stderr()
            .lines()
            .filter(|line| ["given ", "weaker ", "missing "].iter().any(|state| line.starts_with(state)))
            .map(|line| line.split_whitespace().nth(1).unwrap().to_owned())
            .collect();
        let expected: Vec<&str> =
            Wall::ALL.iter().filter(|wall| backend.has_wall(**wall)).map(|wall| wall.name()).collect();
        assert_eq!(listed, expected, "{backend}");
    }
});

callers!(a_sandbox_that_stays_keeps_its_files_and_moves_them, |caller| {
    let directory = caller.directory();
    for backend in backends() {
        let agentbox = Agentbox::shipped(caller);
        let run = |words: &[&str]| {
            let output = agentbox.words(words).output().unwrap();
            let error = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.success(), "{backend}: {words:?}: {error}");
            String::from_utf8(output.stdout).unwrap()
        };
        let id = run(&["create", "--backend", backend.name()]);
        let id = id.trim();
        // Large enough for many turns of whatever stands in between.
        run(&[
            "exec",
            id,
            "--",
            "sh",
            "-c",
            "head -c 5000000 /dev/urandom > large; mkdir tree; cp large tree/",
        ]);
        let inside = run(&["exec", id, "--", "sha256sum", "tree/large"]);
        let out = directory.path().join(backend.name());
        run(&["cp", &format!("{id}:/workspace/tree"), out.to_str().unwrap()]);
        let summed = std::process::Command::new("sha256sum").arg(out.join("large")).output().unwrap();
        assert_eq!(inside[..64], String::from_utf8(summed.stdout).unwrap()[..64], "{backend}");
        run(&["cp", out.to_str().unwrap(), &format!("{id}:/workspace/back")]);
        assert_eq!(run(&["exec", id, "--", "sha256sum", "back/large"])[..64], inside[..64], "{backend}");
        run(&["stop", id]);
        run(&["start", id]);
        assert_eq!(run(&["exec", id, "--", "sha256sum", "tree/large"])[..64], inside[..64], "{backend}");
        run(&["rm", "--force", id]);
    }
});

callers!(a_tree_under_review_is_not_changed_and_its_changes_are_the_owners, |caller| {
    for backend in backends() {
        let directory = caller.directory();
        let file = directory.path().join("file");
        fs::write(&file, "of the owner\n").unwrap();
        caller.own(&file);
        let agentbox = Agentbox::shipped(caller);
        let tree = directory.path().to_str().unwrap();
        let words = [
            "run",
            "--backend",
            backend.name(),
            "-w",
            tree,
            "--",
            "sh",
            "-c",
            "echo more >> file; echo new > new; cat file",
        ];
        let output = agentbox.words(&words).output().unwrap();
        let (stdout, stderr) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!(stdout, "of the owner\nmore\n", "{backend}: {stderr}");
        assert_eq!(fs::read_to_string(&file).unwrap(), "of the owner\n", "{backend}");
        assert!(!directory.path().join("new").exists(), "{backend}");
        let id = stderr.split("agentbox diff ").nth(1).unwrap().split('`').next().unwrap().to_owned();
        let diff = agentbox.words(&["diff", &id]).output().unwrap();
        let diff = String::from_utf8_lossy(&diff.stdout).into_owned();
        assert!(diff.contains("more") && diff.contains("new"), "{backend}: {diff}");
        let discarded = agentbox.words(&["discard", &id]).output().unwrap();
        assert!(discarded.status.success(), "{backend}: {}", String::from_utf8_lossy(&discarded.stderr));
        agentbox.words(&["rm", "--force", &id]).output().unwrap();
    }
});

callers!(a_name_that_is_not_allowed_leads_nowhere, |caller| {
    for backend in backends() {
        let script = "getent hosts allowed.example; getent hosts other.example; \
                      timeout 5 bash -c 'echo > /dev/tcp/1.2.3.4/80' 2>/dev/null; echo $?";
        let finished =
            with(caller, backend).options(["--allow", "allowed.example"]).run(["sh", "-c", script]);
        let stdout = finished.assert_success().stdout();
        assert!(stdout.starts_with("198.18."), "{backend}: {stdout}");
        assert_eq!(stdout.lines().count(), 2, "{backend}: {stdout}");
        let blocked = finished.stderr();
        assert!(
            blocked.contains("blocked: other.example") && blocked.contains("blocked: 1.2.3.4:80"),
            "{blocked}"
        );
    }
});

callers!(root_is_to_be_had_inside_with_a_kernel_of_its_own_alone, |caller| {
    for backend in backends().into_iter().chain([Backend::Native]) {
        let sandbox = with(caller, backend).options(["--user", "root"]);
        if !backend.has_own_kernel() {
            let stderr = sandbox.run(["id"]).assert_refused().stderr();
            assert!(stderr.contains("root is not to be had"), "{backend}: {stderr}");
            continue;
        }
        if caller == Caller::Single {
            // There is nobody but the agent.
            sandbox.run(["id"]).assert_refused();
            continue;
        }
        let stdout = sandbox.run(["sh", "-c", "id -u; grep Cap /proc/self/status"]).assert_success().stdout();
        assert!(stdout.starts_with("0\n"), "{stdout}");
        assert!(stdout.lines().skip(1).all(|line| line.ends_with("0000000000000000")), "{stdout}");
    }
});
