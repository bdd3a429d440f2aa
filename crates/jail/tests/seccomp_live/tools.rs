//! The positive control: tools of every day work under the filter. One that the machine lacks is passed over.

use std::process::{Command, Stdio};

use jail::seccomp::{Architecture, Filter};
use policy::Nesting;

use crate::sys::start_under;

/// Runs a shell line under the sandbox's filter; says what it printed and whether it succeeded.
fn run(line: &str, nesting: Nesting) -> (bool, String) {
    let mut command = Command::new("/bin/sh");
    let empty = tempfile::tempdir().unwrap();
    command.args(["-c", line]).stdin(Stdio::null()).current_dir(&empty);
    start_under(&mut command, &Filter::for_sandbox(Architecture::NATIVE, nesting));
    let output = command.output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&said).into_owned())
}

fn is_here(tool: &str) -> bool {
    let found = Command::new("/bin/sh").args(["-c", &format!("command -v {tool}")]).output().unwrap();
    found.status.success()
}

/// A tool, and a shell line that uses it, in an empty directory.
const LINES: &[(&str, &str)] = &[
    ("git", "git init -q && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m first"),
    ("cc", "echo 'int main() { return 0; }' >a.c && cc -o a a.c && ./a"),
    (
        "python3",
        "python3 -c 'import subprocess, threading, multiprocessing as m
thread = threading.Thread(target=print); thread.start(); thread.join()
subprocess.check_call([\"true\"]); m.Pool(2).map(abs, [1, 2])'",
    ),
    (
        "node",
        "node -e 'new (require(\"worker_threads\").Worker)(\"require(`fs`).readdirSync(`/`)\", {eval: true});
require(\"child_process\").execFileSync(\"true\")'",
    ),
    ("java", "java -version"),
    ("go", "go version"),
    ("cargo", "cargo --version"),
    ("strace", "strace -f -o /dev/null sh -c 'true | true'"),
    ("strace", "strace -o /dev/null -e inject=getppid:retval=7 sh -c :"),
    ("gdb", "gdb -q -batch -ex run -ex quit --args /bin/true 2>&1 | grep 'exited normally'"),
    ("tmux", "tmux -S ./socket -f /dev/null new-session -d 'sleep 5' && tmux -S ./socket kill-server"),
    ("setarch", "setarch -R true"),
    ("mkfifo", "mkfifo fifo"),
];

#[test]
fn everyday_tools_work() {
    for (_, line) in LINES.iter().filter(|(tool, _)| is_here(tool)) {
        let (succeeded, said) = run(line, Nesting::Closed);
        assert!(succeeded, "{line}: {said}");
    }
}

#[test]
fn tools_that_sandbox_themselves_work_with_nesting_only() {
    let line =
        "bwrap --unshare-all --die-with-parent --ro-bind / / --proc /proc --tmpfs /tmp --hostname inner true";
    let works_here = Command::new("/bin/sh").args(["-c", line]).output().unwrap().status.success();
    if !works_here {
        return;
    }
    let (succeeded, said) = run(line, Nesting::Open);
    assert!(succeeded, "{said}");
    let (succeeded, _) = run(line, Nesting::Closed);
    assert!(!succeeded);
}
