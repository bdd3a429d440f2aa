//! Tables: a change, and what is said of it.

use super::*;
use crate::change::Hunk;

fn change(path: &str, mode: &str, lines: &[&str]) -> Change {
    let lines = lines.iter().map(|line| format!("+{line}").into_bytes()).collect();
    Change {
        path: path.as_bytes().to_vec(),
        old_path: None,
        status: Status::Modified,
        old_mode: "100644".to_owned(),
        mode: mode.to_owned(),
        added: Some(1),
        removed: Some(0),
        hunks: vec![Hunk { old: (1, 0), new: (1, 1), lines }],
        old_object: String::new(),
        object: String::new(),
        is_unread: false,
    }
}

fn codes(change: &Change, known: Known<'_>) -> Vec<&'static str> {
    of(change, known).into_iter().map(|risk| risk.code.name()).collect()
}

#[test]
fn names_tell_what_runs() {
    for (path, expected) in [
        ("src/main.rs", &[][..]),
        ("docs/hooks.md", &[]),
        (".github/workflows/ci.yml", &["ci", "dotfile"]),
        ("sub/.github/workflows/x.yml", &["ci", "dotfile"]),
        (".gitlab-ci.yml", &["ci", "dotfile"]),
        ("Jenkinsfile", &["ci"]),
        (".vscode/tasks.json", &["editor", "dotfile"]),
        (".idea/workspace.xml", &["editor", "dotfile"]),
        (".cursor/rules/x.mdc", &["editor", "dotfile"]),
        ("docs/AGENTS.md", &["editor"]),
        (".mcp.json", &["editor", "dotfile"]),
        (".nvim.lua", &["editor", "dotfile"]),
        (".envrc", &["environment", "dotfile"]),
        (".devcontainer/devcontainer.json", &["environment", "dotfile"]),
        ("Dockerfile", &["environment"]),
        ("package.json", &["install"]),
        ("web/package.json", &["install"]),
        (".npmrc", &["install", "dotfile"]),
        ("setup.py", &["install"]),
        ("pyproject.toml", &["install"]),
        ("Makefile", &["build"]),
        ("rules.mk", &["build"]),
        ("crates/a/build.rs", &["build"]),
        (".cargo/config.toml", &["build", "dotfile"]),
        ("CMakeLists.txt", &["build"]),
        ("app/build.gradle", &["build"]),
        ("pom.xml", &["build"]),
        ("vite.config.ts", &["build"]),
        ("tests/conftest.py", &["autoload"]),
        ("lib/evil.pth", &["autoload"]),
        (".pre-commit-config.yaml", &["hook", "dotfile"]),
        (".husky/pre-commit", &["hook", "dotfile"]),
        ("inner/hooks/post-checkout", &["hook"]),
        (".gitattributes", &["git-settings", "dotfile"]),
        (".gitmodules", &["submodule", "dotfile"]),
        ("Cargo.lock", &["generated"]),
        ("app.min.js", &["generated"]),
    ] {
        assert_eq!(codes(&change(path, "100644", &["x"]), Known::default()), expected, "{path}");
    }
}

#[test]
fn lines_and_modes_tell_what_misleads() {
    for (path, mode, line, expected) in [
        ("a.c", "100644", "if (x) { // \u{202e} } ", &["bidi"][..]),
        ("a.c", "100644", "let a\u{200b}b = 1;", &["invisible"]),
        ("a.c", "100644", "\u{feff}first", &[]),
        ("a.c", "100644", "esc \u{1b}[2J", &["invisible"]),
        ("a.c", "100644", "crlf\r", &[]),
        ("a.sh", "100755", "x", &["executable"]),
    ] {
        assert_eq!(codes(&change(path, mode, &[line]), Known::default()), expected, "{path} {line:?}");
    }
}

#[test]
fn links_tell_where_they_lead() {
    for (path, target, expected) in [
        ("l", "../x", &["link-leaves"][..]),
        ("l", "x/y", &[]),
        ("l", "./x", &[]),
        ("d/l", "../x", &[]),
        ("d/l", "..//./x", &[]),
        ("d/l", "../../x", &["link-leaves"]),
        ("l", "/etc/passwd", &["link-leaves"]),
        ("l", ".git/config", &["link-leaves"]),
        ("l", "sub/.GIT/config", &["link-leaves"]),
        ("l", "sub/.g\u{200c}it/config", &["link-leaves"]),
        // A directory that is called by the first line is enough to go on from.
        ("l", "x\n/../../etc/passwd", &["link-leaves"]),
        // `d/up` may be a link to where it is.
        ("l", "d/up/../etc", &["link-leaves"]),
    ] {
        let texts = Known { texts: Some((b"", target.as_bytes())), ..Known::default() };
        // What is in the lines does not count: one under another name has none.
        assert_eq!(codes(&change(path, "120000", &[]), texts), expected, "{path} {target:?}");
    }
    assert_eq!(
        codes(&change("l", "120000", &["x"]), Known::default()),
        ["link-leaves"],
        "nobody knows where"
    );
}

#[test]
fn sizes_kinds_and_hidden_places_are_told() {
    let large = Known { size: Some(LARGE + 1), is_over_hidden: true, texts: None };
    assert_eq!(codes(&change("a", "100644", &[]), large), ["large", "over-hidden"]);
    let mut binary = change("a", "100644", &[]);
    binary.added = None;
    assert_eq!(codes(&binary, Known::default()), ["binary"]);
    let mut gone = change("Makefile", "000000", &[]);
    gone.status = Status::Deleted;
    assert_eq!(codes(&gone, Known::default()), Vec::<&str>::new());
}

#[test]
fn a_package_counts_by_what_runs_or_is_fetched() {
    let package = change("package.json", "100644", &["x"]);
    for (old, new, expected) in [
        (r#"{"version":"1"}"#, r#"{"version":"2"}"#, &[][..]),
        (r#"{"version":"1"}"#, r#"{"scripts":{"postinstall":"x"}}"#, &["install"]),
        (r#"{"dependencies":{"a":"1"}}"#, r#"{"dependencies":{"a":"2"}}"#, &["install"]),
        ("", r#"{"name":"x"}"#, &[]),
        ("{}", "{", &["install"]),
    ] {
        let known = Known { texts: Some((old.as_bytes(), new.as_bytes())), ..Known::default() };
        assert_eq!(codes(&package, known), expected, "{old} {new}");
    }
}

#[test]
fn every_code_has_a_name_of_its_own() {
    let mut names: Vec<&str> = Code::ALL.iter().map(|code| code.name()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), Code::ALL.len());
}
