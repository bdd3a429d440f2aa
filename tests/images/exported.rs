//! Where an exported image goes, and what is there before: a file is replaced whole or stays, and what is no file stays in
//! any case.

use std::fs;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _, lchown, symlink};
use std::path::Path;
use std::process::Command;

use harness::{Caller, Finished, callers, is_root};

use crate::full::Disk;
use crate::layout::Layout;
use crate::place::{Place, busybox, is_once};

fn filled(caller: Caller) -> Place {
    let place = Place::new(caller);
    place.import(&Layout::of(&[busybox().finish()]), "bb:1").assert_success();
    place
}

#[track_caller]
fn export(place: &Place, path: &Path) -> Finished {
    place.say(&["image", "export", "bb:1", "-o", &path.display().to_string()])
}

/// Whether it is an archive to its end.
fn is_whole(path: &Path) -> bool {
    let listed = Command::new("tar").arg("tf").arg(path).output().unwrap();
    listed.status.success() && String::from_utf8_lossy(&listed.stdout).contains("blobs/sha256/")
}

fn names(path: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

callers!(a_device_stays_what_it_is, |caller| {
    if !is_once() {
        return;
    }
    if !is_root("a device is made") {
        return;
    }
    let place = filled(caller);
    let node = place.path("full");
    // A node of our own that is always full; the host's stays out of it.
    assert!(Command::new("mknod").arg(&node).args(["c", "1", "7"]).status().unwrap().success());
    fs::set_permissions(&node, fs::Permissions::from_mode(0o666)).unwrap();
    let link = place.path("link");
    symlink("full", &link).unwrap();
    for path in [&node, &link] {
        let told = export(&place, path).assert_code(125).stderr();
        assert!(
            told.starts_with("error: cannot write '") && told.contains("No space left on device"),
            "{told}"
        );
        assert!(fs::symlink_metadata(&node).unwrap().file_type().is_char_device());
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    }
});

callers!(a_pipe_is_written_to, |caller| {
    if !is_once() {
        return;
    }
    let place = filled(caller);
    let pipe = place.path("pipe");
    assert!(Command::new("mkfifo").arg("--mode=666").arg(&pipe).status().unwrap().success());
    caller.own(&pipe);
    let (from, to) = (pipe.clone(), place.path("came.tar"));
    let reader = std::thread::spawn(move || fs::write(&to, fs::read(&from).unwrap()).unwrap());
    export(&place, &pipe).assert_success();
    reader.join().unwrap();
    assert!(is_whole(&place.path("came.tar")));
    assert!(fs::symlink_metadata(&pipe).unwrap().file_type().is_fifo());
    // And stdout by its name.
    let out = export(&place, Path::new("/dev/stdout"));
    fs::write(place.path("out.tar"), &out.assert_success().stdout).unwrap();
    assert!(is_whole(&place.path("out.tar")));
});

callers!(through_a_link_its_target_is_replaced, |caller| {
    if !is_once() {
        return;
    }
    let place = filled(caller);
    let (old, link) = (place.path("old.tar"), place.path("link"));
    fs::write(&old, "old").unwrap();
    fs::set_permissions(&old, fs::Permissions::from_mode(0o640)).unwrap();
    caller.own(&old);
    symlink("old.tar", &link).unwrap();
    export(&place, &link).assert_success();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(is_whole(&old));
    assert_eq!(fs::metadata(&old).unwrap().permissions().mode() & 0o777, 0o640, "it is as it was");
    // One that leads to nothing yet, where a new file is like any other.
    let hanging = place.path("hanging");
    symlink("new.tar", &hanging).unwrap();
    export(&place, &hanging).assert_success();
    assert!(fs::symlink_metadata(&hanging).unwrap().is_symlink() && is_whole(&place.path("new.tar")));
    let other = place.path("other");
    assert!(caller.command(Path::new("/usr/bin/touch")).arg(&other).status().unwrap().success());
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode();
    assert_eq!(mode(&place.path("new.tar")), mode(&other));
    assert!(names(&place.path("")).iter().all(|name| !name.contains(".agentbox-")));
});

callers!(an_archive_that_is_there_stays_whole_when_there_is_no_room, |caller| {
    if !is_once() {
        return;
    }
    if !is_root("a small disk is mounted") {
        return;
    }
    let place = filled(caller);
    let small = place.path("small");
    fs::create_dir(&small).unwrap();
    let disk = Disk(&small);
    disk.size(&format!("size=256k,mode=0755,uid={},gid={}", caller.uid(), caller.gid()));
    let path = small.join("bb.tar");
    fs::write(&path, "of before").unwrap();
    caller.own(&path);
    for (name, expected) in [("bb.tar", &["bb.tar"][..]), ("new.tar", &["bb.tar"])] {
        let told = export(&place, &small.join(name)).assert_code(125).stderr();
        assert!(told.contains("No space left on device"), "{told}");
        assert!(
            told.contains("hint: make room there, and try again: what was there before is as it was"),
            "{told}"
        );
        assert_eq!(fs::read_to_string(&path).unwrap(), "of before");
        assert_eq!(names(&small), expected);
    }
});

callers!(what_may_not_be_written_to_is_not_replaced, |caller| {
    if !is_once() {
        return;
    }
    let place = filled(caller);
    if caller == Caller::Root {
        // Root may write to every file; a directory is none.
        let told = export(&place, &place.path("")).assert_code(125).stderr();
        assert!(told.contains("cause: is a directory"), "{told}");
        return;
    }
    let sealed = place.path("sealed.tar");
    fs::write(&sealed, "sealed").unwrap();
    fs::set_permissions(&sealed, fs::Permissions::from_mode(0o444)).unwrap();
    caller.own(&sealed);
    let told = export(&place, &sealed).assert_code(125).stderr();
    assert!(told.contains("hint: choose another name"), "{told}");
    assert_eq!(fs::read_to_string(&sealed).unwrap(), "sealed");
    // Nor is anything made where one may not.
    let told = export(&place, Path::new("/etc/agentbox-bb.tar")).assert_code(125).stderr();
    assert!(told.contains("hint: it is written beside"), "{told}");
});

/// Where everybody has files of their own, somebody may have put something into the way: the kernel refuses to follow or to
/// take that only where it opens it for us.
#[test]
fn what_somebody_else_has_put_there_is_not_written_to() {
    if !is_root("files belong to somebody else") {
        return;
    }
    harness::as_caller(Caller::Root, harness::Company::Anybody, |caller| {
        let place = filled(caller);
        let shared = place.path("shared");
        fs::create_dir(&shared).unwrap();
        fs::set_permissions(&shared, fs::Permissions::from_mode(0o1777)).unwrap();
        let (precious, own) = (place.path("precious"), shared.join("own"));
        fs::write(&precious, "precious").unwrap();
        let (led, leads_nowhere, file, pipe) =
            (shared.join("led"), shared.join("nowhere"), shared.join("file"), shared.join("pipe"));
        symlink(&precious, &led).unwrap();
        symlink(place.path("made"), &leads_nowhere).unwrap();
        fs::write(&file, "theirs").unwrap();
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let stranger = Some(Caller::Single.uid());
        for path in [&led, &leads_nowhere, &file, &pipe] {
            lchown(path, stranger, stranger).unwrap();
        }
        for path in [&led, &leads_nowhere, &file, &pipe] {
            let told = export(&place, path).assert_code(125).stderr();
            assert!(
                told.contains("cause: somebody else has put '") && told.contains("hint: choose another"),
                "{told}"
            );
        }
        assert_eq!(fs::read_to_string(&precious).unwrap(), "precious");
        assert_eq!(fs::read_to_string(&file).unwrap(), "theirs");
        assert!(!place.path("made").exists());
        // What is one's own is, there as elsewhere.
        fs::write(&own, "mine").unwrap();
        export(&place, &own).assert_success();
        assert!(is_whole(&own));
    });
}
