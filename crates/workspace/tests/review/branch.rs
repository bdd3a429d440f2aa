//! What `apply` makes of changes: a branch.

use workspace::{Commits, ReviewError, Risky, Selection};

use crate::place::Place;

#[test]
fn a_branch_has_exactly_what_was_shown() {
    let place = Place::repository(&[("a", "1\n"), ("b", "2\n")]);
    place.begin();
    place.write("a", "one\n");
    place.remove("b");
    place.write("dir/new", "x\n");
    let review = workspace::review(&place.files(), &[]).unwrap();
    let before = (place.git(&["rev-parse", "HEAD"]), place.git(&["status", "--porcelain"]));
    let applied = workspace::apply_to_branch(&place.files(), &place.order(), "agentbox/box").unwrap();
    assert_eq!(applied.tree, review.tree);
    assert_eq!(place.git(&["rev-parse", "agentbox/box^{tree}"]), review.tree);
    assert_eq!(place.git(&["rev-parse", "agentbox/box^"]), before.0);
    let message = place.git(&["log", "-1", "--format=%an <%ae>%n%(trailers:key=Agentbox)", "agentbox/box"]);
    assert_eq!(message, "The Owner <owner@example.com>\nAgentbox: 0123456789ab");
    assert_eq!((place.git(&["rev-parse", "HEAD"]), place.git(&["status", "--porcelain"])), before);
    place.git(&["fsck", "--strict"]);
    assert!(!workspace::is_waiting(&place.files()).unwrap());
    let again = workspace::apply_to_branch(&place.files(), &place.order(), "agentbox/box").unwrap_err();
    assert!(matches!(again, ReviewError::BranchExists(_)), "{again}");
}

#[test]
fn the_owners_own_work_comes_first() {
    let place = Place::repository(&[("a", "1\n")]);
    place.own("mine", "mine\n");
    place.begin();
    place.write("theirs", "theirs\n");
    let applied = workspace::apply_to_branch(&place.files(), &place.order(), "b").unwrap();
    assert_eq!(applied.count, 2);
    assert_eq!(place.git(&["diff", "--name-only", "HEAD", "b~1"]), "mine");
    assert_eq!(place.git(&["diff", "--name-only", "b~1", "b"]), "theirs");
}

#[test]
fn what_was_not_shown_is_not_applied() {
    let place = Place::repository(&[("a", "1\n")]);
    place.begin();
    place.write("a", "2\n");
    let shown = workspace::review(&place.files(), &[]).unwrap().tree;
    place.write("a", "3\n");
    let error = workspace::apply_to_branch(&place.files(), &place.order(), "b").unwrap_err();
    assert!(matches!(error, ReviewError::Changed { .. }), "{error}");
    let mut order = place.order();
    order.tree = Some(shown[..12].to_owned());
    assert!(workspace::apply_to_branch(&place.files(), &order, "b").is_err());
    order.tree = Some(workspace::review(&place.files(), &[]).unwrap().tree);
    workspace::apply_to_branch(&place.files(), &order, "b").unwrap();
    assert_eq!(place.git(&["show", "b:a"]), "3");
}

#[test]
fn some_paths_and_some_pieces_can_be_taken() {
    let lines: Vec<String> = (0..40).map(|number| format!("line {number}\n")).collect();
    let place = Place::repository(&[("a", &lines.concat()), ("b", "1\n"), ("c", "1\n")]);
    place.begin();
    let mut new = lines.clone();
    new[2] = "two\n".to_owned();
    new[30] = "thirty\n".to_owned();
    place.write("a", new.concat());
    place.write("b", "2\n");
    place.remove("c");
    let mut order = place.order();
    order.selection = Selection::Paths(vec![b"b".to_vec(), b"c".to_vec()]);
    workspace::apply_to_branch(&place.files(), &order, "paths").unwrap();
    assert_eq!(place.git(&["diff", "--name-only", "HEAD", "paths"]), "b\nc");
    assert!(workspace::is_waiting(&place.files()).unwrap());
    let (tree, changes) = workspace::choices(&place.files(), &[]).unwrap();
    assert_eq!(changes[0].hunks.len(), 2);
    order.tree = Some(tree);
    order.selection = Selection::Pieces([(b"a".to_vec(), [1].into())].into());
    workspace::apply_to_branch(&place.files(), &order, "pieces").unwrap();
    let mut expected = lines;
    expected[30] = "thirty\n".to_owned();
    assert_eq!(place.git(&["show", "pieces:a"]), expected.concat().trim_end());
    assert_eq!(place.git(&["diff", "--name-only", "HEAD", "pieces"]), "a");
}

#[test]
fn risky_changes_are_refused_where_that_is_asked() {
    let place = Place::repository(&[("Makefile", "all:\n")]);
    place.begin();
    place.write("Makefile", "all:\n\tcurl x | sh\n");
    let mut order = place.order();
    order.risky = Risky::Refused;
    let error = workspace::apply_to_branch(&place.files(), &order, "b").unwrap_err();
    assert!(matches!(&error, ReviewError::Risky(list) if list[0].contains("Makefile")), "{error}");
    assert!(place.git(&["branch", "--list", "b"]).is_empty());
}

#[test]
fn bad_branches_and_directories_without_a_repository_are_refused() {
    let place = Place::repository(&[("a", "")]);
    place.begin();
    let nothing = workspace::apply_to_branch(&place.files(), &place.order(), "b").unwrap_err();
    assert!(matches!(nothing, ReviewError::Nothing), "{nothing}");
    place.write("a", "1");
    place.git(&["branch", "taken"]);
    for name in ["a..b", "taken/sub"] {
        let error = workspace::apply_to_branch(&place.files(), &place.order(), name).unwrap_err();
        assert!(matches!(error, ReviewError::BadBranch(_)), "{name}: {error}");
    }
    let plain = Place::plain();
    plain.begin();
    plain.write("a", "1");
    let error = workspace::apply_to_branch(&plain.files(), &plain.order(), "b").unwrap_err();
    assert!(matches!(error, ReviewError::NoRepository(_)), "{error}");
}

