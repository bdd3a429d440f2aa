//! What a process is started with, how it ends, and why it may not start.

use std::os::unix::fs::PermissionsExt;

use crate::harness::{Init, event, exec, exited, failure, shell};
use bytes::Bytes;
use wire::{Ask, Event, Exec, Exited, Request, Step};

#[tokio::test]
async fn exit_codes_and_signals_are_told_apart() {
    let init = Init::start();
    for code in [0, 1, 42, 255] {
        let exited = init.shell(&format!("exit {code}")).await.exited;
        assert_eq!(exited, Exited { code, ..Exited::default() });
    }
    for signal in [1, 2, 9, 11, 15, 34] {
        let exited = init.shell(&format!("kill -{signal} $$")).await.exited;
        assert_eq!(exited, Exited { signal, ..Exited::default() });
    }
}

#[tokio::test]
async fn output_and_error_are_told_apart() {
    let outcome = Init::start().shell("echo out; echo err >&2").await;
    assert_eq!((&outcome.output[..], &outcome.error[..]), (&b"out\n"[..], &b"err\n"[..]));
}

#[tokio::test]
async fn the_environment_is_exactly_what_was_asked_for() {
    let init = Init::start();
    let asked = Exec {
        environment: vec![
            Bytes::from_static(b"A=1"),
            Bytes::from_static(b"B=\xff\n2"),
            Bytes::from_static(b"C="),
        ],
        ..exec(&["/usr/bin/env", "-0"])
    };
    assert_eq!(&init.run(asked).await.output[..], b"A=1\0B=\xff\n2\0C=\0");
}

#[tokio::test]
async fn arguments_and_workdir_arrive_unchanged() {
    let init = Init::start();
    let asked = Exec {
        workdir: Bytes::from_static(b"/usr/bin"),
        ..exec(&["printf", "%s|", "", "a b", "$x", "\u{fc}"])
    };
    assert_eq!(init.run(asked).await.text(), "|a b|$x|\u{fc}|");
    let asked = Exec { workdir: Bytes::from_static(b"/usr/bin"), ..exec(&["pwd"]) };
    assert_eq!(init.run(asked).await.text(), "/usr/bin\n");
}

#[tokio::test]
async fn what_cannot_start_says_at_which_step() {
    let init = Init::start();
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, content: &[u8], mode| {
        let path = directory.path().join(name);
        std::fs::write(&path, content).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let plain = file("plain", b"text", 0o644);
    let garbage = file("garbage", b"neither a script nor a program", 0o755);
    let orphan = file("orphan", b"#!/no/such/interpreter\n", 0o755);

    assert_eq!(init.refused(exec(&["no-such-command"])).await, (Step::Program, libc::ENOENT));
    assert_eq!(init.refused(exec(&["/no/such/file"])).await, (Step::Program, libc::ENOENT));
    assert_eq!(init.refused(exec(&[""])).await, (Step::Program, libc::ENOENT));
    assert_eq!(init.refused(exec(&["/etc"])).await, (Step::Program, libc::EACCES));
    assert_eq!(init.refused(exec(&[&plain])).await, (Step::Program, libc::EACCES));
    assert_eq!(init.refused(exec(&[&garbage])).await, (Step::Program, libc::ENOEXEC));
    assert_eq!(init.refused(exec(&[&orphan])).await, (Step::Program, libc::ENOENT));
    let large = "x".repeat(200_000);
    assert_eq!(init.refused(exec(&["true", &large])).await, (Step::Program, libc::E2BIG));
    let nowhere = Exec { workdir: Bytes::from_static(b"/no/such/directory"), ..exec(&["true"]) };
    assert_eq!(init.refused(nowhere).await, (Step::Workdir, libc::ENOENT));
    let no_directory = Exec { workdir: Bytes::from_static(b"/etc/passwd"), ..exec(&["true"]) };
    assert_eq!(init.refused(no_directory).await, (Step::Workdir, libc::ENOTDIR));
    let not_mapped = Exec { uid: 4242, gid: 4242, ..exec(&["true"]) };
    assert_eq!(init.refused(not_mapped).await.0, Step::User);
    assert_eq!(init.shell("exit 0").await.exited, Exited::default());
}

#[tokio::test]
async fn the_first_executable_of_the_path_wins_over_one_that_is_not() {
    let init = Init::start();
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("true"), b"").unwrap();
    let path = |rest| Bytes::from(format!("PATH={}:/etc/passwd:/none{rest}", directory.path().display()));
    let found = Exec { environment: vec![path(":/usr/bin:/bin")], ..exec(&["true"]) };
    assert_eq!(init.run(found).await.exited, Exited::default());
    let refused = Exec { environment: vec![path("")], ..exec(&["true"]) };
    assert_eq!(init.refused(refused).await, (Step::Program, libc::EACCES));
}

