//! Kernel: 19 and 20, what of the kernel's own files and of terminals is open; and the second wall around files.

use std::fs;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::time::Duration;

use harness::{Agentbox, callers, stands};
use policy::Wall;
use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::{all_refused, none_of, probe};

/// Prints what is open of the kernel's own files, here or where a root of the host's could be.
const SCRIPT: &str = r#"
for root in "" /host; do
  for name in config.gz kallsyms kcore key-users keys kmsg latency_stats modules sched_debug sysrq-trigger timer_list; do
    file=$root/proc/$name
    [ ! -e "$file" ] || [ "$(stat -c %t:%T "$file")" = 1:3 ] || echo "open $file"
  done
  for name in acpi asound bus driver dynamic_debug fs irq scsi; do
    [ -z "$(ls -A $root/proc/$name 2>/dev/null)" ] || echo "open $root/proc/$name"
  done
  for name in block bus class dev firmware hypervisor kernel module power; do
    [ ! -e $root/sys/$name ] || echo "there $root/sys/$name"
  done
done
for file in /proc/sys/kernel/core_pattern /proc/sys/kernel/sysrq /proc/sys/vm/drop_caches /proc/sys/net/ipv4/ip_forward \
  /proc/sys/user/max_user_namespaces $(find /sys -name release_agent -o -name cgroup.procs -o -name memory.max 2>/dev/null); do
  ( : >> "$file" ) 2>/dev/null && echo "writable $file"
done
true
"#;

callers!(kernel_19_files_of_the_kernel, |caller| {
    if !harness::is_on(harness::HOST_KERNEL, "they are its own kernel's") {
        return;
    }
    let settings =
        ["/proc/sys/kernel/core_pattern", "/proc/sys/kernel/sysrq", "/proc/sys/user/max_user_namespaces"];
    let read = || settings.map(|path| fs::read_to_string(path).unwrap_or_default());
    let before = read();
    stands(caller, Wall::MountNamespace, &|start| {
        let finished = start().run(["sh", "-c", SCRIPT]);
        none_of("of the kernel's", finished.assert_success().stdout().lines().take(4))
    });
    assert_eq!(read(), before);
    // The sandbox sizes itself by what is left.
    let left = Agentbox::shipped(caller).run(["sh", "-c", "ls /sys /sys/devices/system"]);
    assert_eq!(left.assert_success().stdout(), "/sys:\ndevices\nfs\n\n/sys/devices/system:\ncpu\n");
});

callers!(kernel_20_terminals, |caller| {
    stands(caller, Wall::Seccomp, &|start| {
        let terminal = Terminal::open();
        let output = terminal.run(&start().option("--tty"), &["terminal"]);
        let pending = terminal.pending_input();
        if !pending.is_empty() {
            return Err(format!("typed on the host's terminal: {pending:?}"));
        }
        // A kernel of the sandbox's own knows no such thing.
        let ways: &[&str] = if harness::backend().has_own_kernel() { &["ENOTTY"] } else { &["EPERM"] };
        all_refused(&output, ways)
    });
});

/// A terminal of the host's.
struct Terminal {
    outer: OwnedFd,
    inner: OwnedFd,
}

impl Terminal {
    fn open() -> Self {
        let outer = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&outer).and_then(|()| unlockpt(&outer)).unwrap();
        let name = ptsname(&outer, Vec::new()).unwrap();
        let inner = rustix::fs::open(&name, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty());
        Self { outer, inner: inner.unwrap() }
    }

    /// Runs the probe on it and gives what it showed.
    fn run(&self, sandbox: &Agentbox, words: &[&str]) -> String {
        let stream = || self.inner.try_clone().unwrap();
        let sandbox = sandbox.clone().behind(["/usr/bin/setsid", "--ctty", "--wait"]);
        let words = std::iter::once("/probe").chain(words.iter().copied());
        let mut command = sandbox.options(["--mount", &harness::probe_mount()]).command(words);
        let mut child =
            command.stdin(stream()).stdout(stream()).stderr(std::process::Stdio::null()).spawn().unwrap();
        let status = child.wait().unwrap();
        let mut shown = vec![0; 4096];
        let count = fs::File::from(self.outer.try_clone().unwrap()).read(&mut shown).unwrap();
        let shown = String::from_utf8_lossy(&shown[..count]).replace('\r', "");
        assert!(status.success(), "{status}: {shown}");
        shown
    }

    /// What somebody seems to have typed.
    fn pending_input(&self) -> Vec<u8> {
        std::thread::sleep(Duration::from_millis(20));
        rustix::fs::fcntl_setfl(&self.inner, OFlags::RDWR | OFlags::NONBLOCK).unwrap();
        let mut typed = vec![0; 64];
        let count = rustix::io::read(&self.inner, &mut typed).unwrap_or_default();
        typed.truncate(count);
        typed
    }
}

callers!(kernel_a_second_wall_around_files, |caller| {
    if !harness::is_on(harness::HOST_KERNEL, "its kernel has no Landlock") {
        return;
    }
    let modules = fs::read_to_string("/sys/kernel/security/lsm").unwrap_or_else(|_| "landlock".to_owned());
    if !modules.contains("landlock") {
        println!("skipped: this kernel runs without Landlock");
        return;
    }
    // The kernel takes sixteen domains, one in the other: whoever is in one already can enter fifteen.
    stands(caller, Wall::Landlock, &|start| {
        let output = probe(start(), &["landlock-layers"]);
        none_of("the process is in no domain", output.lines().filter(|line| *line != "layers 15 E2BIG"))
    });
});
