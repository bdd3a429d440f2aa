//! What processes wrote, for those who were not there.

use harness::callers;

use crate::home::Home;

callers!(what_was_written_is_shown_later, |caller| {
    let home = Home::new(caller);
    let id = home.create(&[]);
    let script = "echo out; echo err >&2; sleep 0.3; echo more";
    let number = home.say(&["exec", "--detach", &id, "--", "sh", "-c", script]).assert_success().stdout();
    let number = number.trim();
    let followed = home.say(&["logs", "--follow", &id, number]);
    assert_eq!(
        (followed.assert_success().stdout(), followed.stderr()),
        ("out\nmore\n".into(), "err\n".into())
    );
    let again = home.say(&["logs", &id, number]);
    assert_eq!(again.assert_success().stdout(), "out\nmore\n");
    home.say(&["logs", &id, "999"]).assert_refused();
});

callers!(the_last_of_much_is_kept, |caller| {
    let home = Home::new(caller);
    let id = home.create(&[]);
    let script = "head -c 20000000 /dev/zero | tr '\\0' x; echo; echo end";
    let number = home.say(&["exec", "--detach", &id, "--", "sh", "-c", script]).assert_success().stdout();
    let followed = home.say(&["logs", "--follow", &id, number.trim()]).assert_success().stdout();
    assert!(followed.ends_with("x\nend\n"));
    let kept = home.say(&["logs", &id, number.trim()]).assert_success().stdout();
    assert!(kept.len() <= 4 << 20 && kept.len() > 3 << 20 && kept.ends_with("x\nend\n"), "{}", kept.len());
});

callers!(an_attached_reader_is_waited_for, |caller| {
    let home = Home::new(caller);
    let id = home.create(&[]);
    // Far more than is kept: nothing may be lost while somebody reads.
    let said = home.say(&["exec", &id, "--", "sh", "-c", "seq 2000000"]);
    let stdout = said.assert_success().stdout();
    assert!(stdout.lines().map(|line| line.parse::<u32>().unwrap()).eq(1..=2_000_000));
});