#[tokio::test]
async fn nonsense_is_refused_before_anything_runs() {
    let init = Init::start();
    assert_eq!(init.refused(exec(&[])).await, (Step::Request, libc::EINVAL));
    assert_eq!(init.refused(exec(&["true", "a\0b"])).await, (Step::Request, libc::EINVAL));
    for request in [
        Request { version: 99, ask: Some(Ask::Exec(exec(&["true"]))) },
        Request { version: wire::VERSION, ask: None },
    ] {
        let mut channel = init.ask(request, None).await;
        assert_eq!(failure(event(&mut channel).await), (Step::Request, libc::EINVAL));
    }
}

#[tokio::test]
async fn a_process_starts_with_three_descriptors_and_clean_signals() {
    let init = Init::start();
    let listing = init.run(exec(&["ls", "/proc/self/fd"])).await.text();
    assert_eq!(listing, "0\n1\n2\n3\n", "3 is the directory that ls reads");
    let status = init.run(exec(&["cat", "/proc/self/status"])).await.text();
    for line in ["SigBlk", "SigIgn", "SigCgt"] {
        assert!(status.contains(&format!("{line}:\t{:016x}\n", 0)), "{line} in {status}");
    }
    // With SIGPIPE ignored, `yes` would complain instead.
    let outcome = init.shell("yes | head -n 1").await;
    assert_eq!((outcome.text().as_str(), &outcome.error[..]), ("y\n", &b""[..]));
}

#[tokio::test]
async fn a_process_has_no_capability_and_cannot_gain_one() {
    let status = Init::start().run(exec(&["cat", "/proc/self/status"])).await.text();
    for line in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
        assert!(status.contains(&format!("{line}:\t{:016x}\n", 0)), "{line} in {status}");
    }
    assert!(status.contains("NoNewPrivs:\t1\n"), "{status}");
    assert!(status.contains("Umask:\t0022\n"), "{status}");
}

#[tokio::test]
async fn a_process_leads_its_own_session() {
    let text = Init::start().shell("cut -d' ' -f1,5,6 /proc/$$/stat").await.text();
    let ids: Vec<&str> = text.split_whitespace().collect();
    assert!(matches!(ids[..], [pid, group, session] if pid == group && pid == session), "{text}");
}

#[tokio::test]
async fn init_itself_is_out_of_reach() {
    let init = Init::start();
    let outcome =
        init.shell("readlink /proc/1/fd/*; readlink /proc/1/exe; cat /proc/1/environ /proc/1/maps").await;
    assert_eq!(outcome.text(), "");
    // PID 1 gets no signal from inside for which it has no handler.
    init.shell("kill -9 1; kill -11 1; kill -15 1; kill -17 1").await;
    assert_eq!(init.shell("echo still here").await.text(), "still here\n");
}

#[tokio::test]
async fn a_process_that_ends_at_once_is_never_missed() {
    let init = Init::start();
    for _ in 0..200 {
        assert_eq!(init.run(exec(&["true"])).await.exited, Exited::default());
    }
    let mut channels = Vec::new();
    for code in 0..100 {
        channels.push(init.begin(shell(&format!("exit {code}"))).await);
    }
    for (code, mut channel) in (0..).zip(channels) {
        assert!(matches!(event(&mut channel).await, Event::Started(_)));
        assert_eq!(exited(&mut channel.messages.receiver).await, Exited { code, ..Exited::default() });
    }
}
