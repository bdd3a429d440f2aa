//! Working on the owner's directory itself: what is written is there at once and the owner's, commits come back as a
//! branch, and what holds secrets cannot be read.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixListener;

use harness::callers;

use crate::project::{Project, assert_same};

callers!(what_is_written_is_there_at_once_and_the_owners, |caller| {
    let project = Project::repository(caller);
    let path = project.path();
    let before = project.seen_of_git();
    let script = format!(
        "pwd; echo two >readme; mkdir new && echo n >new/file && ln -s file new/link; cd {0} && echo own >own && rm -r src; \
         stat -c '%U %G' . own new; git status --short; git -C /workspace log --format='%an %s'",
        path.display()
    );
    let ran = project.direct(&[], &script);
    let expected = "/workspace\nagent agent\nagent agent\nagent agent\n M readme\n D src/deep/main.c\n?? new/\n?? own\n\
                    Ann Other first\n";
    assert_eq!(ran.assert_success().stdout(), expected);
    assert!(ran.stderr().contains("is written directly"), "{}", ran.stderr());
    assert_same(&before, &project.seen_of_git());
    assert_eq!(fs::read_to_string(path.join("readme")).unwrap(), "two\n");
    assert!(!path.join("src").exists());
    for name in ["readme", "new", "new/file", "new/link", "own"] {
        let metadata = fs::symlink_metadata(path.join(name)).unwrap();
        assert_eq!((metadata.uid(), metadata.gid()), (caller.uid(), caller.gid()), "{name}");
    }
    assert_eq!(project.git(&["status", "--short"]), " M readme\n D src/deep/main.c\n?? new/\n?? own\n");
});

callers!(commits_come_back_as_a_branch, |caller| {
    let project = Project::repository(caller);
    let script = "echo two >readme && git commit -qam 'agent says' && echo left >left";
    let ran = project.direct(&["--name", "fix"], script);
    assert!(
        ran.assert_success().stderr().contains("1 commit on the new branch agentbox/fix"),
        "{}",
        ran.stderr()
    );
    assert_eq!(project.git(&["log", "--format=%s", "agentbox/fix"]), "agent says\nfirst\n");
    assert_eq!(project.git(&["show", "agentbox/fix:readme"]), "two\n");
    // The checkout and the index are as before; the files are what was made of them.
    assert_eq!(project.git(&["status", "--short", "--branch"]), "## main\n M readme\n?? left\n");
    project.git(&["fsck", "--strict"]);
    let listed = project.say(&["ls", "-a"]).stdout();
    assert!(listed.contains("fix") && !listed.contains("changes waiting"), "{listed}");
    let again = project.say(&["apply", "--worktree", "fix"]);
    assert!(again.assert_refused().stderr().contains("in your directory already"), "{}", again.stderr());
    project.say(&["rm", "fix"]).assert_success();
    assert_eq!(project.git(&["for-each-ref", "refs/agentbox"]), "");
});

callers!(commits_wait_where_the_branch_is_taken, |caller| {
    let project = Project::repository(caller);
    project.git(&["branch", "agentbox/fix"]);
    let ran = project.direct(&["--name", "fix"], "echo two >readme && git commit -qam 'agent says'");
    let said = ran.assert_success().stderr();
    assert!(
        said.contains("there is a branch 'agentbox/fix' already") && said.contains("commits wait"),
        "{said}"
    );
    assert!(project.say(&["ls", "-a"]).stdout().contains("changes waiting"));
    project.say(&["rm", "fix"]).assert_refused();
    project.say(&["apply", "--branch", "other", "fix"]).assert_success();
    assert_eq!(project.git(&["log", "--format=%s", "other"]), "agent says\nfirst\n");
    assert!(!project.say(&["ls", "-a"]).stdout().contains("changes waiting"));
    project.say(&["discard", "fix"]).assert_success();
    assert_eq!(fs::read_to_string(project.path().join("readme")).unwrap(), "two\n");
    project.say(&["rm", "fix"]).assert_success();
});

callers!(one_that_left_nothing_does_not_stay, |caller| {
    let project = Project::repository(caller);
    let before = project.seen();
    let ran = project.direct(&[], "git status && cat readme");
    assert!(!ran.assert_success().stderr().contains("agentbox diff"), "{}", ran.stderr());
    assert_eq!(project.kept(), Vec::<String>::new());
    crate::project::assert_same_but_locks(&project, &before);
});

