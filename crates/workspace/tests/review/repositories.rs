//! Repositories that are not the usual kind, and trees that are large.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::process::Command;

use workspace::{Both, ReviewError, Status};

use crate::place::Place;

fn paths(place: &Place) -> Vec<(String, Status)> {
    let review = workspace::review(&place.files(), &[]).unwrap();
    review.files.iter().map(|file| (workspace::exact_name(&file.change.path), file.change.status)).collect()
}

/// Makes another directory the owner's, by its name beside it.
fn replace(place: &Place, name: &str) {
    fs::rename(place.owner(), place.at("original")).unwrap();
    fs::rename(place.at(name), place.owner()).unwrap();
}

#[test]
fn a_linked_work_tree_gets_a_branch_of_its_repository() {
    let place = Place::repository(&[("a", "1\n")]);
    fs::rename(place.owner(), place.at("original")).unwrap();
    place.git_in(&place.at("original"), &["worktree", "add", "-q", "-b", "side", "../owner"]);
    place.begin();
    place.write("a", "2\n");
    workspace::apply_to_branch(&place.files(), &place.order(), "b").unwrap();
    assert_eq!(place.git_in(&place.at("original"), &["show", "b:a"]), "2");
    workspace::apply_to_worktree(&place.files(), &place.order(), Both::Refused).unwrap();
    assert_eq!(place.git(&["status", "--porcelain"]), " M a");
}

#[test]
fn a_shallow_clone_is_enough() {
    let place = Place::repository(&[("a", "1\n")]);
    place.own("a", "2\n");
    place.commit("second");
    let url = format!("file://{}", place.owner().display());
    place.git_in(&place.at(""), &["clone", "-q", "--depth", "1", &url, "shallow"]);
    replace(&place, "shallow");
    place.begin();
    place.write("a", "3\n");
    workspace::apply_to_branch(&place.files(), &place.order(), "b").unwrap();
    assert_eq!(place.git(&["show", "b:a"]), "3");
}

#[test]
fn a_sparse_checkout_keeps_what_is_not_there() {
    let place = Place::repository(&[("in/a", "1\n"), ("out/b", "1\n"), ("out/c", "1\n")]);
    for form in
        [&["sparse-checkout", "set", "--cone", "in"][..], &["sparse-checkout", "set", "--sparse-index", "in"]]
    {
        place.git(form);
    }
    assert!(!place.owner().join("out").exists());
    place.begin();
    assert_eq!(paths(&place), []);
    place.write("in/a", "2\n");
    place.write("out/b", "made anew\n");
    let expected = [("in/a".to_owned(), Status::Modified), ("out/b".to_owned(), Status::Modified)];
    assert_eq!(paths(&place), expected);
    workspace::apply_to_branch(&place.files(), &place.order(), "b").unwrap();
    assert_eq!(place.git(&["ls-tree", "-r", "--name-only", "b"]), "in/a\nout/b\nout/c");
}

#[test]
fn files_that_git_was_told_to_overlook_are_seen() {
    let place = Place::repository(&[("a", "1\n"), ("b", "1\n")]);
    place.git(&["update-index", "--assume-unchanged", "a"]);
    place.git(&["update-index", "--skip-worktree", "b"]);
    place.begin();
    place.write("a", "2\n");
    place.remove("b");
    assert_eq!(paths(&place), [("a".to_owned(), Status::Modified), ("b".to_owned(), Status::Deleted)]);
}

#[test]
fn a_detached_head_and_a_merge_that_waits_are_no_hindrance() {
    let place = Place::repository(&[("a", "1\n")]);
    place.git(&["checkout", "-q", "-b", "other"]);
    place.own("a", "other\n");
    place.commit("other");
    place.git(&["checkout", "-q", "--detach", "main"]);
    place.own("a", "mine\n");
    place.commit("mine");
    place.git_command(&place.owner(), &["merge", "other"]);
    assert!(place.git(&["status", "--porcelain"]).starts_with("UU"));
    place.begin();
    assert_eq!(paths(&place), []);
    place.write("a", "resolved\n");
    workspace::review(&place.files(), &[]).unwrap();
    workspace::apply_to_branch(&place.files(), &place.order(), "b").unwrap();
    assert_eq!(place.git(&["show", "b:a"]), "resolved");
}

