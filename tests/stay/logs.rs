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

callers!(many_noisy_processes_take_no_more_than_their_share, |caller| {
    let home = Home::new(caller);
    let id = home.create(&[]);
    let script = "head -c 6000000 /dev/zero; head -c 6000000 /dev/zero >&2; echo end; sleep 600";
    let numbers: Vec<String> = (0..30)
        .map(|_| home.say(&["exec", "--detach", &id, "--", "sh", "-c", script]).assert_success().stdout())
        .collect();
    // 30 processes with two streams of 4 MiB each would be 240 MiB.
    for number in &numbers {
        wait_for_end(&home, &id, number.trim());
    }
    let supervisor = home.status(&id)["supervisor"].as_i64().unwrap();
    let held = memory(supervisor);
    assert!((32..96).contains(&(held >> 10)), "the supervisor holds {held} KiB");
    // A viewer gets every byte all the same, and what it reads is not at the cost of what it has not read.
    let said = home.say(&["exec", &id, "--", "sh", "-c", "seq 2000000"]);
    let stdout = said.assert_success().stdout();
    assert!(stdout.lines().map(|line| line.parse::<u32>().unwrap()).eq(1..=2_000_000));
    assert!(memory(supervisor) >> 10 < 96);
});

/// Waits until the end of what a process wrote is there.
#[track_caller]
fn wait_for_end(home: &Home, id: &str, number: &str) {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while !home.say(&["logs", id, number]).assert_success().stdout.ends_with(b"end\n") {
        assert!(std::time::Instant::now() < deadline, "process {number} has not written its end");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}

/// The memory of a process in KiB, its share of what it shares included.
fn memory(pid: i64) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().trim().parse().unwrap()
}
