//! The way back, with real sandboxes: what was done inside is shown, taken and thrown away.

use harness::callers;
use serde_json::Value;

use crate::project::Project;

/// Changes a file, commits one and leaves others as they are.
const WORK: &str = "echo two >readme && git commit -qam 'agent says' && echo new >new && mkdir -p built && \
    echo o >built/o && rm -r src && ln -s readme link && echo 'all:' >Makefile && chmod +x new";

#[track_caller]
fn json(project: &Project, words: &[&str]) -> Value {
    serde_json::from_str(&project.say(words).assert_success().stdout()).unwrap()
}

callers!(what_was_done_is_shown_and_comes_back_as_a_branch, |caller| {
    let project = Project::repository(caller);
    project.write(".gitignore", "built/\n");
    project.git(&["add", "."]);
    project.git(&["commit", "-qm", "rules"]);
    project.write(".env", "SECRET=1\n");
    let before = project.git(&["status", "--porcelain"]);
    let ran = project.run_with(&["--name", "fix"], WORK);
    assert!(ran.assert_success().stderr().contains("agentbox diff"), "{}", ran.stderr());
    let shown = json(&project, &["diff", "--json", "fix"]);
    assert_eq!(shown["problem"], Value::Null);
    let paths: Vec<&str> =
        shown["files"].as_array().unwrap().iter().map(|file| file["path"].as_str().unwrap()).collect();
    assert_eq!(paths, ["Makefile", "link", "new", "readme", "src/deep/main.c"]);
    assert_eq!(shown["commits"][0]["subject"], "agent says");
    assert_eq!(shown["files"][0]["risks"][0]["code"], "build");
    assert!(project.say(&["ls", "-a"]).stdout().contains("changes waiting"));
    let refused = project.say(&["rm", "fix"]);
    assert!(refused.assert_refused().stderr().contains("changes wait"), "{}", refused.stderr());
    let risky = project.say(&["apply", "--refuse-risky", "fix"]);
    assert!(risky.assert_refused().stderr().contains("Makefile"), "{}", risky.stderr());
    let applied = json(&project, &["apply", "--json", "fix"]);
    assert_eq!((&applied["branch"], &applied["tree"]), (&Value::from("agentbox/fix"), &shown["tree"]));
    assert_eq!(project.git(&["rev-parse", "agentbox/fix^{tree}"]).trim(), shown["tree"]);
    assert_eq!(project.git(&["log", "--format=%s", "main..agentbox/fix"]).lines().last(), Some("agent says"));
    assert_eq!(project.git(&["status", "--porcelain"]), before);
    project.git(&["fsck", "--strict"]);
    project.say(&["rm", "fix"]).assert_success();
    assert_eq!(project.git(&["for-each-ref", "refs/agentbox"]), "");
});

callers!(what_was_done_comes_into_the_working_tree, |caller| {
    let project = Project::repository(caller);
    project.run_with(&["--name", "fix"], WORK).assert_success();
    let shown = json(&project, &["diff", "--json", "fix"]);
    project.write("readme", "mine\n");
    let refused = project.say(&["apply", "--worktree", "fix"]);
    assert!(refused.assert_refused().stderr().contains("readme"), "{}", refused.stderr());
    project.write("readme", "one\n");
    project.say(&["apply", "--worktree", "fix"]).assert_success();
    // Nothing is ignored here, so that all of it came.
    project.git(&["add", "-A"]);
    assert_eq!(project.git(&["write-tree"]).trim(), shown["tree"]);
    project.say(&["discard", "fix"]).assert_success();
    assert!(!project.say(&["ls", "-a"]).stdout().contains("changes waiting"));
    project.say(&["start", "fix"]).assert_success();
    project.say(&["exec", "fix", "--", "sh", "-c", "grep two /workspace/readme"]).assert_success();
    project.say(&["rm", "-f", "fix"]).assert_success();
});

