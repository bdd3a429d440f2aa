//! Images that put something of theirs in the places of our own, programs that would gain by one, and layers that want
//! everything. Whatever they say, the host's canaries are as they were, and what cannot be unpacked leaves nothing.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

use harness::{Caller, callers, is_full, is_root};
use images::Guard;
use policy::Wall;

use crate::layout::Layout;
use crate::leading::canary;
use crate::place::{Place, busybox, seen};
use crate::served::{Registry, Wants};
use crate::tar::{Entry, Tar};

// isolation.md 19: whatever an image has where the sandbox's own things are.
callers!(links_in_the_places_of_our_own_lead_nowhere, |caller| {
    let place = Place::new(caller);
    let canary = canary(&place);
    let outside = canary.display().to_string();
    let file = format!("{outside}/file");
    let before = seen(&canary);
    let at_top = |names: &[&str]| names.iter().fold(busybox(), |tar, name| tar.link(name, &outside));
    let images = [
        (
            "at the top",
            at_top(&["dev", "proc", "sys", "etc", "tmp", "home", "workspace", "mnt", ".agentbox", "run"]),
        ),
        (
            "below",
            busybox()
                .link("dev/null", &file)
                .link("dev/pts", &outside)
                .link("dev/shm", &outside)
                .link("proc/self", &outside)
                .link("sys/fs", &outside)
                .link("etc/passwd", &file)
                .link("etc/group", &file)
                .link("etc/hosts", &file)
                .link("etc/hostname", &file)
                .link("etc/resolv.conf", &file)
                .link("etc/nsswitch.conf", &file)
                .link("home/agent", &outside)
                .link(".agentbox/init", &file)
                .link(".agentbox/upper", &outside)
                .link("mnt/user-data", &outside),
        ),
        (
            "to init",
            busybox().link("etc/resolv.conf", "/proc/1/environ").link("etc/passwd", "/proc/self/mem"),
        ),
        (
            "files",
            at_top(&[])
                .file("dev", b"x")
                .file("proc", b"x")
                .file("etc", b"x")
                .file("home", b"x")
                .file("tmp", b"x"),
        ),
    ];
    for (what, tar) in images {
        place.import(&Layout::of(&[tar.finish()]), "evil:1").assert_success();
        let script = "echo x > /dev/null && test -c /dev/null; test -c /dev/pts/ptmx; grep -q ^Name: /proc/self/status; \
                      grep -q ^nameserver /etc/resolv.conf; grep -q ^agent: /etc/passwd; grep -q localhost /etc/hosts; \
                      echo mine > /home/agent/x; echo mine > /tmp/x; echo mine > /workspace/x; \
                      echo mine > /mnt/user-data/outputs/x; echo mine > /dev/shm/x; test -d /sys/fs/cgroup; id -un";
        let script = format!("set -e; {script}");
        assert_eq!(place.run("evil:1", &script), "agent\n", "{what}");
        assert_eq!(seen(&canary), before, "{what}");
        assert_eq!(fs::read_to_string(canary.join("file")).unwrap(), "untouched");
    }
});

callers!(programs_of_an_image_gain_nothing, |caller| {
    let place = Place::new(caller);
    // Not busybox, which gives such rights away by itself.
    let program = fs::read(harness::binaries().probe()).unwrap();
    let tar = busybox()
        .entry(Entry { name: "bin/become", mode: 0o6755, contents: &program, ..Entry::PLAIN })
        .entry(Entry { name: "bin/device", kind: b'3', mode: 0o666, ..Entry::PLAIN });
    place.import(&Layout::of(&[tar.finish()]), "evil:1").assert_success();
    assert_eq!(place.run("evil:1", "stat -c %a /bin/become"), "6755\n");
    let check: harness::Check<'_> = &|start| {
        let run = place.with(start()).options(["--image", "evil:1"]).run(["/bin/become", "identity"]);
        let out = run.assert_success().stdout();
        let ids = out.lines().filter(|line| line.starts_with("Uid:") || line.starts_with("Gid:"));
        let gained: Vec<&str> = ids.filter(|line| !line.ends_with(": 1000 1000 1000 1000")).collect();
        assert!(out.contains("Uid: "), "{out}");
        if gained.is_empty() { Ok(()) } else { Err(format!("gained by a set-user-id program: {gained:?}")) }
    };
    harness::holds(caller, check);
    // Whoever has one id has nobody else's files in an image.
    if caller != Caller::Single {
        harness::breach_all(caller, &[Wall::NoNewPrivileges, Wall::Seccomp, Wall::Landlock], check);
    }
    // What is set-user-id in the store is out of everybody's reach but its owner's.
    let store = fs::metadata(place.store()).unwrap();
    assert_eq!(store.permissions().mode() & 0o777, 0o700);
    assert!(!place.store().join("layers").join(&place.layers()[0]).join("bin/device").exists());
});

