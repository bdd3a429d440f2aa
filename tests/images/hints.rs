//! What a person is told to do, which then holds.

use std::fs;
use std::net::TcpListener;

use harness::callers;
use serde_json::json;

use crate::forms::packed;
use crate::layout::Layout;
use crate::place::{Place, busybox};
use crate::served::{Registry, Wants};

callers!(an_image_without_a_command_is_said_to_have_none, |caller| {
    let place = Place::new(caller);
    place.import(&Layout::of(&[busybox().finish()]), "bb:1").assert_success();
    let told = place.say(&["run", "--image", "bb:1"]).assert_code(125).stderr();
    let expected = "error: the image 'bb:1' names no command to run\n\
                    hint: put one after `--`: agentbox run --image bb:1 -- /bin/sh\n";
    assert_eq!(told, expected);
});

callers!(an_image_of_root_without_a_list_is_the_agents, |caller| {
    let place = Place::new(caller);
    for (number, user) in ["root", "0", "root:root"].iter().enumerate() {
        let name = format!("of-root:{number}");
        let layout = Layout { config: Some(json!({"User": user})), ..Layout::of(&[busybox().finish()]) };
        place.import(&layout, &name).assert_success();
        assert_eq!(place.run(&name, "id -u"), "1000\n", "{user}");
    }
});

callers!(names_that_are_none_are_not_to_be_pulled, |caller| {
    let place = Place::new(caller);
    let told = place.say(&["run", "--image", "BAD REF", "--", "true"]).assert_code(125).stderr();
    assert!(told.starts_with("error: 'BAD REF' is no name of an image\ncause: "), "{told}");
    assert!(told.contains("hint: write it as ") && !told.contains("pull"), "{told}");
    let told = place.say(&["run", "--image", "sha256:0123456789", "--", "true"]).assert_code(125).stderr();
    assert!(told.contains("hint: `agentbox image ls`") && !told.contains("pull"), "{told}");
    let told = place.say(&["run", "--image", "none:1", "--", "true"]).assert_code(125).stderr();
    assert!(told.contains("`agentbox image pull none:1` brings it"), "{told}");
});

callers!(archives_of_other_programs_are_unpacked_on_their_way, |caller| {
    let place = Place::new(caller);
    let path = place.path("rootfs.tar");
    fs::write(&path, busybox().file("mark", b"here\n").finish()).unwrap();
    for program in ["xz", "bzip2"] {
        if !crate::tools::has(program) {
            continue;
        }
        let other = place.path(&format!("rootfs.{program}"));
        let bytes = packed(program, &path);
        fs::write(&other, &bytes).unwrap();
        let shown = other.display().to_string();
        let told = place.say(&["image", "import", &shown, "x:1"]).assert_code(125).stderr();
        let expected = format!(
            "error: '{shown}' is packed by {program}, which is not read here\n\
             hint: unpack it on its way: `{program} -dc {shown} | agentbox image import - my/image:1`\n"
        );
        assert_eq!(told, expected);
        let by_stdin = place.agentbox().stdin(bytes).start_words(&["image", "import", "-", "x:1"]).finish();
        assert!(by_stdin.assert_code(125).stderr().starts_with("error: '-' is packed by "));
        // As it says.
        let unpacked = std::process::Command::new(program).arg("-dc").arg(&other).output().unwrap().stdout;
        let words = ["image", "import", "-", "my/image:1"];
        place.agentbox().stdin(unpacked).start_words(&words).finish().assert_success();
        assert_eq!(place.run("my/image:1", "cat /mark"), "here\n");
    }
});

callers!(what_keeps_us_from_a_registry_is_said, |caller| {
    let place = Place::new(caller);
    let unused = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let told =
        place.say(&["image", "pull", &format!("127.0.0.1:{unused}/me/app:1")]).assert_code(125).stderr();
    assert!(told.contains("hint: nobody listens there: look whether it runs, and at which port\n"), "{told}");
    let told = place.say(&["image", "pull", "nobody.invalid/me/app:1"]).assert_code(125).stderr();
    assert!(told.contains("hint: nobody is called nobody.invalid: "), "{told}");
    let Some(registry) = Registry::start(Wants::Nothing) else { return };
    let layout = place.path("layout");
    Layout::of(&[busybox().finish()]).write(&layout);
    registry.push(&layout, "me/app:1");
    let none = place.say(&["image", "pull", &format!("127.0.0.1:{}/me/app:none", registry.port)]);
    let told = none.assert_code(125).stderr();
    assert!(told.contains("with 404 ") && told.contains("hint: 127.0.0.1:"), "{told}");
    assert!(told.contains(" has no such image, or no such tag of it"), "{told}");
    // Not called by a name of the loopback's, where it is found out: somebody who speaks no TLS.
    let name = format!("0.0.0.0:{}/me/app:1", registry.port);
    let told = place.say(&["image", "pull", &name]).assert_code(125).stderr();
    assert!(told.contains("hint: it speaks no TLS: add --insecure"), "{told}");
    place.say(&["image", "pull", "--insecure", &name]).assert_success();
    assert_eq!(place.run(&name, "echo well"), "well\n");
});
