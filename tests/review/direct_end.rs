//! What was left in a directory that was worked on directly and runs by its name: it is found and named at the end, and in
//! what `diff` shows.

use std::fs;

use harness::callers;
use serde_json::Value;

use crate::project::Project;

callers!(what_runs_by_its_name_is_named, |caller| {
    let project = Project::repository(caller);
    project.write(".gitignore", "/.envrc\nnode_modules/\nignored/\n");
    project.write("Makefile", "all:\n");
    project.git(&["add", "."]);
    project.git(&["commit", "-qm", "rules"]);
    project.write("justfile", "not committed\n");
    for name in [".envrc", "ignored/build.rs", "ignored/conftest.py"] {
        project.write(name, "the owner's\n");
    }
    // As much as any clock of the kernel's tells apart.
    std::thread::sleep(std::time::Duration::from_millis(30));
    let script = "mkdir -p .vscode hooks node_modules/a && echo {} >.vscode/tasks.json && echo other: >Makefile && \
                  echo run >hooks/pre-commit && chmod +x readme && echo changed >.envrc && touch -d 2001-01-01 .envrc && \
                  for n in 1 2 3 4 5; do mkdir node_modules/$n; echo {} >node_modules/$n/package.json; done && \
                  echo changed >ignored/conftest.py && mkdir new && git init -q new && git init -q --bare new/bare && \
                  echo '/.vscode' >>.gitignore";
    let ran = project.direct(&["--name", "fix"], script);
    let said = ran.assert_success().stderr();
    for text in [
        "risk      Makefile: make runs it (build)",
        "risk      hooks/pre-commit: git runs it where it is a hook (hook)",
        "risk      readme: it can be executed (executable)",
        "risk      .gitignore: git treats files as it says (git-settings)",
        "risk      .envrc: direnv runs it on entering the directory (environment)",
        "risk      .vscode/tasks.json: VS Code may run or obey it when the directory is opened (editor)",
        "risk      ignored/conftest.py: pytest runs it (autoload)",
        "risk      new/.git: a repository that was not there at the start",
        "risk      new/bare: a repository that was not there at the start",
        "risk      node_modules: 2 more files in it run by their names",
        "look at these before you open",
    ] {
        assert!(said.contains(text), "no '{text}' in {said}");
    }
    // What nobody has touched is not named.
    assert!(!said.contains("justfile") && !said.contains("build.rs"), "{said}");
    let shown: Value =
        serde_json::from_str(&project.say(&["diff", "--json", "fix"]).assert_success().stdout()).unwrap();
    assert_eq!(shown["mode"], "direct");
    let named: Vec<(&str, &str)> = shown["named"]
        .as_array()
        .unwrap()
        .iter()
        .map(|named| (named["path"].as_str().unwrap(), named["code"].as_str().unwrap()))
        .collect();
    for expected in
        [(".envrc", "environment"), ("new/.git", "repository"), ("node_modules/5/package.json", "install")]
    {
        assert!(named.contains(&expected), "{named:?}");
    }
    project.say(&["rm", "fix"]).assert_success();
});

callers!(a_directory_that_is_no_repository, |caller| {
    let project = Project::empty(caller);
    project.write("a", "a\n");
    let ran = project.direct(
        &["--name", "fix"],
        "echo b >a; git init -q . 2>/dev/null; echo '{\"scripts\": {\"postinstall\": \"x\"}}' >package.json",
    );
    let said = ran.assert_success().stderr();
    assert!(
        said.contains("risk      .git: a repository that was not there") && said.contains("package.json"),
        "{said}"
    );
    let shown = project.say(&["diff", "fix"]).assert_success().stdout();
    assert!(shown.contains("-a\n+b\n"), "{shown}");
    let refused = project.say(&["apply", "fix"]);
    assert!(
        refused.assert_refused().stderr().contains("not the top of a git repository"),
        "{}",
        refused.stderr()
    );
    project.say(&["rm", "fix"]).assert_success();
});

// The tree is an enemy's work by then: what the owner is told of it has a bound, or is said not to be known.
callers!(what_cannot_be_looked_through_is_said, |caller| {
    let project = Project::repository(caller);
    let script = "for i in $(seq 300); do mkdir d && cd d || exit 1; done";
    let ran = project.direct(&["--name", "fix"], script);
    let said = ran.assert_success().stderr();
    assert!(said.contains("is not known; look before you run anything there"), "{said}");
    fs::remove_dir_all(project.path().join("d")).unwrap();
    project.say(&["rm", "fix"]).assert_success();
});

callers!(the_owner_edits_meanwhile_and_nothing_is_lost, |caller| {
    let project = Project::repository(caller);
    let workspace = format!("{}:direct", project.path().display());
    project.say(&["create", "--name", "fix", "--workspace", &workspace]).assert_success();
    project.write("mine", "mine\n");
    project.git(&["add", "mine"]);
    project.git(&["commit", "-qm", "owner"]);
    project
        .say(&[
            "exec",
            "fix",
            "--",
            "sh",
            "-c",
            "cat mine; echo agent >agent; git add agent; git commit -qm agent",
        ])
        .assert_success();
    project.say(&["apply", "fix"]).assert_success();
    assert_eq!(project.git(&["log", "--format=%s", "main"]), "owner\nfirst\n");
    assert_eq!(project.git(&["log", "--format=%s", "agentbox/fix"]), "agent\nfirst\n");
    assert_eq!(project.git(&["status", "--short"]), "?? agent\n");
    project.say(&["rm", "-f", "fix"]).assert_success();
});

// What git was told to leave out of the checkout is not gone, and any name can be covered.
callers!(sparse_checkouts_and_odd_names, |caller| {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;
    let project = Project::repository(caller);
    project.git(&["sparse-checkout", "set", "other"]);
    assert!(!project.path().join("src").exists());
    let odd = project.path().join(OsStr::from_bytes(b"odd \xff\n.pem"));
    project.write_at(&odd, "SECRET\n");
    project.write_at(&project.path().join(OsStr::from_bytes(b"n\xffsted/file")), "x\n");
    let git = project.path().join(OsStr::from_bytes(b"n\xffsted/.git"));
    for part in ["HEAD", "objects/x", "refs/x"] {
        project.write_at(&git.join(part), "SECRET\n");
    }
    let ran = project.direct(&[], "grep -rs SECRET . ; git status --short | wc -l; ls");
    let said = ran.assert_success().stderr();
    assert!(!ran.stdout().contains("SECRET") && !said.contains("agentbox diff"), "{} {said}", ran.stdout());
    assert_eq!(project.kept(), Vec::<String>::new());
});

// git takes nothing that is beyond a link, and a base has to be recorded all the same.
callers!(a_directory_that_was_replaced_by_a_link, |caller| {
    let project = Project::repository(caller);
    project.write("other/deep/main.c", "another\n");
    fs::remove_dir_all(project.path().join("src")).unwrap();
    project.link("other", "src");
    let ran = project.direct(&["--name", "fix"], "rm other/deep/main.c; git status --short");
    assert_eq!(ran.assert_success().stdout(), " D src/deep/main.c\n?? src\n", "{}", ran.stderr());
    let shown = project.say(&["diff", "--name-only", "fix"]).assert_success().stdout();
    assert_eq!(shown, "other/deep/main.c\n");
    project.say(&["rm", "fix"]).assert_success();
});
