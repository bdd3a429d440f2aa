//! A person at a terminal: changes are chosen from piece by piece, and what is long is paged.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use harness::{Agentbox, Caller, Pty, callers};

use crate::project::Project;

/// A repository with a file of which the first and the last line were changed inside, one that is new and one that is gone.
fn changed(caller: Caller) -> Project {
    let project = Project::repository(caller);
    let lines: String = (1..=40).map(|number| format!("line {number}\n")).collect();
    project.write("list", lines);
    project.git(&["add", "."]);
    project.git(&["commit", "-qm", "a list"]);
    let script = "sed -i -e '1s/.*/first \\x1b[31mred/' -e '40s/.*/last/' list && echo new >new && rm readme";
    project.run_with(&["--name", "fix"], script).assert_success();
    project
}

/// Answers each question with the next word.
#[track_caller]
fn answer(project: &Project, words: &[&str], answers: &[&str]) -> (Pty, i32) {
    let mut pty = Pty::start_words(project.agentbox(), words);
    for (number, answer) in answers.iter().enumerate() {
        let asked = |pty: &Pty| pty.seen().matches("[y,n,a,d,q,?]? ").count();
        pty.wait_until("another question", |pty| asked(pty) > number);
        pty.type_keys(&format!("{answer}\n"));
    }
    let code = pty.finish();
    (pty, code)
}

callers!(pieces_are_chosen, |caller| {
    let project = changed(caller);
    // The list's two pieces, the new file, the one that is gone; what is no answer is explained and asked again.
    let (pty, code) = answer(&project, &["apply", "--patch", "fix"], &["what", "n", "y", "y", "n"]);
    assert_eq!(code, 0, "{}", pty.seen());
    assert!(pty.seen().contains("y - take this piece"), "{}", pty.seen());
    // What is in the file does not act on the terminal; what is ours is coloured.
    assert!(pty.seen().contains("first \\u{1b}[31mred"), "{}", pty.seen());
    assert!(pty.seen().contains("\u{1b}[32m+last"), "{}", pty.seen());
    assert_eq!(project.git(&["diff", "--name-status", "main", "agentbox/fix"]), "M\tlist\nA\tnew\n");
    let list = project.git(&["show", "agentbox/fix:list"]);
    assert!(list.starts_with("line 1\n") && list.ends_with("line 39\nlast\n"), "{list}");
    assert_eq!(project.git(&["show", "agentbox/fix:readme"]), "one\n");
    // All that was not taken still waits.
    assert!(project.say(&["ls", "-a"]).stdout().contains("changes waiting"));
});

callers!(all_of_a_file_or_nothing_more, |caller| {
    let project = changed(caller);
    let (pty, code) = answer(&project, &["apply", "-p", "--branch", "some", "fix"], &["a", "q"]);
    assert_eq!(code, 0, "{}", pty.seen());
    assert_eq!(project.git(&["diff", "--name-status", "main", "some"]), "M\tlist\n");
    let list = project.git(&["show", "some:list"]);
    assert!(list.starts_with("first") && list.ends_with("last\n"), "{list}");
    let (pty, code) = answer(&project, &["apply", "-p", "--branch", "none", "fix"], &["d", "d", "n"]);
    assert_eq!(code, 0, "{}", pty.seen());
    pty.wait_for("nothing was chosen");
    assert_eq!(project.git(&["branch", "--list", "none"]), "");
    // Into the working tree.
    let (pty, code) = answer(&project, &["apply", "-p", "--worktree", "fix", "list"], &["y", "d"]);
    assert_eq!(code, 0, "{}", pty.seen());
    let list = fs::read_to_string(project.path().join("list")).unwrap();
    assert!(list.starts_with("first") && list.ends_with("line 40\n"), "{list}");
    assert!(!project.path().join("new").exists());
});

callers!(who_says_nothing_more_takes_nothing, |caller| {
    let project = changed(caller);
    // The end of input.
    let (pty, code) = answer(&project, &["apply", "-p", "fix"], &["\u{4}"]);
    assert_eq!(code, 0, "{}", pty.seen());
    assert_eq!(project.git(&["branch", "--list", "agentbox/*"]), "");
    // An interruption.
    let mut pty = Pty::start_words(project.agentbox(), &["apply", "-p", "fix"]);
    pty.wait_for("[y,n,a,d,q,?]? ");
    pty.type_keys("\u{3}");
    assert_ne!(pty.finish(), 0);
    assert_eq!(project.git(&["branch", "--list", "agentbox/*"]), "");
});

/// A pager of the caller's that tells what it got.
fn pager(project: &Project, body: &str) -> Agentbox {
    let program = project.place().join("pager");
    project.write_at(&program, format!("#!/bin/sh\n{body}\n"));
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    project.agentbox().env("PAGER", &format!("{} --word", program.display()))
}

callers!(what_is_long_is_paged, |caller| {
    let project = changed(caller);
    let place = project.place().display().to_string();
    let reads = format!("echo \"$* LESS=$LESS\" > {place}/told; cat > {place}/paged");
    let mut pty = Pty::start_words(pager(&project, &reads), &["diff", "fix"]);
    assert_eq!(pty.finish(), 0, "{}", pty.seen());
    assert_eq!(fs::read_to_string(project.place().join("told")).unwrap(), "--word LESS=FRX\n");
    let paged = fs::read_to_string(project.place().join("paged")).unwrap();
    assert!(paged.starts_with("tree ") && paged.contains("\u{1b}[32m+last\u{1b}[m\n"), "{paged}");
    assert!(!paged.contains("\u{1b}[31mred"), "{paged}");

    // One that is left at once is no failure, and neither is one that is not there.
    let mut pty = Pty::start_words(pager(&project, "exit 3"), &["diff", "fix"]);
    assert_eq!(pty.finish(), 0, "{}", pty.seen());
    let missing = project.agentbox().env("PAGER", "/no/such/pager");
    let mut pty = Pty::start_words(missing, &["diff", "--stat", "fix"]);
    assert_eq!(pty.finish(), 0, "{}", pty.seen());
    pty.wait_for("modified  +2 -2");

    // Who wants no colours has none; what goes to no terminal is neither paged nor coloured.
    let plain = pager(&project, &reads).env("NO_COLOR", "1");
    let mut pty = Pty::start_words(plain, &["diff", "fix"]);
    assert_eq!(pty.finish(), 0, "{}", pty.seen());
    assert!(!fs::read_to_string(project.place().join("paged")).unwrap().contains('\u{1b}'));
    fs::remove_file(project.place().join("paged")).unwrap();
    let piped = pager(&project, &reads).start_words(&["diff", "fix"]).finish();
    assert!(!piped.assert_success().stdout().contains('\u{1b}'));
    assert!(!project.place().join("paged").exists());
});