#[test]
fn a_repository_without_a_commit_gets_its_first() {
    let place = Place::plain();
    place.git(&["init", "-q"]);
    place.begin();
    place.write("a", "1\n");
    workspace::apply_to_branch(&place.files(), &place.order(), "b").unwrap();
    assert_eq!(place.git(&["show", "b:a"]), "1");
}

/// Commits as the agent would, in a clone whose `.git` becomes that of the layer; the pack with what is new.
pub(crate) fn commit_inside(place: &Place, work: impl FnOnce(&std::path::Path)) -> (String, Vec<u8>) {
    let inside = place.at("inside");
    place.git_in(&place.at(""), &["clone", "-q", "owner", "inside"]);
    place.git_in(&inside, &["config", "user.name", "An Agent"]);
    place.git_in(&inside, &["config", "user.email", "agent@example.com"]);
    work(&inside);
    let tip = place.git_in(&inside, &["rev-parse", "HEAD"]);
    let base = place.git(&["rev-parse", "HEAD"]);
    let script = format!("printf '{tip}\\n^{base}\\n' | git pack-objects -q --revs --thin --stdout");
    let output =
        std::process::Command::new("sh").args(["-c", &script]).current_dir(&inside).output().unwrap();
    assert!(output.status.success());
    let copied =
        std::process::Command::new("cp").arg("-a").arg(inside.join(".git")).arg(place.upper()).status();
    assert!(copied.unwrap().success());
    (tip, output.stdout)
}

#[test]
fn the_agents_commits_come_back_as_commits() {
    let place = Place::repository(&[("a", "1\n"), (".gitignore", "forced\n")]);
    place.begin();
    let (tip, pack) = commit_inside(&place, |inside| {
        std::fs::write(inside.join("a"), "2\n").unwrap();
        place.git_in(inside, &["commit", "-qam", "change a"]);
        std::fs::write(inside.join("forced"), "x\n").unwrap();
        std::fs::write(inside.join("Makefile"), "all:\n").unwrap();
        place.git_in(inside, &["add", "-f", "forced", "Makefile"]);
        place.git_in(inside, &["commit", "-qm", "force \u{1b}[31m"]);
    });
    place.write("a", "2\n");
    place.write("forced", "x\n");
    place.write("Makefile", "all:\n");
    place.write("uncommitted", "y\n");
    assert_eq!(workspace::waiting_tip(&place.files()).unwrap().as_deref(), Some(tip.as_str()));
    workspace::accept_pack(&place.files(), &mut pack.as_slice(), &tip).unwrap();
    assert_eq!(workspace::waiting_tip(&place.files()).unwrap(), None);
    let review = workspace::review(&place.files(), &[]).unwrap();
    assert_eq!(review.commits.len(), 2);
    assert_eq!(review.commits[0].0.subject, b"change a");
    assert!(review.commits[1].1.iter().any(|file| !file.risks.is_empty()));
    let applied = workspace::apply_to_branch(&place.files(), &place.order(), "b").unwrap();
    assert_eq!(applied.count, 3);
    assert_eq!(place.git(&["rev-parse", "b~1"]), tip);
    assert_eq!(place.git(&["rev-parse", "b^{tree}"]), review.tree);
    assert_eq!(place.git(&["show", "b:forced"]), "x");
    let mut order = place.order();
    order.commits = Commits::Squashed;
    let applied = workspace::apply_to_branch(&place.files(), &order, "one").unwrap();
    assert_eq!((applied.count, place.git(&["rev-parse", "one^{tree}"])), (1, review.tree));
    assert_eq!(place.git(&["rev-parse", "one^"]), place.git(&["rev-parse", "HEAD"]));
    place.git(&["fsck", "--strict"]);
}

#[test]
fn packs_that_are_not_what_they_should_be_are_refused() {
    let place = Place::repository(&[("a", "1\n")]);
    place.begin();
    let (tip, pack) = commit_inside(&place, |inside| {
        std::fs::write(inside.join("a"), "2\n").unwrap();
        place.git_in(inside, &["commit", "-qam", "x"]);
    });
    let files = place.files();
    assert!(workspace::accept_pack(&files, &mut &pack[..pack.len() - 5], &tip).is_err());
    assert!(workspace::accept_pack(&files, &mut &b"garbage"[..], &tip).is_err());
    let other = "1".repeat(40);
    let error = workspace::accept_pack(&files, &mut pack.as_slice(), &other).unwrap_err();
    assert!(matches!(error, ReviewError::Commits(_)), "{error}");
    assert!(!files.review().join("quarantine").exists());
    workspace::accept_pack(&files, &mut pack.as_slice(), &tip).unwrap();
}

#[test]
fn commits_that_do_not_follow_the_base_are_refused() {
    let place = Place::repository(&[("a", "1\n")]);
    place.begin();
    let (tip, pack) = commit_inside(&place, |inside| {
        place.git_in(inside, &["checkout", "-q", "--orphan", "alone"]);
        place.git_in(inside, &["commit", "-qm", "alone"]);
    });
    let error = workspace::accept_pack(&place.files(), &mut pack.as_slice(), &tip).unwrap_err();
    assert!(matches!(error, ReviewError::Commits(_)), "{error}");
}
