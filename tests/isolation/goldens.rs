//! The golden files are signed off: their digests stand in SECURITY.md, beside the reason for each loosened line.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

use harness::workspace_root;

/// Where golden files are.
const DIRECTORIES: [&str; 2] = ["crates/jail/golden", "tests/golden"];

/// The golden files and their digests, by path from the root of the tree.
fn digests() -> BTreeMap<String, String> {
    let root = workspace_root();
    let files: Vec<PathBuf> = DIRECTORIES
        .iter()
        .flat_map(|directory| std::fs::read_dir(root.join(directory)).unwrap())
        .map(|entry| entry.unwrap().path())
        .collect();
    let output = Command::new("sha256sum").arg("--").args(&files).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let relative = |path: &str| PathBuf::from(path).strip_prefix(&root).unwrap().display().to_string();
    let lines = text.lines().map(|line| line.split_once("  ").expect("digest  path"));
    lines.map(|(digest, path)| (relative(path), digest.to_owned())).collect()
}

/// A digest of 64 digits, two spaces and a path, as sha256sum writes it, wherever it stands.
fn signed_off(text: &str) -> BTreeMap<String, String> {
    let parse = |line: &str| {
        let (digest, path) = line.trim().split_once("  ")?;
        let is_digest = digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_digest.then(|| (path.trim().to_owned(), digest.to_owned()))
    };
    text.lines().filter_map(parse).collect()
}

#[test]
fn goldens_are_signed_off() {
    let text = std::fs::read_to_string(workspace_root().join("SECURITY.md")).expect("SECURITY.md");
    assert_eq!(signed_off(&text), digests(), "read what has changed, and sign it off in SECURITY.md");
}
