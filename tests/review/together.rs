//! Owner and agent at the same time: nothing of either is lost. And what moves inside moves.

use std::fs;

use harness::callers;
use serde_json::Value;

use crate::project::Project;

callers!(the_owner_goes_on_while_the_agent_works, |caller| {
    let project = Project::repository(caller);
    let text = |first: &str, last: &str| format!("{first}\n{}{last}\n", "same\n".repeat(20));
    for name in ["both", "clash", "gone", "agents", "owners"] {
        project.write(name, text("first", "last"));
    }
    project.git(&["add", "."]);
    project.git(&["commit", "-qm", "more"]);
    let workspace = project.path().display().to_string();
    project.say(&["create", "--name", "fix", "--workspace", &workspace]).assert_success();
    let act =
        |script: &str| project.say(&["exec", "fix", "--", "sh", "-c", script]).assert_success().stdout();
    act("sed -i '1s/.*/agent/' both agents; sed -i '$s/.*/agent/' clash; rm gone; echo agent >new");
    // Files that the agent has not touched show what the owner makes of them; those that it has do not.
    project.write("owners", text("owner", "last"));
    project.write("both", text("first", "owner"));
    project.write("clash", text("first", "owner"));
    project.write("mine", "owner\n");
    assert_eq!(
        act("head -n 1 owners; head -n 1 both; tail -n 1 both; cat mine"),
        "owner\nagent\nlast\nowner\n"
    );

    let shown = project.say(&["diff", "--json", "fix"]).assert_success().stdout();
    let shown: Value = serde_json::from_str(&shown).unwrap();
    let conflicts: Vec<(&str, bool)> = shown["files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|file| (file["path"].as_str().unwrap(), file["conflict"].as_bool().unwrap()))
        .collect();
    let expected = [("agents", false), ("both", true), ("clash", true), ("gone", false), ("new", false)];
    assert_eq!(conflicts, expected);
    let refused = project.say(&["apply", "--worktree", "fix"]);
    let stderr = refused.assert_refused().stderr();
    assert!(stderr.contains("both, clash") && stderr.contains("hint: merge them with --3way"), "{stderr}");
    assert_eq!(fs::read_to_string(project.path().join("agents")).unwrap(), text("first", "last"));

    // A branch is from where it began; nothing of the owner's is in the way of that.
    project.say(&["apply", "fix"]).assert_success();
    assert_eq!(project.git(&["show", "agentbox/fix:both"]), text("agent", "last"));
    let merged = project.say(&["apply", "--worktree", "--3way", "fix"]);
    assert_eq!(merged.code, 1, "{}", merged.stderr());
    let read = |name: &str| fs::read_to_string(project.path().join(name)).unwrap();
    assert_eq!(read("both"), text("agent", "owner"));
    assert!(
        read("clash").contains("<<<<<<< yours\nowner\n=======\nagent\n>>>>>>> agent\n"),
        "{}",
        read("clash")
    );
    assert_eq!((read("agents"), read("new")), (text("agent", "last"), "agent\n".to_owned()));
    assert_eq!((read("owners"), read("mine")), (text("owner", "last"), "owner\n".to_owned()));
    assert!(!project.path().join("gone").exists());
    project.say(&["rm", "-f", "fix"]).assert_success();
});

callers!(directories_are_moved_inside, |caller| {
    let project = Project::repository(caller);
    for name in ["tool/a", "tool/deep/b", "tool/deep/c"] {
        project.write(name, format!("{name}\n"));
    }
    project.git(&["add", "."]);
    project.git(&["commit", "-qm", "more"]);
    // A directory of the owner's is copied by whoever moves it, as to another file system; what does not copy, as git, is
    // refused and has changed nothing. Files are moved by anybody.
    let script = "mv tool tools && mv tools/deep tools/deeper && git mv readme readme.md && mv tools/a tools/z && \
        if git mv src source 2>/dev/null; then exit 1; fi; mv src source && git add -A && \
        ls tools tools/deeper source/deep";
    let ran = project.run_with(&["--name", "fix"], script);
    assert_eq!(
        ran.assert_success().stdout(),
        "source/deep:\nmain.c\n\ntools:\ndeeper\nz\n\ntools/deeper:\nb\nc\n"
    );
    let shown = project.say(&["diff", "--stat", "fix"]).assert_success().stdout();
    for line in
        ["src/deep/main.c => source/deep/main.c", "tool/a => tools/z", "tool/deep/b => tools/deeper/b"]
    {
        assert!(shown.contains(&format!("renamed   +0 -0        {line}\n")), "{line} is not in {shown}");
    }
    project.say(&["apply", "--worktree", "fix"]).assert_success();
    assert!(!project.path().join("tool").exists() && !project.path().join("src").exists());
    assert_eq!(fs::read_to_string(project.path().join("tools/deeper/c")).unwrap(), "tool/deep/c\n");
});

callers!(only_ignored_files_do_not_wait, |caller| {
    let project = Project::repository(caller);
    project.write(".gitignore", "built/\n");
    project.git(&["add", "."]);
    project.git(&["commit", "-qm", "rules"]);
    let ran = project.run_with(&["--name", "build"], "mkdir built && echo o >built/o");
    assert!(ran.assert_success().stderr().contains("nothing to take"), "{}", ran.stderr());
    let listed = project.say(&["ls", "-a"]).stdout();
    assert!(listed.contains("build") && !listed.contains("changes waiting"), "{listed}");
    // What is written by a later start waits.
    project.say(&["start", "build"]).assert_success();
    project.say(&["exec", "build", "--", "sh", "-c", "cat built/o && echo two >readme"]).assert_success();
    project.say(&["stop", "build"]).assert_success();
    assert!(project.say(&["ls", "-a"]).stdout().contains("changes waiting"));
    project.say(&["apply", "build"]).assert_success();
    assert!(!project.say(&["ls", "-a"]).stdout().contains("changes waiting"));
    project.say(&["start", "build"]).assert_success();
    project.say(&["exec", "build", "--", "sh", "-c", "echo three >readme"]).assert_success();
    project.say(&["stop", "build"]).assert_success();
    assert!(project.say(&["ls", "-a"]).stdout().contains("changes waiting"));
    project.say(&["rm", "build"]).assert_refused();
    project.say(&["rm", "--force", "build"]).assert_success();
});

callers!(a_layer_over_its_limits, |caller| {
    let project = Project::repository(caller);
    let before = project.git(&["status", "--porcelain"]);
    for (script, limit) in [
        ("p=.; for i in $(seq 201); do p=$p/d; done; mkdir -p $p && echo x >$p/x", "200 levels"),
        ("truncate -s 17179869185 large", "17179869184 bytes"),
    ] {
        project.run_with(&["--name", "full"], script).assert_success();
        for words in
            [&["diff", "full"][..], &["apply", "full"], &["apply", "--worktree", "full"], &["rm", "full"]]
        {
            let refused = project.say(words);
            let stderr = refused.assert_refused().stderr();
            assert!(stderr.contains(&format!("more than {limit} in the changes")), "{words:?}: {stderr}");
            assert!(stderr.contains("hint: "), "{words:?}: {stderr}");
        }
        assert!(project.say(&["ls", "-a"]).stdout().contains("changes waiting"));
        assert_eq!(project.git(&["status", "--porcelain"]), before);
        project.say(&["rm", "--force", "full"]).assert_success();
    }
});
