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

// One that ends with its command has its name as long as it runs, and no longer.
callers!(a_name_is_had_by_one_run, |caller| {
    let home = Home::new(caller);
    // Those that only run are in everybody's list.
    let name = format!("run-{}-{}", caller.user(), std::process::id());
    let kept = home.create(&["--name", &name]);
    let said = home.say(&["run", "--name", &name, "--", "echo", "it ran"]);
    let told = format!("error: the name '{name}' is taken by sandbox {kept}\nhint: ");
    assert!(said.assert_refused().stderr().contains(&told), "{}", said.stderr());
    assert_eq!(said.stdout(), "");
    home.say(&["rm", "--force", &name]).assert_success();
    // Of several at once there is one.
    let words = ["run", "--name", &name, "--", "sh", "-c", "echo up; read line"];
    let several: Vec<_> = (0..6).map(|_| home.begin(&words)).collect();
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    let mut has_ended = vec![false; several.len()];
    while has_ended.iter().filter(|ended| **ended).count() < 5 {
        assert!(std::time::Instant::now() < deadline, "{has_ended:?}");
        for (running, ended) in several.iter().zip(&mut has_ended) {
            *ended = running.stderr().contains(&format!("error: the name '{name}' is taken by"));
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let (mut ran, mut refused) = (Vec::new(), 0);
    for (running, ended) in several.into_iter().zip(has_ended) {
        if ended {
            running.finish().assert_refused();
            refused += 1;
        } else {
            ran.push(running);
        }
    }
    assert_eq!((ran.len(), refused), (1, 5));
    let mut running = ran.pop().unwrap();
    running.wait_for("up\n");
    home.say(&["create", "--name", &name]).assert_refused();
    home.say(&["exec", &name, "--", "true"]).assert_success();
    drop(running.stdin.take());
    // Its shell has read to the end of what it was given.
    running.finish().assert_code(1);
    home.say(&["run", "--name", &name, "--", "true"]).assert_success();
});

callers!(many_are_ended_though_one_is_unknown, |caller| {
    let home = Home::new(caller);
    let (first, second) = (home.create(&[]), home.create(&[]));
    home.say(&["rm", "--force", &first, "unknown", &second]).assert_refused();
    assert!(home.list().is_empty());
});
