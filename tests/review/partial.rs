//! A clone that lacks what nobody has looked at yet: what is there can be worked on, and nothing is ever fetched on the host.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use harness::{Caller, callers};

use crate::project::Project;

/// A project that is a clone without the content of files outside of `in`, and of all that is older. Whoever fetches runs a
/// program that leaves a mark.
fn clone(caller: Caller) -> Project {
    let upstream = Project::repository(caller);
    for number in 1..=3 {
        upstream.write("in/file", format!("{number}\n"));
        upstream.write("out/file", format!("out {number}\n"));
        upstream.git(&["add", "."]);
        upstream.git(&["commit", "-qm", &format!("number {number}")]);
    }
    upstream.git(&["config", "uploadpack.allowFilter", "true"]);
    upstream.git(&["config", "uploadpack.allowAnySHA1InWant", "true"]);
    let project = Project::empty(caller);
    let url = format!("file://{}", upstream.path().display());
    project.git(&["clone", "-q", "--filter=blob:none", "--sparse", &url, "."]);
    project.git(&["sparse-checkout", "set", "in"]);
    project.identify(".");
    let program = project.place().join("upload-pack");
    let mark = project.place().join("fetched").display().to_string();
    project.write_at(&program, format!("#!/bin/sh\necho fetched >> '{mark}'\nexit 1\n"));
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    project.git(&["config", "remote.origin.uploadpack", &program.display().to_string()]);
    assert_ne!(missing(&project), 0);
    project
}

/// How many objects the clone lacks.
fn missing(project: &Project) -> usize {
    let all = project.git(&["rev-list", "--objects", "--all", "--missing=print"]);
    all.lines().filter(|line| line.starts_with('?')).count()
}

callers!(a_clone_without_all_content, |caller| {
    let project = clone(caller);
    let lacks = missing(&project);
    let script = "git status --short --branch && git log --format=%s && \
        if git show HEAD~2:out/file 2>/dev/null; then exit 1; fi; \
        echo mine >in/file && git commit -qam mine && mkdir -p out && echo over >out/file && echo new >new";
    let ran = project.run_with(&["--name", "fix"], script);
    let expected = "## main...origin/main\nnumber 3\nnumber 2\nnumber 1\nfirst\n";
    assert_eq!(ran.assert_success().stdout(), expected);

    let shown = project.say(&["diff", "--json", "fix"]);
    let shown: serde_json::Value = serde_json::from_str(&shown.assert_success().stdout()).unwrap();
    assert_eq!(shown["problem"], serde_json::Value::Null);
    let files = shown["files"].as_array().unwrap();
    let paths: Vec<&str> = files.iter().map(|file| file["path"].as_str().unwrap()).collect();
    assert_eq!(paths, ["in/file", "new", "out/file"]);
    // What it was nobody here knows, and that is said.
    assert_eq!(files[2]["risks"][0]["code"], "unread");
    assert!(project.say(&["diff", "fix"]).assert_success().stdout().contains("+over"));
    let applied = project.say(&["apply", "fix"]);
    applied.assert_success();
    assert_eq!(project.git(&["rev-parse", "agentbox/fix^{tree}"]).trim(), shown["tree"]);
    // Where the checkout leaves a file out, that is no change of the owner's.
    project.say(&["apply", "--worktree", "fix"]).assert_success();
    assert_eq!(fs::read_to_string(project.path().join("out/file")).unwrap(), "over\n");

    assert!(!project.place().join("fetched").exists(), "something was fetched on the host");
    assert_eq!(missing(&project), lacks);
    // The mark is left where somebody fetches: this is the owner's own command.
    let mut command = project.caller.command(std::path::Path::new("/usr/bin/git"));
    command.arg("-C").arg(project.path()).args([
        "-c",
        "protocol.file.allow=always",
        "show",
        "HEAD~2:out/file",
    ]);
    assert!(!command.output().unwrap().status.success());
    assert!(project.place().join("fetched").exists(), "the mark is never left");
});
