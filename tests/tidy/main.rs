//! House rules that a compiler does not hold: where `unsafe` may stand, how files begin and how long they are.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::path::{Path, PathBuf};

use harness::workspace_root;

/// Files longer than this, tests included, want to be two.
const LONGEST: usize = 500;

/// Every source file of ours, with its text.
fn sources() -> Vec<(PathBuf, String)> {
    let root = workspace_root();
    let mut waiting = vec![root.join("crates"), root.join("tests"), root.join("bench"), root.join("fuzz")];
    let mut found = Vec::new();
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(directory).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                waiting.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                found.push((path.strip_prefix(&root).unwrap().to_owned(), text));
            }
        }
    }
    assert!(found.len() > 50, "the sources were not found");
    found
}

fn offenders(offends: impl Fn(&Path, &str) -> bool) -> Vec<PathBuf> {
    let all = sources().into_iter();
    all.filter(|(path, text)| offends(path, text)).map(|(path, _)| path).collect()
}

#[test]
fn every_file_says_what_it_owns() {
    assert_eq!(offenders(|_, text| !text.starts_with("//! ")), Vec::<PathBuf>::new());
}

#[test]
fn files_are_short() {
    assert_eq!(offenders(|_, text| text.lines().count() > LONGEST), Vec::<PathBuf>::new());
}

#[test]
fn the_product_is_unsafe_in_one_kind_of_file() {
    let is_product =
        |path: &Path| path.starts_with("crates") && path.components().any(|c| c.as_os_str() == "src");
    // `sys.rs`, or what such a file is divided into.
    let is_sys = |path: &Path| path.with_extension("").components().any(|part| part.as_os_str() == "sys");
    let unsafe_elsewhere =
        |path: &Path, text: &str| is_product(path) && !is_sys(path) && text.contains("unsafe {");
    assert_eq!(offenders(unsafe_elsewhere), Vec::<PathBuf>::new());
}

#[test]
fn names_say_something() {
    let vague = ["utils.rs", "util.rs", "common.rs", "helpers.rs", "manager.rs", "misc.rs"];
    let is_vague = |path: &Path, _: &str| vague.iter().any(|name| path.file_name().unwrap() == *name);
    assert_eq!(offenders(is_vague), Vec::<PathBuf>::new());
}

#[test]
fn nothing_is_left_for_later() {
    // Put together here, so that this file does not find itself.
    let marks =
        [["TO", "DO"].concat(), ["FIX", "ME"].concat(), ["#[", "ignore"].concat(), ["#[", "allow("].concat()];
    let unfinished = |_: &Path, text: &str| marks.iter().any(|mark| text.contains(mark.as_str()));
    assert_eq!(offenders(unfinished), Vec::<PathBuf>::new());
}

#[test]
fn only_fuzzing_opens_the_parsers() {
    let root = workspace_root();
    let crates = fs::read_dir(root.join("crates")).unwrap().flatten().map(|entry| entry.path());
    let others: Vec<PathBuf> = crates.chain([root.join("tests"), root.join("bench"), root.clone()]).collect();
    for name in ["gateway", "images", "workspace"] {
        // Where the crate is asked for, or a feature of it in one of another's.
        let feature = format!("{name}/fuzz");
        let opens = |line: &&str| {
            (line.starts_with(name) && line.contains("\"fuzz\"")) || line.contains(feature.as_str())
        };
        for directory in &others {
            let manifest = fs::read_to_string(directory.join("Cargo.toml")).unwrap();
            assert_eq!(manifest.lines().find(opens), None, "{}", directory.display());
        }
        let own = fs::read_to_string(root.join("fuzz/Cargo.toml")).unwrap();
        assert!(own.lines().any(|line| opens(&line)), "what is looked for is not how it is written");
    }
}
