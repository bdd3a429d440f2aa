//! Whom a word means.

use harness::callers;

use crate::home::Home;

callers!(what_means_nobody_or_several_is_refused, |caller| {
    let home = Home::new(caller);
    let ids: Vec<String> = (0..2).map(|_| home.create(&[])).collect();
    for nobody in ["", "nobody", "../..", "zzzzzzzzzzzz", "\u{1b}[2J"] {
        let said = home.say(&["inspect", nobody]);
        assert!(!said.assert_refused().stderr().contains('\u{1b}'), "{}", said.stderr());
    }
    home.say(&["inspect", &ids[0][..8]]).assert_success();
    // Two random ids rarely begin alike, and others' that only run may; then both are named.
    if ids[0][..1] == ids[1][..1] {
        let said = home.say(&["inspect", &ids[0][..1]]);
        assert!(said.assert_refused().stderr().contains(&ids[1]), "{}", said.stderr());
    }
});

callers!(a_name_is_had_by_one, |caller| {
    let home = Home::new(caller);
    let id = home.create(&["--name", "twice"]);
    let said = home.say(&["create", "--name", "twice"]);
    assert!(said.assert_refused().stderr().contains(&id), "{}", said.stderr());
    assert_eq!(home.list().len(), 1);
    home.say(&["stop", "twice"]).assert_success();
    home.say(&["create", "--name", "twice"]).assert_refused();
    home.say(&["rm", "twice"]).assert_success();
    home.create(&["--name", "twice"]);
    home.say(&["create", "--name", "-rf"]).assert_refused();
    home.say(&["create", "--name", "../x"]).assert_refused();
});

callers!(many_are_ended_though_one_is_unknown, |caller| {
    let home = Home::new(caller);
    let (first, second) = (home.create(&[]), home.create(&[]));
    home.say(&["rm", "--force", &first, "unknown", &second]).assert_refused();
    assert!(home.list().is_empty());
});
