//! Lists of things that have to fail, each tried with arguments that would work for who may.

use std::ffi::c_long;
use std::fs::{self, OpenOptions};
use std::os::fd::AsRawFd as _;

use crate::sys::{Outcome, call, report, text};

const HERE: usize = libc::AT_FDCWD as usize;
/// The attributes of a mount as mount_setattr takes them: set nothing, clear read-only.
const WRITABLE: [u64; 4] = [0, 1, 0, 0];
const MAKE_COPY: usize = 1;

/// New mounts, other mounts, and the masks taken off.
pub(crate) fn mounts() {
    let (tmp, root, tmpfs) = (text("/tmp"), text("/"), text("tmpfs"));
    let bind = libc::MS_BIND as usize;
    let remount = (libc::MS_BIND | libc::MS_REMOUNT) as usize;
    let detach = libc::MNT_DETACH as usize;
    report("mount-tmpfs", call(libc::SYS_mount, &[tmpfs, tmp, tmpfs, 0, 0]));
    report("mount-proc", call(libc::SYS_mount, &[text("proc"), tmp, text("proc"), 0, 0]));
    report("mount-bind", call(libc::SYS_mount, &[text("/etc"), tmp, 0, bind, 0]));
    for path in ["/", "/usr", "/proc/sys"] {
        report(&format!("remount {path}"), call(libc::SYS_mount, &[0, text(path), 0, remount, 0]));
    }
    for path in
        ["/proc/sys", "/proc/keys", "/proc/sysrq-trigger", "/proc/bus", "/proc", "/usr", "/.agentbox/init"]
    {
        report(&format!("umount {path}"), call(libc::SYS_umount2, &[text(path), detach]));
    }
    report("open_tree", call(libc::SYS_open_tree, &[HERE, root, MAKE_COPY]));
    report("move_mount", call(libc::SYS_move_mount, &[HERE, text("/usr"), HERE, tmp, 0]));
    report("fsopen", call(libc::SYS_fsopen, &[tmpfs, 0]));
    report("fspick", call(libc::SYS_fspick, &[HERE, root, 0]));
    let size = size_of_val(&WRITABLE);
    report(
        "mount_setattr",
        call(libc::SYS_mount_setattr, &[HERE, text("/usr"), 0, WRITABLE.as_ptr() as usize, size]),
    );
    report("pivot_root", call(libc::SYS_pivot_root, &[tmp, tmp]));
    report("chroot", call(libc::SYS_chroot, &[tmp]));
}

/// Device nodes: made, or there already.
pub(crate) fn nodes() {
    let device = |major: u32, minor: u32| libc::makedev(major, minor) as usize;
    let make = |name: &str, kind: u32, device: usize| {
        let path = text(&format!("/tmp/{name}"));
        report(name, call(libc::SYS_mknodat, &[HERE, path, (kind | 0o666) as usize, device]));
    };
    make("mknod-null", libc::S_IFCHR, device(1, 3));
    make("mknod-mem", libc::S_IFCHR, device(1, 1));
    make("mknod-whiteout", libc::S_IFCHR, device(0, 0));
    make("mknod-disk", libc::S_IFBLK, device(254, 0));
    for directory in ["/dev", "/host/dev"] {
        let Ok(entries) = fs::read_dir(directory) else { continue };
        for entry in entries.flatten() {
            println!("node {directory}/{}", entry.file_name().display());
        }
    }
    for path in ["/dev/kvm", "/dev/mem", "/dev/fuse", "/dev/net/tun", "/dev/vda", "/dev/sda", "/dev/vsock"] {
        report(&format!("open {path}"), open(path, &OpenOptions::new().read(true).write(true).clone()));
    }
}

/// Another process's memory and descriptors.
pub(crate) fn trace(pid: &str) {
    const WORD: usize = 8;
    let number: usize = pid.parse().expect("a pid");
    let mut word = 0u64;
    let local = [(&raw mut word) as usize, WORD];
    // Where nothing is: who may look there at all is told that, and nothing is changed.
    let remote = [0usize, WORD];
    let vectors = [number, local.as_ptr() as usize, 1, remote.as_ptr() as usize, 1, 0];
    // Not PTRACE_ATTACH, which would stop init for good where it succeeds.
    report("ptrace", call(libc::SYS_ptrace, &[libc::PTRACE_SEIZE as usize, number, 0, 0]));
    report("process_vm_readv", call(libc::SYS_process_vm_readv, &vectors));
    report("process_vm_writev", call(libc::SYS_process_vm_writev, &vectors));
    report(
        "pidfd_getfd",
        call(libc::SYS_pidfd_open, &[number, 0])
            .and_then(|pidfd| call(libc::SYS_pidfd_getfd, &[pidfd, 0, 0])),
    );
    for file in
        ["mem", "environ", "maps", "auxv", "pagemap", "stack", "fd/0", "root/etc/passwd", "cwd/etc/passwd"]
    {
        let path = format!("/proc/{pid}/{file}");
        report(file, read(&path));
    }
    for link in ["exe", "root", "cwd", "fd/0", "ns/user", "ns/mnt", "ns/net"] {
        let outcome = fs::read_link(format!("/proc/{pid}/{link}")).map(|_| 0);
        report(&format!("link-{link}"), outcome.map_err(|error| error.raw_os_error().unwrap_or_default()));
    }
}

