//! State that is damaged, foreign, of another version or not to be written: refused with a reason, and nobody
//! else is harmed.

use std::fs;

use harness::callers;

use crate::home::Home;

callers!(one_that_is_damaged_harms_no_other, |caller| {
    let home = Home::new(caller);
    let (good, bad) = (home.create(&["--name", "good"]), home.create(&["--name", "bad"]));
    home.say(&["stop", "bad"]).assert_success();
    for (file, contents) in [
        ("spec.json", "{"),
        ("spec.json", ""),
        ("spec.json", "[]"),
        ("spec.json", "{\"version\": 2, \"created_ms\": 1, \"spec\": {}}"),
        ("status.json", "{\"version\": 99, \"state\": \"stopped\", \"at_ms\": 1, \"reason\": \"stopped\"}"),
        ("status.json", "\u{0}\u{1b}[2J"),
    ] {
        let path = home.kept(&bad).join(file);
        let before = fs::read(&path).unwrap();
        fs::write(&path, contents).unwrap();
        let listed = home.say(&["ls", "--all"]).assert_success().stdout();
        assert!(listed.contains("good") && listed.contains("damaged"), "{contents:?}: {listed}");
        assert!(!listed.contains('\u{1b}'), "{listed:?}");
        home.say(&["start", &bad]).assert_refused();
        assert_eq!(home.exec(&good, &["echo", "fine"]), "fine\n");
        fs::write(&path, before).unwrap();
    }
    fs::write(home.kept(&bad).join("spec.json"), "{").unwrap();
    home.say(&["rm", "--force", &bad]).assert_success();
    assert_eq!(home.list().len(), 1);
});

callers!(another_sandboxs_specification_is_not_taken, |caller| {
    let home = Home::new(caller);
    let (first, second) = (home.create(&[]), home.create(&[]));
    home.say(&["stop", &first, &second]).assert_success();
    fs::copy(home.kept(&first).join("spec.json"), home.kept(&second).join("spec.json")).unwrap();
    home.say(&["start", &second]).assert_refused();
    home.say(&["start", &first]).assert_success();
});

callers!(a_state_that_cannot_be_written_is_said, |caller| {
    // Root may write wherever the mode says no.
    if caller == Caller::Root {
        return;
    }
    let home = Home::new(caller);
    let id = home.create(&[]);
    home.set_mode(&home.state().join("sandboxes"), 0o500);
    let said = home.say(&["create"]);
    assert!(said.assert_refused().stderr().contains("cannot use the state"), "{}", said.stderr());
    assert_eq!(home.exec(&id, &["echo", "fine"]), "fine\n");
    home.set_mode(&home.state().join("sandboxes"), 0o700);
    assert_eq!(home.list().len(), 1);
});

callers!(a_state_open_to_others_is_refused, |caller| {
    let home = Home::new(caller);
    let id = home.create(&[]);
    home.set_mode(&home.state(), 0o777);
    home.say(&["create"]).assert_refused();
    home.set_mode(&home.state(), 0o700);
    home.say(&["rm", "--force", &id]).assert_success();
});