#[test]
fn a_submodule_comes_back_as_the_commit_that_it_stands_at() {
    let place = Place::repository(&[("a", "1\n")]);
    let inner = place.at("inner");
    fs::create_dir(&inner).unwrap();
    place.git_in(&inner, &["init", "-q", "-b", "main"]);
    place.git_in(&inner, &["config", "user.name", "x"]);
    place.git_in(&inner, &["config", "user.email", "x@example.com"]);
    place.git_in(&inner, &["commit", "-q", "--allow-empty", "-m", "one"]);
    let add = ["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "../inner", "sub"];
    place.git(&add);
    place.commit("with a submodule");
    place.begin();
    assert_eq!(paths(&place), []);
    let other = "1234567890123456789012345678901234567890";
    place.write("sub/.git/HEAD", "ref: refs/heads/main\n");
    place.write("sub/.git/refs/heads/main", format!("{other}\n"));
    place.write("sub/file", "x");
    let review = workspace::review(&place.files(), &[]).unwrap();
    assert_eq!(review.files.len(), 1);
    assert_eq!(review.remarks.len(), 1);
    let applied = workspace::apply_to_branch(&place.files(), &place.order(), "b").unwrap();
    assert_eq!(applied.tree, review.tree);
    assert!(place.git(&["ls-tree", "b", "sub"]).contains(other));
    // What is no commit changes nothing.
    place.write("sub/.git/refs/heads/main", "../../../etc/passwd\n");
    assert_eq!(paths(&place), []);
}

#[test]
fn another_kind_of_ids_works_as_well() {
    let place = Place::plain();
    place.git(&["init", "-q", "--object-format=sha256"]);
    place.git(&["config", "user.name", "x"]);
    place.git(&["config", "user.email", "x@example.com"]);
    place.own("a", "1\n");
    place.commit("first");
    place.begin();
    place.write("a", "2\n");
    let applied = workspace::apply_to_branch(&place.files(), &place.order(), "b").unwrap();
    assert_eq!((applied.tree.len(), place.git(&["show", "b:a"])), (64, "2".to_owned()));
}

#[test]
fn what_root_takes_for_somebody_belongs_to_them() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let place = Place::repository(&[("a", "1\n")]);
    // Before it is somebody else's: git of a test does not look into that.
    place.start();
    for words in [&["chown", "-R", "12345:12345", "owner"][..], &["chmod", "755", "."]] {
        let done = Command::new(words[0]).args(&words[1..]).current_dir(place.at("")).status().unwrap();
        assert!(done.success());
    }
    place.write("a", "2\n");
    place.write("new/b", "2\n");
    workspace::apply_to_branch(&place.files(), &place.order(), "b").unwrap();
    workspace::apply_to_worktree(&place.files(), &place.order(), Both::Refused).unwrap();
    let mut waiting = vec![place.owner()];
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(directory).unwrap().flatten() {
            let metadata = entry.path().symlink_metadata().unwrap();
            assert_eq!(metadata.uid(), 12345, "{}", entry.path().display());
            if metadata.is_dir() {
                waiting.push(entry.path());
            }
        }
    }
}

#[test]
fn a_hundred_thousand_ignored_files_are_not_looked_at() {
    let place = Place::large_repository(&[(".gitignore", "target/\n"), ("a", "1\n")]);
    place.begin();
    for directory in 0..100 {
        let path = place.upper().join(format!("target/{directory}"));
        fs::create_dir_all(&path).unwrap();
        for file in 0..1000 {
            fs::File::create(path.join(file.to_string())).unwrap();
        }
    }
    // Whoever looked into it would find more levels than are taken.
    place.write(format!("target/{}x", "d/".repeat(300)), "");
    place.write("a", "2\n");
    assert_eq!(paths(&place), [("a".to_owned(), Status::Modified)]);
}