callers!(secrets_cannot_be_read, |caller| {
    let project = Project::repository(caller);
    for name in [".env", "src/id_rsa", ".aws/config", "src/.ssh/deep/any"] {
        project.write(name, "SECRET\n");
    }
    project.write("test.pem", "shown\n");
    project.git(&["add", "-f", "test.pem"]);
    project.git(&["commit", "-qm", "fixture"]);
    let _listener = UnixListener::bind(project.path().join("a.sock")).unwrap();
    caller.own(&project.path().join("a.sock"));
    let before = project.seen();
    let script = format!(
        "for d in /workspace {}; do cd $d; grep -rs SECRET . ; cat test.pem; ls src .aws src/.ssh/deep; \
         chmod 644 .env; chmod 755 .aws; echo x >.env; echo x >src/id_rsa; rm -f .env; mv .aws away; test -S a.sock && echo socket; done; \
         cd /workspace; mv src moved && cat moved/id_rsa; mv moved src; true",
        project.path().display()
    );
    let ran = project.direct(&[], &script);
    assert_eq!(ran.assert_success().stdout(), "shown\nsrc:\ndeep\nid_rsa\nshown\nsrc:\ndeep\nid_rsa\n");
    assert!(ran.stderr().contains("a.sock"), "{}", ran.stderr());
    assert_eq!(fs::read_to_string(project.path().join(".env")).unwrap(), "SECRET\n");
    assert_eq!(fs::read_to_string(project.path().join("src/id_rsa")).unwrap(), "SECRET\n");
    assert_same(
        &before.into_iter().filter(|(path, _)| path.starts_with(project.path().join(".aws"))).collect(),
        &project
            .seen()
            .into_iter()
            .filter(|(path, _)| path.starts_with(project.path().join(".aws")))
            .collect(),
    );
    assert_eq!(project.kept(), Vec::<String>::new());
});

callers!(a_linked_work_tree_and_a_submodule, |caller| {
    let library = Project::repository(caller);
    let project = Project::repository(caller);
    project.git(&["submodule", "--quiet", "add", &library.path().display().to_string(), "lib/x"]);
    project.git(&["commit", "-qm", "with a submodule"]);
    let before = project.seen_of_git();
    let script = "cat lib/x/.git | cut -c 1-22; git status --short; git -C lib/x log --format=%s; \
                  cd lib/x && git config user.name A && git config user.email a@b && echo z >>readme && \
                  git commit -qam inner && cd ../.. && git status --short";
    let ran = project.direct(&["--name", "sub"], script);
    assert_eq!(ran.assert_success().stdout(), "gitdir: /.agentbox/git\nfirst\n M lib/x\n");
    assert_same(&before, &project.seen_of_git());
    assert_eq!(project.git_in("lib/x", &["status", "--short"]), " M readme\n");
    let shown = project.say(&["diff", "--stat", "sub"]).assert_success().stdout();
    assert!(shown.contains("lib/x"), "{shown}");

    project.git(&["checkout", "-q", "--", "."]);
    project.git(&["worktree", "add", "-q", "-b", "side", "../side"]);
    // A submodule that is not checked out has its directory.
    let side = project.place().join("side");
    let before = (project.seen_of_git(), crate::project::seen(&side));
    let workspace = format!("{}:direct", side.display());
    let script = "git status --short --branch; echo x >new; git add new; git commit -qm side; git log --format=%s | head -1; \
                  cut -c 1-22 .git; mkdir lib/x/.git 2>/dev/null || echo refused";
    let finished = project.agentbox().options(["-w", &workspace, "--name", "side"]).run(["sh", "-c", script]);
    assert_eq!(finished.assert_success().stdout(), "## side\nside\ngitdir: /.agentbox/git\nrefused\n");
    assert_eq!(project.git(&["log", "--format=%s", "-1", "agentbox/side"]), "side\n");
    let of_git = |seen: &std::collections::BTreeMap<std::path::PathBuf, String>| {
        seen.iter().find(|(path, _)| path.ends_with("side/.git")).map(|(_, line)| line.clone())
    };
    assert_eq!(of_git(&before.1), of_git(&crate::project::seen(&side)));
});

callers!(it_goes_on_where_it_was_left, |caller| {
    let project = Project::repository(caller);
    let workspace = format!("{}:direct", project.path().display());
    project.say(&["create", "--name", "fix", "--workspace", &workspace]).assert_success();
    let act = |script: &str| project.say(&["exec", "fix", "--", "sh", "-c", script]);
    act("echo two >readme; git commit -qam one; mkdir made && git init -q made; echo evil >Makefile")
        .assert_success();
    let stopped = project.say(&["stop", "fix"]);
    let said = stopped.assert_success().stderr();
    for text in ["made/.git", "(repository)", "Makefile", "commits wait"] {
        assert!(said.contains(text), "no {text} in {said}");
    }
    // What the owner has made meanwhile is covered as well, and what was made inside is nobody's repository there.
    project.git(&["init", "-q", "mine"]);
    project.write("late.pem", "SECRET\n");
    let before = project.seen_of_git();
    project.say(&["start", "fix"]).assert_success();
    let seen = act(
        "git log --format=%s; ls -A mine/.git made/.git; cat late.pem; touch mine/.git/x made/.git/x; echo three >readme; git commit -qam two",
    );
    assert_eq!(seen.assert_success().stdout(), "one\nfirst\nmade/.git:\n\nmine/.git:\n");
    assert_same(&before, &project.seen_of_git());
    let shown = project.say(&["diff", "fix"]).assert_success().stdout();
    assert!(
        shown.contains("made/.git") && shown.contains("what you have changed since the start"),
        "{shown}"
    );
    project.say(&["apply", "fix"]).assert_success();
    assert_eq!(project.git(&["log", "--format=%s", "agentbox/fix"]), "two\none\nfirst\n");
    project.say(&["rm", "-f", "fix"]).assert_success();
});
