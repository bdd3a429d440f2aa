//! The Landlock domain of what init starts. Where the kernel has none, init must refuse to start.

use crate::harness::{Init, PATH, alone, exec, terminal, until};
use bytes::Bytes;
use wire::Exec;

/// The kernel's Landlock, as init finds it.
fn landlock_serves() -> bool {
    let ended = alone(&[]);
    if ended.status.code() != Some(3) {
        return true;
    }
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(said.starts_with("agentbox-init: ") && said.lines().count() == 1, "{said}");
    false
}

fn in_domain(writable: &str) -> Option<Init> {
    landlock_serves()
        .then(|| Init::with_arguments(&["--landlock", "required", "--write", writable, "--write", "/dev"]))
}

#[tokio::test]
async fn only_what_is_writable_can_be_written() {
    let (open, closed) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let Some(init) = in_domain(open.path().to_str().unwrap()) else { return };
    let script = "cd $OPEN && mkdir a b && echo x > a/f && mv a/f b/g && ln b/g a/h && truncate -s 1 a/h && rm -r a;
        echo $?; cat /etc/passwd > /dev/null; echo $?; echo x > $CLOSED/f; mkdir $CLOSED/d; mv $OPEN/b $CLOSED/b";
    let outcome = init
        .run(Exec {
            environment: vec![
                Bytes::from_static(PATH.as_bytes()),
                Bytes::from(format!("OPEN={}", open.path().display())),
                Bytes::from(format!("CLOSED={}", closed.path().display())),
            ],
            ..exec(&["sh", "-c", script])
        })
        .await;
    assert_eq!(outcome.text(), "0\n0\n", "{}", String::from_utf8_lossy(&outcome.error));
    assert_eq!(std::fs::read_dir(closed.path()).unwrap().count(), 0);
    assert_eq!(std::fs::read_dir(open.path()).unwrap().count(), 1);
}

#[tokio::test]
async fn processes_of_two_execs_are_in_one_domain() {
    let Some(init) = in_domain("/tmp") else { return };
    let (channel, pid) = init.started(exec(&["sleep", "100"])).await;
    // Tracing needs the same domain, as does reading another's memory map.
    let outcome = init.shell(&format!("cat /proc/{pid}/maps | grep -c sleep; kill -0 {pid}; echo $?")).await;
    assert!(outcome.text().ends_with("\n0\n") && !outcome.text().starts_with('0'), "{}", outcome.text());
    drop(channel);
}

#[tokio::test]
async fn init_is_outside_of_it() {
    let Some(init) = in_domain("/tmp") else { return };
    assert_eq!(init.shell("cat /proc/1/maps /proc/1/environ; readlink /proc/1/exe").await.text(), "");
    // Signals are scoped from the sixth version of Landlock on; before, PID 1 merely ignores them.
    init.shell("kill -9 1; kill -17 1; for task in /proc/1/task/*; do kill -9 ${task##*/}; done").await;
    assert_eq!(init.shell("echo still here").await.text(), "still here\n");
}

#[tokio::test]
async fn terminals_and_streams_work_in_it() {
    let Some(init) = in_domain("/tmp") else { return };
    let (mut channel, _) = init.started(terminal("stty size; echo again > /dev/tty", 12, 34)).await;
    until(&mut channel.output.receiver, "12 34\r\nagain").await;
    let outcome = init.shell("echo out > /dev/stdout; echo err > /dev/stderr; echo null > /dev/null").await;
    assert_eq!((&outcome.output[..], &outcome.error[..]), (&b"out\n"[..], &b"err\n"[..]));
}

#[tokio::test]
async fn a_path_that_is_not_there_is_an_error() {
    let ended = alone(&["--write", "/no/such/path"]);
    assert_eq!(ended.status.code(), Some(3), "{}", String::from_utf8_lossy(&ended.stderr));
}
