//! Processes of other users than init's own. Only root can have more than one id without help, so that these say
//! nothing where somebody else runs them.

use std::os::unix::fs::PermissionsExt;

use bytes::Bytes;
use wire::{Exec, Exited, Step, Tell};

use crate::harness::{Init, PATH, exec, exited, shell, tell, terminal, until};

/// As the agent, whoever that is on this machine.
fn as_agent(exec: Exec) -> Exec {
    Exec { uid: 1000, gid: 1000, ..exec }
}

#[tokio::test]
async fn a_process_is_its_user_and_nobody_else() {
    let Some(init) = Init::with_all_ids() else { return };
    let status = init.run(as_agent(exec(&["cat", "/proc/self/status"]))).await.text();
    for line in ["Uid:\t1000\t1000\t1000\t1000\n", "Gid:\t1000\t1000\t1000\t1000\n", "Groups:\t1000 \n"] {
        assert!(status.contains(line), "{line:?} in {status}");
    }
    for line in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
        assert!(status.contains(&format!("{line}:\t{:016x}\n", 0)), "{line} in {status}");
    }
}

#[tokio::test]
async fn its_streams_belong_to_it() {
    let Some(init) = Init::with_all_ids() else { return };
    let script = "stat -L -c %u:%g /dev/stdin /dev/stdout /dev/stderr; cat < /dev/stdin > /dev/stdout";
    let outcome = init.run_with(as_agent(shell(script)), Bytes::from_static(b"in\n")).await;
    assert_eq!(outcome.text(), "1000:1000\n1000:1000\n1000:1000\nin\n");
    let (mut channel, _) =
        init.started(as_agent(terminal("stat -L -c %u /dev/stdin; echo x > $(tty)", 24, 80))).await;
    until(&mut channel.output.receiver, "1000\r\nx").await;
    // What init makes for itself stays its own.
    assert_eq!(init.shell("stat -L -c %u /dev/stdout").await.text(), "0\n");
}

#[tokio::test]
async fn init_is_out_of_its_reach_and_it_in_reach_of_init() {
    let Some(init) = Init::with_all_ids() else { return };
    let outcome = init.run(as_agent(shell("kill -9 1; ls /proc/1/fd; cat /proc/1/environ; exit 3"))).await;
    assert_eq!((outcome.text().as_str(), outcome.exited.code), ("", 3));
    let (mut channel, _) = init.started(as_agent(exec(&["sleep", "100"]))).await;
    tell(&mut channel, Tell::Signal(9)).await;
    assert_eq!(exited(&mut channel.messages.receiver).await, Exited { signal: 9, ..Exited::default() });
}

#[tokio::test]
async fn files_are_looked_for_with_its_rights() {
    let Some(init) = Init::with_all_ids() else { return };
    let directory = tempfile::tempdir().unwrap();
    std::fs::copy("/bin/true", directory.path().join("true")).unwrap();
    std::fs::set_permissions(directory.path(), PermissionsExt::from_mode(0o700)).unwrap();
    let path = directory.path().to_str().unwrap();
    let closed = Exec { workdir: Bytes::from(path.to_owned()), ..exec(&["true"]) };
    assert_eq!(init.refused(as_agent(closed)).await, (Step::Workdir, libc::EACCES));
    let closed = Exec { environment: vec![Bytes::from(format!("PATH={path}"))], ..exec(&["true"]) };
    assert_eq!(init.refused(as_agent(closed)).await, (Step::Program, libc::EACCES));
    let other = Exec { environment: vec![Bytes::from(format!("{PATH}:{path}"))], ..exec(&["true"]) };
    assert_eq!(init.run(as_agent(other)).await.exited, Exited::default());
}
