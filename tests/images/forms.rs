//! The forms that images come in: a root file system as a tar or a directory, by gzip or zstd, and what docker saves.

use std::fs;
use std::path::Path;
use std::process::Command;

use harness::callers;
use images::Digest;
use serde_json::json;

use crate::layout::{Layout, architecture};
use crate::place::{Place, busybox, open_up};
use crate::tar::Tar;

pub(crate) fn packed(program: &str, path: &Path) -> Vec<u8> {
    let output = Command::new(program).arg("-c").arg(path).output().unwrap();
    assert!(output.status.success());
    output.stdout
}

callers!(a_root_file_system_becomes_an_image, |caller| {
    let place = Place::new(caller);
    let plain = busybox().file("mark", b"here\n").finish();
    let path = place.path("rootfs.tar");
    fs::write(&path, &plain).unwrap();
    for (number, bytes) in
        [plain.clone(), packed("gzip", &path), packed("zstd", &path)].into_iter().enumerate()
    {
        let path = place.path(&format!("rootfs-{number}"));
        fs::write(&path, bytes).unwrap();
        let name = format!("rootfs:{number}");
        place.say(&["image", "import", &path.display().to_string(), &name]).assert_success();
        assert_eq!(place.run(&name, "cat /mark"), "here\n");
    }
    assert_eq!(place.layers(), [Digest::of(&plain).hex()], "however it is packed, it is one layer");
    let directory = place.path("tree");
    fs::create_dir_all(directory.join("bin")).unwrap();
    fs::copy("/bin/busybox", directory.join("bin/sh")).unwrap();
    fs::write(directory.join("mark"), "tree\n").unwrap();
    std::os::unix::fs::symlink("/etc", directory.join("out")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(directory.join("socket")).unwrap();
    open_up(&directory);
    let nameless = place.say(&["image", "import", &directory.display().to_string()]);
    let told = nameless.assert_code(125).stderr();
    assert!(told.contains("it does not say what it is called"), "{told}");
    let hint = format!("hint: name it: `agentbox image import {} my/image:1`\n", directory.display());
    assert!(told.ends_with(&hint), "{told}");
    let words = ["image", "import", &directory.display().to_string(), "tree:1", "--json"];
    let told: serde_json::Value = serde_json::from_str(&place.say(&words).assert_success().stdout()).unwrap();
    assert_eq!(told[0]["name"], "tree:1");
    let out = place.run(
        "tree:1",
        "read mark < /mark; echo $mark; [ -e /socket ] || echo none; [ -L /out ] && echo link",
    );
    assert_eq!(out, "tree\nnone\nlink\n");
});

callers!(what_docker_saves_is_taken_in, |caller| {
    let place = Place::new(caller);
    let (low, high) = (busybox().finish(), Tar::default().file("mark", b"docker\n").finish());
    let config = json!({
        "os": "linux", "architecture": architecture(), "config": {"Cmd": ["/bin/cat", "/mark"]},
        "rootfs": {"type": "layers", "diff_ids": [Digest::of(&low).to_string(), Digest::of(&high).to_string(), Digest::of(&high).to_string()]},
    })
    .to_string();
    let (id, one, two) = (Digest::of(config.as_bytes()), Digest::of(b"one"), Digest::of(b"two"));
    let (id, one, two) = (id.hex(), one.hex(), two.hex());
    let manifest = json!([{
        "Config": format!("{id}.json"),
        "RepoTags": ["me/saved:1", "other:2"],
        "Layers": [format!("{one}/layer.tar"), format!("{two}/layer.tar"), format!("{}/layer.tar", Digest::of(b"three").hex())],
    }])
    .to_string();
    let archive = Tar::default()
        .directory(&format!("{one}/"), 0o755, (0, 0))
        .file(&format!("{one}/VERSION"), b"1.0")
        .file(&format!("{one}/json"), b"{}")
        .file(&format!("{one}/layer.tar"), &low)
        .file(&format!("{two}/layer.tar"), &high)
        // A layer that is there already is a link to it.
        .link(&format!("{}/layer.tar", Digest::of(b"three").hex()), &format!("../{two}/layer.tar"))
        .file(&format!("{id}.json"), config.as_bytes())
        .file("manifest.json", manifest.as_bytes())
        .file("repositories", b"{}");
    let path = place.path("saved.tar");
    fs::write(&path, archive.finish()).unwrap();
    place.say(&["image", "import", &path.display().to_string()]).assert_success();
    assert_eq!(place.images(), ["me/saved:1", "other:2"]);
    assert_eq!(place.say(&["run", "--image", "other:2"]).assert_success().stdout(), "docker\n");
    // A manifest that names what the archive does not hold, or what is outside of it.
    for layer in ["../../../etc/passwd", "/etc/passwd", &format!("{}/layer.tar", Digest::of(b"no").hex())] {
        let manifest = json!([{"Config": format!("{id}.json"), "RepoTags": ["evil:1"], "Layers": [layer, layer, layer]}]);
        let archive = Tar::default()
            .file(&format!("{id}.json"), config.as_bytes())
            .file("manifest.json", manifest.to_string().as_bytes());
        fs::write(&path, archive.finish()).unwrap();
        let imported = place.say(&["image", "import", &path.display().to_string()]);
        assert!(imported.assert_code(125).stderr().contains("is not there"), "{}", imported.stderr());
    }
});

callers!(an_image_goes_out_and_comes_back_the_same, |caller| {
    let place = Place::new(caller);
    let layers = [busybox().finish(), Tar::default().file("mark", b"two\n").finish()];
    let layout =
        Layout { config: Some(json!({"Cmd": ["/bin/cat", "/mark"], "Env": ["A=b"]})), ..Layout::of(&layers) };
    place.import(&layout, "me/app:1").assert_success();
    let out = place.path("out.tar");
    place.say(&["image", "export", "me/app:1", "-o", &out.display().to_string()]).assert_success();
    let inspect =
        |place: &Place| place.say(&["image", "inspect", "me/app:1", "--json"]).assert_success().stdout();
    let before: serde_json::Value = serde_json::from_str(&inspect(&place)).unwrap();
    let other = Place::new(caller);
    let there = other.path("in.tar");
    fs::copy(&out, &there).unwrap();
    open_up(&there);
    other.say(&["image", "import", &there.display().to_string()]).assert_success();
    let mut after: serde_json::Value = serde_json::from_str(&inspect(&other)).unwrap();
    // The manifest is written anew and has another digest where its fields stood in another order.
    after["digest"] = before["digest"].clone();
    assert_eq!(before, after);
    assert_eq!(other.say(&["run", "--image", "me/app:1"]).assert_success().stdout(), "two\n");
});
