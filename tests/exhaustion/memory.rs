//! Exhaustion: 53. Memory, and what is kept in memory.

use harness::{Agentbox, Caller, callers, stands};
use policy::Wall;
use rustix::process::geteuid;

use crate::assert_host_forks;

/// Takes 256 MiB and says so.
pub(crate) const HOG: [&str; 3] =
    ["/usr/bin/perl", "-e", "my @held; push @held, 'x' x 1048576 for 1 .. 256; print 'held'"];

/// An error if the hog got what it wanted with a limit of 64 MiB.
pub(crate) fn is_bounded(sandbox: Agentbox) -> Result<(), String> {
    let finished = sandbox.options(["--memory", "64M"]).run(HOG);
    if finished.stdout() == "held" {
        return Err("256 MiB with a limit of 64".to_owned());
    }
    finished.assert_code(137);
    let said = finished.stderr();
    let command = "error: the command ran out of memory (limit 64M";
    // The host's kernel may end a kernel of the sandbox's own, and with it all that it holds.
    let sandbox = "error: the sandbox ran out of memory (limit 64M";
    let own_kernel = harness::backend().has_own_kernel();
    let is_said = |line: &str| line.starts_with(command) || (own_kernel && line.starts_with(sandbox));
    assert!(said.lines().any(is_said), "{said}");
    assert!(said.lines().any(|line| line.starts_with("hint: ")), "{said}");
    Ok(())
}

/// Whether limits by cgroup can be had without anybody's help.
fn is_limited(caller: Caller) -> bool {
    caller == Caller::Root && geteuid().is_root()
}

callers!(exhaustion_53_memory_is_bounded_or_reported, |caller| {
    if is_limited(caller) {
        stands(caller, Wall::MemoryLimit, &|start| is_bounded(start()));
        assert_host_forks(caller);
        return;
    }
    let said = Agentbox::shipped(caller).options(["--report"]).run(["/bin/true"]).assert_success().stderr();
    let line =
        |wall: &str| said.lines().find(|line| line.split_whitespace().nth(1) == Some(wall)).unwrap_or("");
    if line("memory-limit").starts_with("given") {
        // A systemd user session, or somebody handed a cgroup over.
        is_bounded(Agentbox::shipped(caller)).unwrap();
        return;
    }
    assert!(line("memory-limit").starts_with("missing"), "{said}");
    assert!(line("cpu-limit").starts_with("missing"), "{said}");
    assert!(line("pids-limit").starts_with("weaker"), "{said}");
    // Nobody has to ask for a report to learn that.
    let silent = Agentbox::shipped(caller).run(["/bin/true"]);
    assert!(
        silent.stderr().lines().any(|line| line.starts_with("missing   memory-limit")),
        "{}",
        silent.stderr()
    );
});

callers!(exhaustion_53_files_in_memory_count, |caller| {
    if !is_limited(caller) {
        return;
    }
    for path in ["/dev/shm/file", "/tmp/file", "/workspace/file"] {
        let script = format!("head -c 256M /dev/zero > {path}; echo \"code $?\"");
        let finished =
            Agentbox::shipped(caller).options(["--memory", "64M", "--disk", "1G"]).run(["sh", "-c", &script]);
        assert!(!finished.stdout().contains("code 0"), "{path}: {}", finished.stdout());
        assert_host_forks(caller);
    }
});
