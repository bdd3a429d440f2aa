//! Archives that can be read once: stdin and pipes.

use std::fs;
use std::process::Command;

use harness::{Finished, callers};
use serde_json::json;

use crate::forms::packed;
use crate::layout::Layout;
use crate::place::{Place, busybox, is_once};

#[track_caller]
fn import(place: &Place, bytes: &[u8], words: &[&str]) -> Finished {
    let words = [&["image", "import"], words].concat();
    place.agentbox().stdin(bytes).start_words(&words).finish()
}

/// What is in the workshop of a store.
fn left(place: &Place) -> usize {
    let entries = fs::read_dir(place.store()).unwrap().flatten();
    entries.filter(|entry| entry.file_name().to_string_lossy().ends_with(".tar")).count()
}

callers!(an_image_comes_by_stdin, |caller| {
    let place = Place::new(caller);
    let plain = busybox().file("mark", b"here\n").finish();
    for (name, from) in [("in:1", "-"), ("in:2", "/dev/stdin")] {
        import(&place, &plain, &[from, name]).assert_success();
        assert_eq!(place.run(name, "cat /mark"), "here\n");
    }
    let path = place.path("plain.tar");
    fs::write(&path, &plain).unwrap();
    import(&place, &packed("gzip", &path), &["-", "in:3"]).assert_success();
    // One that says what it is called.
    let layout = Layout { config: Some(json!({"Cmd": ["/bin/cat", "/mark"]})), ..Layout::of(&[plain]) };
    place.import(&layout, "me/saved:1").assert_success();
    let saved = place.say(&["image", "export", "me/saved:1"]).assert_success().stdout.clone();
    place.say(&["image", "rm", "me/saved:1"]).assert_success();
    import(&place, &saved, &["-"]).assert_success();
    assert_eq!(place.say(&["run", "--image", "me/saved:1"]).assert_success().stdout(), "here\n");
    assert_eq!(left(&place), 0);
});

callers!(an_image_comes_by_a_pipe, |caller| {
    let place = Place::new(caller);
    let pipe = place.path("pipe");
    assert!(Command::new("mkfifo").arg("--mode=666").arg(&pipe).status().unwrap().success());
    let (to, bytes) = (pipe.clone(), busybox().file("mark", b"here\n").finish());
    let writer = std::thread::spawn(move || fs::write(to, bytes).unwrap());
    place.say(&["image", "import", &pipe.display().to_string(), "piped:1"]).assert_success();
    writer.join().unwrap();
    assert_eq!(place.run("piped:1", "cat /mark"), "here\n");
    assert_eq!(left(&place), 0);
});

callers!(what_is_wrong_with_it_is_said_by_the_name_that_was_given, |caller| {
    if !is_once() {
        return;
    }
    let place = Place::new(caller);
    let plain = busybox().finish();
    let told = import(&place, &plain, &["-"]).assert_code(125).stderr();
    assert!(told.starts_with("error: cannot take '-' in: it does not say what it is called\n"), "{told}");
    assert!(told.contains("hint: name it: `agentbox image import - my/image:1`\n"), "{told}");
    let told = import(&place, &plain[..plain.len() / 2], &["-", "in:1"]).assert_code(125).stderr();
    assert!(told.starts_with("error: ") && !told.contains(".bootstrap-"), "{told}");
    let told = import(&place, b"", &["-", "in:1"]).assert_code(125).stderr();
    assert!(told.starts_with("error: '-' is no image: nothing came\n"), "{told}");
    // A device may go on for ever.
    let told = place.say(&["image", "import", "/dev/zero", "in:1"]).assert_code(125).stderr();
    assert!(told.contains("it is neither a file nor a directory nor a pipe"), "{told}");
    assert_eq!((place.images(), left(&place)), (Vec::new(), 0));
});
