//! The process that reads what strangers send: its walls, and its end.

use std::fs;
use std::time::{Duration, Instant};

use harness::{Caller, HostProcess, Internet, callers, host_processes};
use rustix::process::Signal;

use super::{KEY, Proxy};

/// The process that the program has started to be the proxy.
fn confined(proxy: &Proxy<'_>) -> Option<HostProcess> {
    let parent = proxy.running.pid();
    host_processes().into_iter().find(|process| process.parent == parent && process.name == "agentbox-proxy")
}

callers!(it_has_the_walls_of_a_supervisor, |caller| {
    let internet = Internet::new();
    let proxy = Proxy::start(&internet, internet.agentbox(caller));
    let pid = confined(&proxy).unwrap().pid;
    // Nothing that the owner's environment holds is in its memory: it was started with none.
    assert_eq!(fs::read(format!("/proc/{pid}/environ")).unwrap(), b"");
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let value = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.unwrap().split_whitespace().next().unwrap_or_default().to_owned()
    };
    for name in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
        assert_eq!(value(name), "0000000000000000", "{name}");
    }
    assert_eq!((value("NoNewPrivs").as_str(), value("Seccomp").as_str()), ("1", "2"));
    let uid: u32 = value("Uid").parse().unwrap();
    if caller == Caller::Root {
        assert!((0x7000_0000..0x8000_0000).contains(&uid), "{uid}");
    } else {
        assert_eq!(uid, caller.uid());
    }
    let mounts = fs::read_to_string(format!("/proc/{pid}/mounts")).unwrap();
    let places: Vec<&str> = mounts.lines().filter_map(|line| line.split(' ').nth(1)).collect();
    assert!(places.iter().all(|place| ["/", "/etc/resolv.conf", "/etc/hosts"].contains(place)), "{mounts}");
    let live = harness::seccomp_filter(pid).unwrap();
    let filter = jail::seccomp::Filter::for_supervisor(jail::seccomp::Architecture::NATIVE);
    assert_eq!(live.len(), filter.instructions().len());
});

callers!(it_ends_when_it_is_told_to_and_with_its_owner, |caller| {
    for (signal, code) in [(Signal::TERM, 0), (Signal::INT, 0), (Signal::KILL, 137)] {
        let internet = Internet::new();
        let proxy = Proxy::start(&internet, internet.agentbox(caller));
        let pid = confined(&proxy).unwrap().pid;
        proxy.running.signal(signal);
        let finished = proxy.running.finish_within(Duration::from_secs(10));
        assert_eq!(finished.code, code, "{signal:?}: {}", finished.stderr());
        let deadline = Instant::now() + Duration::from_secs(5);
        while fs::exists(format!("/proc/{pid}")).unwrap() {
            assert!(Instant::now() < deadline, "it goes on");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
});

#[test]
fn others_than_this_machine_are_warned_of() {
    harness::as_caller(Caller::Root, harness::Company::Anybody, |caller| {
        let internet = Internet::new();
        let directory = caller.directory();
        let log = directory.path().join("log").display().to_string();
        let agentbox = internet.agentbox(caller).env("SIGNING_KEY", KEY);
        let running = agentbox.start_words(&["proxy", "--json", "--listen", "192.0.2.1:0", "--log", &log]);
        running.wait_for("{\"listening\":\"192.0.2.1:");
        running.wait_for_stderr("warning: others than this machine reach the proxy on 192.0.2.1:");
        assert_eq!(fs::read_to_string(&log).unwrap(), "");
    });
}
