//! Lists of rules in files: one that is empty allows nothing, one that is not there or not a list starts nothing, and those
//! that stand are for whoever asks for an allowlist.

use std::fs;

use harness::{Agentbox, Internet, callers};
use policy::Wall;

use crate::inside::{attempt, control, get};

fn nothing_is_allowed(internet: &Internet, agentbox: Agentbox) -> Result<(), String> {
    let request = format!("tcp allowed.test 80 {}", get("allowed.test"));
    let raw = format!("tcp 203.0.113.10 80 {}", get("allowed.test"));
    let outcome = attempt(agentbox, &["name allowed.test", &request, &raw, "udp 203.0.113.20 443 x"]);
    match (outcome.successes().as_slice(), internet.seen().is_nothing()) {
        ([], true) => Ok(()),
        (successes, _) => Err(format!("{successes:?} {:?}", internet.seen().packets())),
    }
}

callers!(an_empty_list_allows_nothing, |caller| {
    let internet = Internet::new();
    let list = |name: &str, text: &str| {
        let path = internet.directory().join(name);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let (empty, comments) = (list("empty.txt", ""), list("comments.txt", "# allowed.test\n\n   \n"));
    for file in [&empty, &comments] {
        nothing_is_allowed(&internet, internet.agentbox(caller).options(["--allow-file", file])).unwrap();
    }
    let weakened = |walls: &[Wall]| {
        Agentbox::weakened(caller, walls).behind(internet.prefix()).options(["--allow-file", &empty])
    };
    nothing_is_allowed(&internet, weakened(&[])).unwrap();
    let breach = nothing_is_allowed(&internet, weakened(&[Wall::Egress])).unwrap_err();
    control("egress", caller, &breach);
});

callers!(a_list_that_is_not_there_starts_nothing, |caller| {
    let internet = Internet::new();
    let nowhere = internet.directory().join("nowhere.txt").display().to_string();
    let refused = internet.agentbox(caller).options(["--allow-file", &nowhere]).run(["true"]);
    refused.assert_refused();
    assert!(refused.stderr().contains(&nowhere), "{}", refused.stderr());
    assert!(internet.seen().is_nothing());
});

callers!(lists_that_stand_are_for_who_asks_for_an_allowlist, |caller| {
    let internet = Internet::new();
    let directory = internet.directory().join("agentbox/allowlist.d");
    fs::create_dir_all(&directory).unwrap();
    let own = internet.directory().display().to_string();
    let agentbox = || internet.agentbox(caller).env("XDG_CONFIG_HOME", &own);
    fs::write(directory.join("ours.txt"), "# ours\nallowed.test\n").unwrap();
    fs::write(directory.join("ours.txt.old"), "no rule at all\n").unwrap();
    nothing_is_allowed(&internet, agentbox()).unwrap();
    let request = format!("tcp allowed.test 80 {}", get("allowed.test"));
    let outcome = attempt(agentbox().options(["--network", "allowlist"]), &[&request, "name other.test"]);
    assert!(outcome.of(&request).starts_with("answered HTTP/1.1 200"), "{}", outcome.of(&request));
    assert_eq!(outcome.successes().len(), 1, "{:?}", outcome.successes());

    fs::write(directory.join("theirs.txt"), "allowed.test\nhttps://\n").unwrap();
    let refused = agentbox().options(["--allow", "allowed.test"]).run(["true"]);
    refused.assert_refused();
    let said = refused.stderr();
    assert!(said.contains("theirs.txt") && said.contains("line 2"), "{said}");
});