fn read(path: &str) -> Outcome {
    // Not all of it: some of these files are as long as the memory could be.
    let file = fs::File::open(path).and_then(|mut file| std::io::Read::read(&mut file, &mut [0; 16]));
    file.map_err(|error| error.raw_os_error().unwrap_or_default())
}

/// Programs that run, and files beside them: written, cut, replaced, removed.
pub(crate) fn overwrite(paths: &[&str]) {
    let write = OpenOptions::new().write(true).clone();
    let cut = OpenOptions::new().write(true).truncate(true).clone();
    for path in paths.iter().chain(&["/proc/self/exe", "/proc/1/exe", "/.agentbox/init"]) {
        report(&format!("write {path}"), open(path, &write));
        report(&format!("cut {path}"), open(path, &cut));
        let done = |done: std::io::Result<()>| {
            done.map(|()| 0).map_err(|error| error.raw_os_error().unwrap_or_default())
        };
        report(
            &format!("chmod {path}"),
            done(fs::metadata(path).and_then(|it| fs::set_permissions(path, it.permissions()))),
        );
        if path.starts_with("/proc/") {
            continue;
        }
        report(&format!("append {path}"), done(fs::write(path, "overwritten from inside")));
        report(&format!("remove {path}"), done(fs::remove_file(path)));
        report(&format!("create {path}.new"), done(fs::write(format!("{path}.new"), "new from inside")));
    }
}

fn open(path: &str, options: &OpenOptions) -> Outcome {
    options
        .open(path)
        .map(|file| file.as_raw_fd() as usize)
        .map_err(|error| error.raw_os_error().unwrap_or_default())
}

/// Calls that lead to large parts of the kernel, with arguments that are good.
pub(crate) fn forbidden() {
    let mut parameters = [0u64; 15];
    report("io_uring_setup", call(libc::SYS_io_uring_setup, &[4, parameters.as_mut_ptr() as usize]));
    report("io_uring_enter", call(libc::SYS_io_uring_enter, &[0, 0, 0, 0, 0, 0]));
    report("io_uring_register", call(libc::SYS_io_uring_register, &[0, 0, 0, 0]));
    // BPF_MAP_CREATE of an array with one element of four bytes each.
    let map: [u32; 32] = std::array::from_fn(|index| [2, 4, 4, 1].get(index).copied().unwrap_or_default());
    report("bpf", call(libc::SYS_bpf, &[0, map.as_ptr() as usize, size_of_val(&map)]));
    // A software counter of one's own process: PERF_TYPE_SOFTWARE, size 128.
    let event: [u32; 32] = std::array::from_fn(|index| [1, 128].get(index).copied().unwrap_or_default());
    let everything = usize::MAX;
    report(
        "perf_event_open",
        call(libc::SYS_perf_event_open, &[event.as_ptr() as usize, 0, everything, everything, 0]),
    );
    const USER_MODE_ONLY: usize = 1;
    report("userfaultfd", call(libc::SYS_userfaultfd, &[USER_MODE_ONLY]));
    let (user, name, payload) = (text("user"), text("agentbox"), text("payload"));
    let session = libc::KEY_SPEC_SESSION_KEYRING as usize;
    report("add_key", call(libc::SYS_add_key, &[user, name, payload, 7, session]));
    report("request_key", call(libc::SYS_request_key, &[user, name, 0, session]));
    report("keyctl", call(libc::SYS_keyctl, &[0, session, 0]));
    let handle = [0u8; 64];
    report("open_by_handle_at", call(libc::SYS_open_by_handle_at, &[HERE, handle.as_ptr() as usize, 0]));
    for (name, number) in [
        ("kexec_load", libc::SYS_kexec_load),
        ("init_module", libc::SYS_init_module),
        ("finit_module", libc::SYS_finit_module),
        ("delete_module", libc::SYS_delete_module),
        ("quotactl", libc::SYS_quotactl),
        ("swapon", libc::SYS_swapon),
        ("fanotify_init", libc::SYS_fanotify_init),
        ("syslog", libc::SYS_syslog),
        ("acct", libc::SYS_acct),
        ("settimeofday", libc::SYS_settimeofday),
        ("move_pages", libc::SYS_move_pages),
        ("setns", libc::SYS_setns),
        ("kcmp", libc::SYS_kcmp),
    ] as [(&str, c_long); 13]
    {
        // Numbers that are no addresses and no descriptors: only who looks at the call itself says EPERM to all.
        report(name, call(number, &[usize::MAX; 6]));
    }
}
