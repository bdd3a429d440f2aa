//! A program that is outside and not inside: the hint names what whoever asked can do about it, and no option that they lack.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use harness::callers;

use crate::layout::Layout;
use crate::place::{Place, busybox};

callers!(the_hint_is_for_whoever_asked, |caller| {
    let place = Place::new(caller);
    place.import(&Layout::of(&[busybox().finish()]), "bb:1").assert_success();
    let program = place.path("outside-only");
    fs::write(&program, "#!/bin/sh\n").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", program.parent().unwrap().display(), harness::path());
    let hint = |words: &[&str], program: &str| {
        let words = [words, &["--", program]].concat();
        let finished = place.agentbox().env("PATH", &path).start_words(&words).finish();
        let stderr = finished.assert_code(127).stderr();
        stderr.lines().filter_map(|line| line.strip_prefix("hint: ")).next_back().unwrap().to_owned()
    };
    let create = |options: &[&str]| {
        let created = place.say(&[&["create"], options].concat());
        created.assert_success().stdout().trim().to_owned()
    };
    let (plain, imaged) = (create(&[]), create(&["--image", "bb:1"]));
    for (words, begins) in [
        (&["run"][..], "--tools brings your tool chains along"),
        (&["run", "--image", "bb:1"], "choose an image that has it"),
        (&["exec", &plain], "what is inside is said when a sandbox is made"),
        (&["exec", &imaged], "the sandbox has what its image has"),
    ] {
        let told = hint(words, "outside-only");
        assert!(told.starts_with(begins), "{words:?}: {told}");
    }
    assert!(hint(&["run"], "nowhere").ends_with("install it on the host"));
    for words in [&["run", "--image", "bb:1"][..], &["exec", &imaged]] {
        assert!(hint(words, "nowhere").ends_with("choose an image that has it"), "{words:?}");
    }
    place.say(&["rm", "--force", &plain, &imaged]).assert_success();
});