// Seen in the store, where somebody of the host's could come by it: taken in, and brought from a registry.
callers!(devices_and_pipes_of_an_image_are_never_made, |caller| {
    let place = Place::new(caller);
    let of = |name, kind, device| Entry { name, kind, device, mode: 0o666, ..Entry::PLAIN };
    let tar = busybox()
        .directory("dev/", 0o755, (0, 0))
        .entry(of("dev/kmsg", b'3', (1, 11)))
        .entry(of("dev/disk", b'4', (8, 0)))
        .entry(of("null", b'3', (1, 3)))
        .entry(of("pipe", b'6', (0, 0)))
        .file("kept", b"kept")
        // What would hide a name, if it were made, without having been a whiteout.
        .entry(of("kept", b'3', (0, 0)));
    let layout = Layout::of(&[tar.clone().finish()]);
    let made = || -> Vec<_> {
        let odd = |mode: &u64| !matches!(mode & 0o170_000, 0o100_000 | 0o040_000 | 0o120_000);
        seen(&place.store()).into_iter().filter(|(_, facts)| odd(&facts[0])).collect()
    };
    let told = place.import(&layout, "odd:1").assert_success().stderr();
    assert!(told.contains("5 devices and pipes were left out"), "{told}");
    assert_eq!(made(), []);
    assert_eq!(place.run("odd:1", "cat /kept; ls /null /pipe 2>/dev/null || true"), "kept");
    // Nor is there anything that a second name could be given to.
    let linked = place.import(&Layout::of(&[tar.hard_link("second", "null").finish()]), "odd:2");
    assert!(linked.assert_code(125).stderr().contains("which is no file of this archive"), "{linked:?}");
    assert_eq!(made(), []);
    place.say(&["image", "rm", "odd:1"]).assert_success();
    place.say(&["image", "gc"]).assert_success();
    let Some(registry) = Registry::start(Wants::Nothing) else { return };
    layout.write(&place.path("pushed"));
    registry.push(&place.path("pushed"), "me/odd:1");
    let name = format!("127.0.0.1:{}/me/odd:1", registry.port);
    let told = place.say(&["image", "pull", &name]).assert_success().stderr();
    assert!(told.contains("5 devices and pipes were left out"), "{told}");
    assert_eq!((made(), place.layers().len()), (Vec::new(), 1));
});

callers!(what_would_become_too_much_is_refused, |caller| {
    let place = Place::new(caller);
    // A file that says to be larger than any layer, by gzip of almost nothing.
    let mut tar = Tar::default();
    tar.header(&Entry { name: "large", ..Entry::PLAIN }, 0o77_777_777_777);
    let mut tar2 = tar.clone();
    for number in 0..16 {
        tar2.header(&Entry { name: &format!("large{number}"), ..Entry::PLAIN }, 0o77_777_777_777);
    }
    let imported = place.import(&Layout::of(&[tar.finish()]), "evil:1");
    assert!(imported.assert_code(125).stderr().contains("the archive is cut off"), "{}", imported.stderr());
    // More memory than it has is not taken whatever it says.
    let huge = Tar::default().extended(&[("comment", &"x".repeat(60_000))]).file("x", b"x");
    place.import(&Layout::of(&[huge.finish()]), "large:1").assert_success();
    let many = Tar::default().extended(&[("comment", &"x".repeat(200_000))]).file("x", b"x");
    let imported = place.import(&Layout::of(&[many.finish()]), "evil:2");
    assert!(
        imported.assert_code(125).stderr().contains("the limit of an extended header"),
        "{}",
        imported.stderr()
    );
    let wide = (0..250).fold(busybox(), |tar, number| tar.directory(&format!("top{number}/"), 0o755, (0, 0)));
    place.import(&Layout::of(&[wide.finish()]), "wide:1").assert_success();
    let run = place.agentbox().options(["--image", "wide:1"]).run(["/bin/true"]);
    assert!(run.assert_code(125).stderr().contains("too many mounts"), "{}", run.stderr());
});

/// A stream by gzip, without having it.
fn gzipped(write: impl FnOnce(&mut dyn std::io::Write) + Send) -> Vec<u8> {
    let mut gzip =
        Command::new("gzip").args(["-9", "-c"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = gzip.stdin.take().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || write(&mut stdin));
        gzip.wait_with_output().unwrap().stdout
    })
}

#[test]
fn a_bomb_is_refused_with_little_memory() {
    if !is_root("limits of memory are set by prlimit") {
        return;
    }
    let place = Place::new(Caller::Root);
    let bomb = gzipped(|output| {
        let mut tar = Tar::default();
        tar.header(&Entry { name: "zeros", ..Entry::PLAIN }, 6 << 30);
        let _ = output.write_all(&tar.finish()[..512]);
        let zeros = vec![0; 1 << 20];
        for _ in 0..1600 {
            let _ = output.write_all(&zeros);
        }
    });
    assert!(bomb.len() < 16 << 20);
    let kind = "application/vnd.oci.image.layer.v1.tar+gzip".to_owned();
    let layout = Layout {
        media_type: Some(kind.clone()),
        unpacked: Some(vec![images::Digest::of(b"")]),
        ..Layout::of(&[bomb])
    };
    layout.write(&place.path("bomb"));
    let path = place.path("bomb").display().to_string();
    let limited = |place: &Place, words: &[&str]| {
        place.agentbox().behind(["/usr/bin/prlimit", "--data=300000000", "--"]).start_words(words).finish()
    };
    crate::guarded::stands(Caller::Root, &[Guard::Size], &|place| {
        let told = limited(place, &["image", "import", &path, "bomb:1"]).assert_code(125).stderr();
        assert_eq!(place.layers(), Vec::<String>::new());
        if told.contains("400 times as large") {
            Ok(())
        } else {
            Err(format!("all of it was unpacked: {told}"))
        }
    });
    if !is_full() {
        return;
    }
    // A million names are not made for anybody.
    let names = gzipped(|output| {
        let mut tar = Tar::default();
        tar.header(&Entry { name: "name", ..Entry::PLAIN }, 0);
        let header = tar.finish()[..512].to_vec();
        for _ in 0..1_000_100 {
            let _ = output.write_all(&header);
        }
    });
    let layout = Layout {
        media_type: Some(kind),
        unpacked: Some(vec![images::Digest::of(b"")]),
        ..Layout::of(&[names])
    };
    layout.write(&place.path("names"));
    let imported =
        limited(&place, &["image", "import", &place.path("names").display().to_string(), "names:1"]);
    assert!(imported.assert_code(125).stderr().contains("the limit of entries"), "{}", imported.stderr());
}
