//! Kernel: 22, its second half. The supervisor's posture equals its golden file, its live filter the golden
//! matrix; taken over, it can neither execute, nor reach a socket, nor a file but its own.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::ExitStatusExt as _;
use std::process::Command;

use harness::{Agentbox, Caller, Running, binaries, callers, is_root};
use jail::seccomp::{Action, Architecture, Filter, SeccompData, interpret};
use policy::Nesting;

use crate::canary::token;
use crate::listener::Listener;
use crate::posture::{Golden, Posture, Values};
use crate::syscalls::golden;

/// The host id of a supervisor of root's: the last of a range.
const OWN_ID: u32 = 0x70FF_FFFF;

fn start(caller: Caller) -> Running {
    // Whoever calls has a file open, which is nobody's business.
    let holding = ["/bin/sh", "-c", "exec 7</etc/hostname; exec \"$@\"", "sh"];
    let running = Agentbox::shipped(caller).behind(holding).start(["sh", "-c", "echo started; cat"]);
    running.wait_for("started\n");
    running
}

callers!(kernel_22_supervisor_posture, |caller| {
    if !is_root("look into processes that are not dumpable") {
        return;
    }
    let running = start(caller);
    let processes = running.processes();
    let posture = Posture::of(processes.supervisor);
    let mut values = Values::of(caller, &Posture::of(processes.command), false);
    let file = match caller {
        Caller::Root => "supervisor-posture-root.txt",
        Caller::Subordinate | Caller::Single => "supervisor-posture-user.txt",
    };
    if caller == Caller::Root {
        let map = Posture::of(processes.init).value("uid-map").to_owned();
        values = values.with_base(map.split(' ').nth(1).unwrap().parse().unwrap());
    }
    let differences = Golden::read(file).compare(&posture, &values);
    assert!(differences.is_empty(), "{differences:#?}");
    // A runtime's root is the caller where there is one id, and init has left its namespace; whether it may be read is
    // not decided by whose file that is.
    let is_moved = harness::backend() != policy::Backend::Native && caller == Caller::Single;
    // Its memory is nobody's but root's, who owns the files of a process that is not dumpable.
    for pid in [processes.supervisor, processes.init] {
        assert_eq!(
            fs::metadata(format!("/proc/{pid}/mem")).unwrap().uid(),
            if pid == processes.init && is_moved { caller.uid() } else { owner_of_undumpable(pid) },
            "{pid}"
        );
    }
});

/// Root of the user namespace that the program was executed in, as far as the host knows one, else the host's.
fn owner_of_undumpable(pid: i32) -> u32 {
    let map = fs::read_to_string(format!("/proc/{pid}/uid_map")).unwrap();
    let fields: Vec<u32> = map.split_whitespace().take(3).map(|word| word.parse().unwrap()).collect();
    if fields[0] == 0 { fields[1] } else { 0 }
}

callers!(kernel_22_live_filters, |caller| {
    if !harness::is_on(harness::HOST_KERNEL, "there is no filter of ours") {
        return;
    }
    if !is_root("look at the filter of a live process") {
        return;
    }
    let running = start(caller);
    let processes = running.processes();
    let architecture = Architecture::NATIVE;
    for (pid, subject, filter) in [
        (processes.supervisor, "supervisor", Filter::for_supervisor(architecture)),
        (processes.command, "sandbox", Filter::for_sandbox(architecture, Nesting::Closed)),
        (processes.init, "sandbox", Filter::for_sandbox(architecture, Nesting::Closed)),
    ] {
        let live = harness::seccomp_filter(pid).unwrap();
        let plain = |program: &[libc::sock_filter]| -> Vec<_> {
            program.iter().map(|it| (it.code, it.jt, it.jf, it.k)).collect()
        };
        assert_eq!(plain(&live), plain(filter.instructions()), "{subject}");
        compare(subject, &live);
    }
});

/// Interprets a live filter for every number.
fn compare(subject: &str, live: &[libc::sock_filter]) {
    let (golden, architecture) = (golden(subject), Architecture::NATIVE);
    for number in 0..=1023 {
        let verdict = architecture.name_of(number).map_or("enosys", |name| golden[name].as_str());
        let expected = match verdict {
            "allow" => Action::Allow,
            "eperm" => Action::Errno(libc::EPERM as u16),
            "enosys" => Action::Errno(libc::ENOSYS as u16),
            "kill" => Action::KillProcess,
            // The jail's own tests ask these about every argument that matters.
            _ => continue,
        };
        for value in [0, 1, 2, 0x5412, 0x1000_0000, u64::MAX] {
            let data = SeccompData {
                number,
                architecture: architecture.audit_value(),
                instruction_pointer: 0,
                arguments: [value; 6],
            };
            assert_eq!(interpret(live, &data).unwrap().action, expected, "{subject} {number} {value}");
        }
    }
}

/// Confines a probe as the supervisor confines itself, and lets it try one thing.
fn attempt(caller: Caller, action: &[&str]) -> String {
    let uid = if caller == Caller::Root { OWN_ID.to_string() } else { "-".to_owned() };
    let mut command: Command = caller.command(&binaries().probe());
    let output = command.args(["confine", &uid]).args(action).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.starts_with("confined\n"), "{action:?}: {said} {}", String::from_utf8_lossy(&output.stderr));
    match output.status.signal() {
        Some(libc::SIGSYS) => "killed".to_owned(),
        Some(signal) => format!("signal {signal}"),
        None => said.strip_prefix("confined\n").unwrap().trim().to_owned(),
    }
}

callers!(kernel_22_a_supervisor_taken_over, |caller| {
    let attempt = |action: &[&str]| attempt(caller, action);
    assert_eq!(attempt(&["nothing"]), "attempt ok");

    // A socket that everybody may connect to.
    let runtime = caller.directory();
    let path = runtime.path().join("canary.sock");
    let listener = Listener::at(&path);
    let path = path.display().to_string();
    for way in ["connect", "datagram"] {
        assert_eq!(attempt(&[way, &path]), "killed", "{way}");
    }
    assert_eq!(listener.visits(), 0);
    assert_eq!(attempt(&["exec", "/bin/true"]), "killed");

    // Files: the host's, those beside its sandbox, and the root itself.
    let secret = runtime.path().join(token());
    fs::write(&secret, "").unwrap();
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o666)).unwrap();
    let secret = secret.display().to_string();
    for path in
        ["/etc/passwd", "/etc/shadow", "/proc/1/environ", "/proc/self/status", "/../etc/passwd", &secret]
    {
        let said = attempt(&["read", path]);
        assert!(["attempt ENOENT", "attempt EACCES"].contains(&said.as_str()), "{path}: {said}");
    }
    for path in ["/file", "/etc/resolv.conf", "/etc/hosts", "/etc/new", &secret] {
        let said = attempt(&["write", path]);
        let refused = ["attempt ENOENT", "attempt EACCES", "attempt EROFS"];
        assert!(refused.contains(&said.as_str()), "{path}: {said}");
    }
    assert_eq!(fs::read(&secret).unwrap(), b"");

    // Other processes, also of its own id; mounts; a process of its own.
    let own = std::process::id().to_string();
    assert_eq!(attempt(&["signal", &own]), "attempt EPERM");
    assert_eq!(attempt(&["trace", &own]), "killed");
    assert_eq!(attempt(&["mount"]), "killed");
    assert_eq!(attempt(&["fork"]), "attempt EPERM");
});
