//! Any sequence of operations, done to a directory and written as a layer, is shown and taken as git would take it.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::Command;

use proptest::prelude::*;
use workspace::Both;

use crate::place::{Place, path};

#[derive(Clone, Debug)]
enum Deed {
    Write(usize, u8),
    Remove(usize),
    Link(usize, usize),
    Executable(usize),
    Directory(usize),
}

/// Names that get in each other's way: files below each other's names, ignored ones, odd ones, rules.
const NAMES: [&[u8]; 20] = [
    b"a",
    b"a/b",
    b"a/b/c",
    b"b",
    b"b/x",
    b"c.log",
    b"keep.log",
    b"target",
    b"target/deep/file",
    b"sub/.gitignore",
    b"sub/one",
    b"sub/two.tmp",
    b".gitignore",
    b".gitattributes",
    b"text.txt",
    b"odd\nname",
    b"\xff\xfe",
    b".env",
    b"new/dir/file",
    b"A",
];

const TEXTS: [&[u8]; 7] = [
    b"",
    b"one\n",
    b"two\r\nlines\r\n",
    b"\0\x01\xff",
    b"*.tmp\n",
    b"*.txt text\n",
    b"target/\n*.log\n!keep.log\n",
];

fn deeds() -> impl Strategy<Value = Vec<Deed>> {
    let name = 0..NAMES.len();
    let deed = prop_oneof![
        4 => (name.clone(), 0..TEXTS.len() as u8).prop_map(|(name, text)| Deed::Write(name, text)),
        3 => name.clone().prop_map(Deed::Remove),
        1 => (name.clone(), name.clone()).prop_map(|(name, to)| Deed::Link(name, to)),
        1 => name.clone().prop_map(Deed::Executable),
        1 => name.prop_map(Deed::Directory),
    ];
    prop::collection::vec(deed, 1..25)
}

/// Whether every directory on the way is one, in the model.
fn is_reachable(model: &Path, name: &[u8]) -> bool {
    let mut at = model.to_owned();
    let name = path(name);
    name.parent().unwrap().components().all(|part| {
        at.push(part);
        at.symlink_metadata().map_or(true, |metadata| metadata.is_dir())
    })
}

/// Does one thing to the model and to the layer.
fn act(place: &Place, model: &Path, deed: &Deed) {
    let (Deed::Write(name, _)
    | Deed::Remove(name)
    | Deed::Link(name, _)
    | Deed::Executable(name)
    | Deed::Directory(name)) = deed;
    let name = NAMES[*name];
    let file = model.join(path(name));
    if !is_reachable(model, name) {
        return;
    }
    let there = file.symlink_metadata().ok();
    let is_directory = there.as_ref().is_some_and(fs::Metadata::is_dir);
    match deed {
        Deed::Write(_, text) => {
            if is_directory || there.is_some_and(|there| there.is_symlink()) {
                return;
            }
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            let mode = file.metadata().map(|metadata| metadata.permissions()).ok();
            fs::write(&file, TEXTS[usize::from(*text)]).unwrap();
            place.write(name, TEXTS[usize::from(*text)]);
            if let Some(mode) = mode {
                fs::set_permissions(place.upper().join(path(name)), mode).unwrap();
            }
        }
        Deed::Remove(_) => {
            match there {
                None => return,
                Some(_) if is_directory => fs::remove_dir_all(&file).unwrap(),
                Some(_) => fs::remove_file(&file).unwrap(),
            }
            place.remove(name);
        }
        Deed::Link(_, to) => {
            if there.is_some() || NAMES[*to].contains(&0) {
                return;
            }
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            symlink(path(NAMES[*to]), &file).unwrap();
            let upper = place.upper().join(path(name));
            place.write(name, "");
            fs::remove_file(&upper).unwrap();
            symlink(path(NAMES[*to]), upper).unwrap();
        }
        Deed::Executable(_) => {
            if !there.is_some_and(|there| there.is_file()) {
                return;
            }
            fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
            let text = fs::read(&file).unwrap();
            place.write(name, text);
            fs::set_permissions(place.upper().join(path(name)), fs::Permissions::from_mode(0o755)).unwrap();
        }
        Deed::Directory(_) => {
            if there.is_none() {
                fs::create_dir_all(&file).unwrap();
                place.write([name, b"/x"].concat(), "");
                fs::remove_file(place.upper().join(path(name)).join("x")).unwrap();
            }
        }
    }
}

fn copy(from: &Path, to: &Path) {
    assert!(Command::new("cp").arg("-a").arg(from).arg(to).status().unwrap().success());
}

fn check(before: &[Deed], after: &[Deed]) {
    let place = Place::repository(&[
        (".gitignore", "target/\n*.log\n"),
        ("a", "one\n"),
        ("b/x", "1\n"),
        ("sub/one", "1\n"),
        ("text.txt", "1\n"),
        ("c.log", "ignored\n"),
    ]);
    // The owner's tree is dirty before it begins.
    for deed in before {
        act(&place, &place.owner(), deed);
    }
    for name in ["sandbox/layer/upper", "sandbox/layer/work"] {
        fs::remove_dir_all(place.at(name)).unwrap();
        fs::create_dir(place.at(name)).unwrap();
    }
    place.own("hidden-key", "secret\n");
    place.hide(&["hidden-key"]);
    let model = place.at("model");
    copy(&place.owner(), &model);
    fs::remove_file(model.join("hidden-key")).unwrap();
    // What is there at the start counts as tracked.
    place.tree_of(&model);
    place.begin();
    place.tree_of(&place.owner());
    let ignored = place.git(&["ls-files", "-z", "-o", "-i", "--exclude-standard"]);
    place.remove("hidden-key");
    for deed in after {
        act(&place, &model, deed);
    }
    // What git ignored at the start and nobody wrote is no change, whatever the rules are by now.
    let taken = |directory: &Path| {
        place.tree_of(directory);
        for name in ignored.split('\0').filter(|name| !name.is_empty()) {
            let there = place.upper().join(name).symlink_metadata();
            if !there.is_ok_and(|there| there.is_file() || there.is_symlink()) {
                place.git_in(directory, &["rm", "-q", "--cached", "--ignore-unmatch", "--", name]);
            }
        }
        place.git_in(directory, &["write-tree"])
    };
    let expected = taken(&model);
    let review = workspace::review(&place.files(), &[]).unwrap();
    assert_eq!(review.tree, expected, "{}", place.git_in(&model, &["status", "--porcelain", "--ignored"]));
    if review.is_empty() {
        return;
    }
    workspace::apply_to_branch(&place.files(), &place.order(), "b").unwrap();
    assert_eq!(place.git(&["rev-parse", "b^{tree}"]), expected);
    match workspace::apply_to_worktree(&place.files(), &place.order(), Both::Refused) {
        Ok(_) => {
            fs::remove_file(place.owner().join("hidden-key")).unwrap();
            assert_eq!(taken(&place.owner()), expected);
        }
        // What git ignores lies in the way; nothing was done.
        Err(workspace::ReviewError::Conflicts(_)) => {}
        Err(error) => panic!("{error}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, max_shrink_iters: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_layer_is_what_git_would_make_of_the_tree(before in deeds(), after in deeds()) {
        check(&before, &after);
    }
}