#[test]
fn a_hundred_thousand_files_are_a_repository_like_others() {
    let place = Place::large_repository(&[("a", "1\n")]);
    for directory in 0..200 {
        let path = place.owner().join(format!("d{directory}"));
        fs::create_dir(&path).unwrap();
        for file in 0..500 {
            // All of them are one object, which is fewer files for git to write.
            fs::write(path.join(file.to_string()), "same\n").unwrap();
        }
    }
    place.commit("many");
    place.begin();
    place.write("d7/7", "changed\n");
    place.write("d8/new", "new\n");
    place.remove("d9");
    let review = workspace::review(&place.files(), &[]).unwrap();
    assert_eq!(review.files.len(), 502);
    workspace::apply_to_branch(&place.files(), &place.order(), "b").unwrap();
    fs::write(place.owner().join("d7/7"), "changed\n").unwrap();
    fs::write(place.owner().join("d8/new"), "new\n").unwrap();
    fs::remove_dir_all(place.owner().join("d9")).unwrap();
    assert_eq!(place.git(&["rev-parse", "b^{tree}"]), place.tree_of(&place.owner()));
    assert_eq!(place.git(&["rev-parse", "b^{tree}"]), review.tree);
}

#[test]
fn a_full_disk_leaves_the_owners_tree_as_it_was() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let place = Place::plain();
    let owner = place.owner();
    let mounted =
        Command::new("mount").args(["-t", "tmpfs", "-o", "size=400k", "tmpfs"]).arg(&owner).status();
    if !mounted.is_ok_and(|status| status.success()) {
        return;
    }
    place.own("a", "1\n");
    place.own("b", "1\n");
    place.begin();
    place.write("a", "2\n");
    place.write("large", vec![7; 600 << 10]);
    let error = workspace::apply_to_worktree(&place.files(), &place.order(), Both::Refused).unwrap_err();
    let names = || {
        let mut names: Vec<_> =
            fs::read_dir(&owner).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let after = (names(), fs::read_to_string(owner.join("a")).unwrap());
    // Lazily: a process that another test starts may hold a descriptor for a moment.
    let unmounted = Command::new("umount").arg("-l").arg(&owner).status().unwrap();
    assert!(unmounted.success());
    assert!(matches!(error, ReviewError::Git(_) | ReviewError::File { .. }), "{error}");
    assert_eq!(after, (vec!["a".into(), "b".into()], "1\n".to_owned()));
}

#[test]
fn a_real_overlay_is_read_as_it_is() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let place =
        Place::repository(&[("a", "1\n"), ("d/x", "1\n"), ("d/y", "1\n"), ("e/z", "1\n"), ("f", "1\n")]);
    place.begin();
    let merged = place.at("merged");
    fs::create_dir(&merged).unwrap();
    let options = format!(
        "lowerdir={},upperdir={},workdir={},userxattr",
        place.owner().display(),
        place.upper().display(),
        place.files().work().display()
    );
    let mounted =
        Command::new("mount").args(["-t", "overlay", "-o", &options, "overlay"]).arg(&merged).status();
    if !mounted.is_ok_and(|status| status.success()) {
        return;
    }
    fs::write(merged.join("a"), "2\n").unwrap();
    fs::remove_dir_all(merged.join("d")).unwrap();
    fs::create_dir(merged.join("d")).unwrap();
    fs::write(merged.join("d/new"), "2\n").unwrap();
    fs::remove_dir_all(merged.join("e")).unwrap();
    fs::rename(merged.join("f"), merged.join("g")).unwrap();
    let unmounted = Command::new("umount").arg("-l").arg(&merged).status().unwrap();
    assert!(unmounted.success());
    let review = workspace::review(&place.files(), &[]).unwrap();
    assert_eq!(
        place.git_in(&place.files().git(), &["ls-tree", "-r", "--name-only", &review.tree]),
        "a\nd/new\ng"
    );
}

#[test]
fn what_is_discarded_is_gone_with_its_pin() {
    let place = Place::repository(&[("a", "1\n")]);
    place.begin();
    place.git(&["update-ref", "refs/agentbox/0123456789ab", "HEAD"]);
    place.write("a", "2\n");
    workspace::discard(&place.files(), &"0123456789ab".parse().unwrap()).unwrap();
    assert!(!place.files().review().exists() && !place.upper().exists());
    assert!(place.git(&["for-each-ref", "refs/agentbox"]).is_empty());
    assert!(matches!(workspace::review(&place.files(), &[]), Err(ReviewError::NoWorkspace)));
}