callers!(one_that_runs_is_frozen_and_compared, |caller| {
    let project = Project::repository(caller);
    let workspace = project.path().display().to_string();
    project.say(&["create", "--name", "fix", "--workspace", &workspace]).assert_success();
    let act = |script: &str| {
        project.say(&["exec", "fix", "--", "sh", "-c", script]).assert_success();
    };
    act("echo two >readme");
    let shown = json(&project, &["diff", "--json", "fix"]);
    act("echo three >readme");
    let refused = project.say(&["apply", "fix"]);
    assert!(refused.assert_refused().stderr().contains("not those that were shown"), "{}", refused.stderr());
    let again = json(&project, &["diff", "--json", "fix"]);
    assert_ne!(shown["tree"], again["tree"]);
    project.say(&["apply", "--tree", again["tree"].as_str().unwrap(), "fix"]).assert_success();
    // It goes on.
    act("true");
    let running = project.say(&["discard", "fix"]);
    assert!(running.assert_refused().stderr().contains("runs"), "{}", running.stderr());
    project.say(&["rm", "-f", "fix"]).assert_success();
});

callers!(one_that_changed_nothing_does_not_stay, |caller| {
    let project = Project::repository(caller);
    project.write(".env", "SECRET=1\n");
    project.run("git status && cat readme");
    assert_eq!(project.kept(), Vec::<String>::new());
});

callers!(what_only_a_commit_has_is_told_with_the_commit, |caller| {
    let project = Project::repository(caller);
    let script = "mkdir .husky && echo evil >.husky/pre-push && git add . && git commit -qm 'puts it in' && \
        git rm -qr .husky && echo two >readme && git commit -qam 'takes it out'";
    project.run_with(&["--name", "fix"], script).assert_success();
    let shown = json(&project, &["diff", "--json", "fix"]);
    assert_eq!(shown["files"].as_array().unwrap().len(), 1);
    assert_eq!(shown["files"][0]["risks"], Value::Array(Vec::new()));
    let first = &shown["commits"][0];
    assert_eq!(
        (&first["subject"], &first["files"][0]["path"]),
        (&"puts it in".into(), &".husky/pre-push".into())
    );
    assert_eq!(first["files"][0]["risks"][0]["code"], "hook");
    let text = project.say(&["diff", "fix"]).assert_success().stdout();
    let commit = text.lines().position(|line| line.contains("puts it in")).unwrap();
    let told = text.lines().nth(commit + 1).unwrap();
    assert!(told.contains(".husky/pre-push: ") && told.ends_with("(hook)"), "{text}");
    assert_eq!(project.say(&["diff", "--name-only", "fix"]).assert_success().stdout(), "readme\n");
    // What does not come keeps nothing from coming.
    let refused = project.say(&["apply", "--refuse-risky", "fix"]);
    assert!(refused.assert_refused().stderr().contains(".husky/pre-push"), "{}", refused.stderr());
    let squash = ["apply", "--refuse-risky", "--squash", "--branch", "whole", "fix"];
    project.say(&squash).assert_success();
    assert_eq!(project.git(&["log", "--format=%s", "main..whole"]), "Changes of an agent\n");
    assert_eq!(project.git(&["rev-parse", "whole^{tree}"]).trim(), shown["tree"]);
    let taken = project.say(&squash);
    assert!(
        taken.assert_refused().stderr().contains("there is a branch 'whole' already"),
        "{}",
        taken.stderr()
    );
    project.say(&["apply", "--refuse-risky", "--worktree", "fix"]).assert_success();
    assert_eq!(std::fs::read_to_string(project.path().join("readme")).unwrap(), "two\n");
});

callers!(a_directory_that_is_called_as_a_mode_is_given_by_its_path, |caller| {
    let project = Project::empty(caller);
    let place = project.place().display().to_string();
    project.write_at(&project.place().join("empty/file"), "mine\n");
    let run = |workspace: &str| {
        let prefix = ["/usr/bin/env", "-C", place.as_str()];
        let finished = project.agentbox().behind(prefix).options(["-w", workspace]).run(["ls"]);
        finished.assert_success().stdout()
    };
    assert_eq!(run("empty"), "");
    assert_eq!(run("./empty"), "file\n");
});
