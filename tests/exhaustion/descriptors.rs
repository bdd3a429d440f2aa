//! Exhaustion: 56. Descriptors and inotify instances.

use std::fs::File;

use harness::{Agentbox, callers_alone};

use crate::assert_host_forks;

callers_alone!(exhaustion_56_descriptors, |caller| {
    // Four processes, each until it is refused; they hold them until they are told to end.
    let script = "for (1 .. 3) { fork or last }
        my @held;
        while (open(my $file, '<', '/dev/null')) { push @held, $file }
        syswrite STDOUT, $! . qq(\\n);
        <STDIN>;";
    let running = Agentbox::shipped(caller).start(["/usr/bin/perl", "-e", script]);
    running.wait_for(&"Too many open files\n".repeat(4));
    let files: Vec<File> = (0..500).map(|_| File::open("/dev/null").unwrap()).collect();
    assert_eq!(files.len(), 500);
    assert_host_forks(caller);
    Agentbox::shipped(caller).run(["/bin/true"]).assert_success();
    running.finish().assert_success();
});

callers_alone!(exhaustion_56_inotify, |caller| {
    let script = "import ctypes, os, sys
libc, n = ctypes.CDLL(None, use_errno=True), 0
while libc.inotify_init1(0) >= 0:
    n += 1
print(os.strerror(ctypes.get_errno()), n, flush=True)
sys.stdin.read()";
    let running = Agentbox::shipped(caller).start(["/usr/bin/python3", "-c", script]);
    running.wait_for("Too many open files ");
    // We can make our own, and so can the caller and the caller's next sandbox.
    let one = "import ctypes; raise SystemExit(ctypes.CDLL(None).inotify_init1(0) < 0)";
    let ours = rustix::fs::inotify::init(rustix::fs::inotify::CreateFlags::empty());
    assert!(ours.is_ok(), "{ours:?}");
    let theirs = caller.command(std::path::Path::new("/usr/bin/python3")).args(["-c", one]).status().unwrap();
    assert!(theirs.success(), "the caller can make no inotify instance beside: {}", running.stdout());
    Agentbox::shipped(caller).run(["/usr/bin/python3", "-c", one]).assert_success();
    running.finish().assert_success();
});
