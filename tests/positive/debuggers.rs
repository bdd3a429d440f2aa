//! Debuggers: a process may look into its own kind.

use harness::{Agentbox, HOST_KERNEL, callers, is_on};

use crate::{has, script};

/// A program with something to look at. It lets any process trace it, for machines on which only parents may.
const TARGET: &str = r#"
cat > target.c <<'C'
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>
int depth(int n) { return n == 0 ? 7 : 1 + depth(n - 1); }
int main(int argc, char **argv) {
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    int secret = 41 + argc;
    printf("depth %d\n", depth(3));
    fflush(stdout);
    while (argc > 1) { usleep(1000); secret ^= 0; }
    return secret - 42;
}
C
gcc -g -O0 target.c -o target
"#;

callers!(gdb_starts_a_program, |caller| {
    if !has("/usr/bin/gdb") {
        return;
    }
    let gdb = "gdb -nx -batch -ex 'break depth if n == 0' -ex run -ex backtrace -ex 'up 4' -ex 'print secret' \
               -ex 'watch secret' -ex continue -ex kill ./target 2>&1";
    let stdout = script(Agentbox::shipped(caller), &format!("{TARGET}{gdb}")).stdout();
    assert!(stdout.contains("Breakpoint 1, depth (n=0)"), "{stdout}");
    for frame in ["#0  depth (n=0)", "#1  ", "depth (n=1)", "#4  ", "in main (argc=1"] {
        assert!(stdout.contains(frame), "no {frame} in {stdout}");
    }
    assert!(stdout.contains("$1 = 42"), "{stdout}");
});

callers!(gdb_attaches_to_a_process, |caller| {
    if !has("/usr/bin/gdb") {
        return;
    }
    let gdb = "./target forever > out & sleep 0.1; until grep -q depth out; do sleep 0.05; done; \
               gdb -nx -batch -p $! -ex 'thread apply all backtrace' -ex 'frame function main' -ex 'print secret' \
               -ex detach 2>&1; kill $!";
    let stdout = script(Agentbox::shipped(caller), &format!("{TARGET}{gdb}")).stdout();
    assert!(stdout.contains("in main (argc=2") && stdout.contains("$1 = 43"), "{stdout}");
});

callers!(strace_follows_children, |caller| {
    if !has("/usr/bin/strace")
        || !is_on(HOST_KERNEL, "its kernel does not follow what strace asks for; gdb works")
    {
        return;
    }
    let text = "strace -f -o trace -e trace=execve,exit_group,openat sh -c 'cat /etc/hostname > /dev/null; (exit 3)' \
                || true; cat trace";
    let stdout = script(Agentbox::shipped(caller), text).stdout();
    for line in ["execve(\"/usr/bin/sh\"", "execve(\"/usr/bin/cat\"", "\"/etc/hostname\"", "exit_group(3)"] {
        assert!(stdout.contains(line), "no {line} in {stdout}");
    }
    let attach = "(while :; do sleep 0.01; done) & strace -f -p $! -o attached 2>/dev/null & tracer=$!; \
                  until grep -q 'execve(\"/usr/bin/sleep\"' attached 2>/dev/null; do sleep 0.05; done; kill $tracer";
    script(Agentbox::shipped(caller), attach);
});
