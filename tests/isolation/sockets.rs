//! Kernel: 17 and 21, sockets and what of the host's could be reached without a file; and the host's name and
//! shared memory.

use harness::{Agentbox, breach, breach_all, callers, holds, stands};
use policy::Wall;

use crate::canary::token;
use crate::listener::Listener;
use crate::{none_of, probe};

callers!(kernel_17_socket_families, |caller| {
    if !harness::is_on(harness::HOST_KERNEL, "they are its own kernel's") {
        return;
    }
    stands(caller, Wall::Seccomp, &|start| {
        let output = probe(start(), &["sockets"]);
        let unix = libc::AF_UNIX;
        let is_expected = |line: &&str| {
            let Some(rest) = line.strip_prefix("made ") else {
                return line.ends_with(" EPERM") || line.ends_with("NOSUPPORT");
            };
            let numbers: Vec<i32> = rest.split(' ').map(|word| word.parse().unwrap()).collect();
            let [family, kind, protocol] = numbers[..] else { panic!("{line}") };
            match (family, kind) {
                (libc::AF_INET | libc::AF_INET6, libc::SOCK_STREAM) => {
                    [0, libc::IPPROTO_TCP].contains(&protocol)
                }
                (libc::AF_INET | libc::AF_INET6, libc::SOCK_DGRAM) => {
                    [0, libc::IPPROTO_UDP].contains(&protocol)
                }
                (libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_DGRAM) => protocol == libc::NETLINK_ROUTE,
                (family, _) => family == unix,
            }
        };
        for needed in ["made 1 1 0", "made 2 1 6", "made 2 2 17", "made 10 1 0", "made 16 3 0"] {
            assert!(output.lines().any(|line| line == needed), "'{needed}' is missing: {output}");
        }
        none_of("made", output.lines().filter(|line| !is_expected(line)).take(4))
    });
});

callers!(kernel_21_ports_of_the_host, |caller| {
    for address in ["127.0.0.1", "::1"] {
        let (listener, bound) = Listener::tcp(address);
        stands(caller, Wall::NetNamespace, &|start| {
            listener.check(&bound, || probe(start(), &["connect", "tcp", &bound]))
        });
    }
});

callers!(kernel_21_abstract_sockets, |caller| {
    let name = token();
    let listener = Listener::abstractly(&name);
    let check: harness::Check<'_> =
        &|start| listener.check(&format!("@{name}"), || probe(start(), &["connect", "abstract", &name]));
    holds(caller, check);
    breach_all(caller, &[Wall::NetNamespace, Wall::Landlock], check);
});

callers!(kernel_21_sockets_of_services, |caller| {
    let directory = caller.directory();
    let path = directory.path().join("agent.sock");
    let listener = Listener::at(&path);
    let path = path.display().to_string();
    let check: harness::Check<'_> = &|start| {
        let sandbox = || start().env("SSH_AUTH_SOCK", &path).env("DOCKER_HOST", &format!("unix://{path}"));
        listener.check("the agent's socket", || probe(sandbox(), &["connect", "unix", &path]))?;
        listener
            .check("the agent's socket", || probe(sandbox(), &["connect", "unix", &format!("/host{path}")]))
    };
    harness::holds(caller, check);
    // gVisor's kernel connects to no socket of the host's, wherever it is.
    if !harness::backend().has_own_kernel() {
        breach(caller, Wall::MountNamespace, check);
    }
    for path in
        ["/run/dbus/system_bus_socket", "/run/docker.sock", "/run/user/1000/bus", "/run/systemd/private"]
    {
        let said = probe(Agentbox::shipped(caller), &["connect", "unix", path]);
        assert!(said.ends_with(" ENOENT\n"), "{said}");
    }
});

callers!(kernel_shared_memory_of_the_host, |caller| {
    let segment = segment::Segment::new();
    let key = segment.key().to_string();
    stands(caller, Wall::IpcNamespace, &|start| {
        let output = probe(start(), &["shared-memory", &key]);
        none_of("found", output.lines().filter(|line| !line.ends_with(" ENOENT")))
    });
});

callers!(kernel_name_of_the_host, |caller| {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    stands(caller, Wall::UtsNamespace, &|start| {
        let name = start().run(["uname", "-n"]).assert_success().stdout();
        if name.trim() == host { Err(format!("the host's name is '{host}' inside")) } else { Ok(()) }
    });
});

/// Shared memory that everybody on the host may read; it goes when dropped.
mod segment {
    use std::process::Command;

    pub(super) struct Segment(String, i64);

    impl Segment {
        pub(super) fn new() -> Self {
            let made = Command::new("ipcmk").args(["--shmem", "4096", "--mode", "0644"]).output().unwrap();
            let id = String::from_utf8(made.stdout).unwrap();
            let id = id.trim().rsplit(' ').next().unwrap().to_owned();
            let table = std::fs::read_to_string("/proc/sysvipc/shm").unwrap();
            let key = table.lines().find_map(|line| {
                let fields: Vec<&str> = line.split_whitespace().collect();
                (fields[1] == id).then(|| fields[0].parse().unwrap())
            });
            Self(id, key.expect("the segment is listed"))
        }

        pub(super) fn key(&self) -> i64 {
            self.1
        }
    }

    impl Drop for Segment {
        fn drop(&mut self) {
            let _ = Command::new("ipcrm").args(["--shmem-id", &self.0]).status();
        }
    }
}
