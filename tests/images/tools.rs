//! Images that other programs make, and other programs that load ours.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use harness::{Caller, callers, is_root};
use serde_json::json;

use crate::layout::Layout;
use crate::place::{Place, busybox, open_up};
use crate::tar::Tar;

/// Whether a program is there; a test that needs it says so.
pub(crate) fn has(program: &str) -> bool {
    let found = ["/usr/bin", "/usr/sbin"].iter().any(|place| Path::new(place).join(program).exists());
    if !found {
        eprintln!("skipped: {program} is not installed (tests/setup.sh installs it as root)");
    }
    found
}

#[track_caller]
fn succeed(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn rootfs(place: &Place) -> PathBuf {
    let path = place.path("rootfs");
    fs::create_dir_all(path.join("bin")).unwrap();
    fs::copy("/bin/busybox", path.join("bin/busybox")).unwrap();
    for name in ["sh", "cat", "ls"] {
        std::os::unix::fs::symlink("busybox", path.join("bin").join(name)).unwrap();
    }
    path
}

callers!(skopeo_and_we_understand_each_other, |caller| {
    if !has("skopeo") {
        return;
    }
    let place = Place::new(caller);
    let layers = [busybox().finish(), Tar::default().file("mark", b"copied\n").finish()];
    let layout = Layout { config: Some(json!({"Cmd": ["/bin/cat", "/mark"]})), ..Layout::of(&layers) };
    let path = place.path("made");
    layout.write(&path);
    let copy = |to: &str| {
        drop(succeed(Command::new("skopeo").args([
            "copy",
            "--quiet",
            &format!("oci:{}", path.display()),
            to,
        ])))
    };
    // All that it writes, we read.
    for (number, form) in ["oci-archive", "docker-archive", "oci"].iter().enumerate() {
        let file = place.path(&format!("skopeo-{number}"));
        copy(&format!("{form}:{}:me/{form}:1", file.display()));
        open_up(&file);
        let name = format!("{form}:{number}");
        place.say(&["image", "import", &file.display().to_string(), &name]).assert_success();
        assert_eq!(place.say(&["run", "--image", &name]).assert_success().stdout(), "copied\n", "{form}");
    }
    // And what we write, it reads; whole, as it says.
    let out = place.path("ours.tar");
    place.say(&["image", "export", "docker-archive:1", "-o", &out.display().to_string()]).assert_success();
    let back = place.path("back");
    // As whoever called: an ordinary user's unpacks nothing that is root's.
    let skopeo = |words: &[&str]| succeed(caller.command(Path::new("/usr/bin/skopeo")).args(words));
    let ours = format!("oci-archive:{}", out.display());
    skopeo(&["inspect", &ours]);
    skopeo(&["copy", "--quiet", &ours, &format!("oci:{}:x", back.display())]);
    let config = skopeo(&["inspect", "--config", &format!("oci:{}:x", back.display())]);
    let config: serde_json::Value = serde_json::from_str(&config).unwrap();
    assert_eq!(config["config"]["Cmd"], json!(["/bin/cat", "/mark"]));
    assert_eq!(config["rootfs"]["diff_ids"][1], json!(images::Digest::of(&layers[1]).to_string()));
    skopeo(&["inspect", &format!("docker-archive:{}", out.display())]);
});

#[test]
fn umoci_and_buildah_make_images_for_us() {
    if !is_root("umoci and buildah keep owners") || !has("umoci") || !has("buildah") {
        return;
    }
    let _turn = harness::together();
    let place = Place::new(Caller::Root);
    let tree = rootfs(&place);
    let layout = place.path("umoci");
    let image = format!("{}:1", layout.display());
    succeed(Command::new("umoci").args(["init", "--layout"]).arg(&layout));
    succeed(Command::new("umoci").args(["new", "--image", &image]));
    succeed(Command::new("umoci").args(["insert", "--image", &image]).arg(tree.join("bin")).arg("/bin"));
    let mark = place.path("mark");
    fs::write(&mark, "umoci\n").unwrap();
    succeed(Command::new("umoci").args(["insert", "--image", &image]).arg(&mark).arg("/mark"));
    succeed(Command::new("umoci").args(["insert", "--image", &image, "--whiteout", "/bin/ls"]));
    succeed(Command::new("umoci").args([
        "config",
        "--image",
        &image,
        "--config.cmd",
        "/bin/cat",
        "--config.cmd",
        "/mark",
    ]));
    place.say(&["image", "import", &layout.display().to_string(), "umoci:1"]).assert_success();
    assert_eq!(place.say(&["run", "--image", "umoci:1"]).assert_success().stdout(), "umoci\n");
    let gone = place.agentbox().options(["--image", "umoci:1"]).run(["/bin/ls"]);
    assert_eq!(gone.code, 127, "{}", gone.stderr());

    let storage = place.path("containers");
    let run = place.path("containers-run");
    let buildah = |words: &[&str]| {
        let mut command = Command::new("buildah");
        command.args(["--root"]).arg(&storage).arg("--runroot").arg(&run).args(["--storage-driver", "vfs"]);
        succeed(command.args(words)).trim().to_owned()
    };
    let container = buildah(&["from", "scratch"]);
    buildah(&["copy", &container, &tree.display().to_string(), "/"]);
    buildah(&[
        "config",
        "--cmd",
        "[\"/bin/cat\", \"/etc/mark\"]",
        "--workingdir",
        "/srv",
        "--env",
        "A=b",
        &container,
    ]);
    buildah(&["commit", &container, "base"]);
    fs::write(&mark, "buildah\n").unwrap();
    buildah(&["copy", &container, &mark.display().to_string(), "/etc/mark"]);
    let archive = place.path("buildah.tar");
    buildah(&[
        "commit",
        "--format",
        "docker",
        &container,
        &format!("docker-archive:{}:me/built:1", archive.display()),
    ]);
    place.say(&["image", "import", &archive.display().to_string()]).assert_success();
    assert_eq!(place.say(&["run", "--image", "me/built:1"]).assert_success().stdout(), "buildah\n");
    assert_eq!(place.run("me/built:1", "echo $A; pwd"), "b\n/srv\n");
}

// From the mirrors of the machine's own apt, which takes minutes and a network.
callers!(a_system_is_made_from_packages, |caller| {
    let place = Place::new(caller);
    if caller == Caller::Single {
        let told = place.say(&["image", "bootstrap", "debian:bookworm"]).assert_code(125).stderr();
        assert!(told.starts_with("error: a system cannot be made from packages with one id\n"), "{told}");
        return;
    }
    let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let suite = release.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME="));
    let Some(suite) =
        suite.filter(|_| harness::is_full() && release.contains("\nID=debian\n") && has("mmdebstrap"))
    else {
        eprintln!("skipped: a system is made from packages on Debian, by `make test-full`");
        return;
    };
    let system = format!("debian:{suite}");
    let made = place.start(&["image", "bootstrap", &system, "--include", "hello", "--name", "made:1"]);
    made.finish_within(std::time::Duration::from_secs(900)).assert_success();
    let out = place
        .run("made:1", "hello; . /etc/os-release; echo $VERSION_CODENAME; test -x /usr/bin/apt && echo apt");
    assert_eq!(out, format!("Hello, world!\n{suite}\napt\n"));
    let left = fs::read_dir(place.store()).unwrap().flatten();
    let left = left.filter(|entry| entry.file_name().to_string_lossy().starts_with(".bootstrap-"));
    assert_eq!(left.count(), 0);
});

#[test]
fn podman_loads_what_we_export() {
    if !is_root("podman keeps owners") || !has("podman") {
        return;
    }
    let _turn = harness::together();
    let place = Place::new(Caller::Root);
    let layers = [busybox().finish(), Tar::default().file("mark", b"exported\n").finish()];
    let layout = Layout { config: Some(json!({"Cmd": ["/bin/cat", "/mark"]})), ..Layout::of(&layers) };
    place.import(&layout, "me/out:1").assert_success();
    let out = place.path("out.tar");
    place.say(&["image", "export", "me/out:1", "-o", &out.display().to_string()]).assert_success();
    let podman = |words: &[&str]| {
        let mut command = Command::new("podman");
        command.arg("--root").arg(place.path("podman")).arg("--runroot").arg(place.path("podman-run"));
        command.arg("--tmpdir").arg(place.path("podman-tmp"));
        command.args(["--storage-driver", "vfs", "--cgroup-manager", "cgroupfs", "--events-backend", "none"]);
        succeed(command.args(words))
    };
    podman(&["load", "--input", &out.display().to_string()]);
    let command =
        podman(&["image", "inspect", "--format", "{{.Config.Cmd}} {{len .RootFS.Layers}}", "me/out:1"]);
    assert_eq!(command.trim(), "[/bin/cat /mark] 2");
    // And what it saves comes back.
    let saved = place.path("saved.tar");
    podman(&["tag", "me/out:1", "me/back:1"]);
    podman(&["save", "--output", &saved.display().to_string(), "me/back:1"]);
    place.say(&["image", "import", &saved.display().to_string(), "me/back:1"]).assert_success();
    assert_eq!(place.say(&["run", "--image", "me/back:1"]).assert_success().stdout(), "exported\n");
}
