//! git inside: as usual, with the owner's identity and without anything that lets one in or runs on its own.

use std::fs;

use harness::callers;

use crate::project::{Project, assert_same};

callers!(git_works_as_usual, |caller| {
    let project = Project::repository(caller);
    project.git(&["tag", "-a", "-m", "tagged", "v1"]);
    project.git(&["pack-refs", "--all"]);
    project.git(&["branch", "loose"]);
    project.write("readme", "one\nchanged\n");
    project.write("staged", "s\n");
    project.git(&["add", "staged"]);
    project.write("untracked", "u\n");
    let shown =
        project.run("git status --short --branch; git log --format='%an <%ae> %s'; git branch; git describe");
    let expected = "## main\n M readme\nA  staged\n?? untracked\nAnn Other <ann@example.org> first\n  loose\n* main\nv1\n";
    assert_eq!(shown, expected);
    let script = "git commit -qam second && git checkout -qb topic && git stash list && git log --format='%an %s' && \
                  git diff HEAD~1 --stat | tail -1 && git fsck --no-dangling 2>&1 && git status --short";
    let shown = project.run(script);
    let expected = "Ann Other second\nAnn Other first\n 2 files changed, 2 insertions(+)\n?? untracked\n";
    assert_eq!(shown, expected);
});

callers!(a_clean_tree_is_clean, |caller| {
    let project = Project::repository(caller);
    project.write(".gitignore", "*.o\n");
    project.write(".env", "KEY=1\n");
    project.git(&["add", ".gitignore"]);
    project.git(&["commit", "-qm", "ignore"]);
    project.write("a.o", "");
    fs::write(project.path().join(".git/info/exclude"), "scratch\n").unwrap();
    project.write("scratch", "");
    assert_eq!(project.run("git status --porcelain; git diff --stat; git ls-files -d"), "");
});

callers!(no_credential_and_no_program_of_the_configuration, |caller| {
    let project = Project::repository(caller);
    let canary = project.place().join("canary");
    let evil = format!("touch {}", canary.display());
    for (name, value) in [
        ("remote.origin.url", "https://me:token-one@example.org/a.git?key=token-two"),
        ("remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*"),
        ("remote.origin.uploadpack", evil.as_str()),
        ("http.https://example.org/.extraheader", "Authorization: token-three"),
        ("credential.helper", "!echo token-four"),
        ("core.fsmonitor", evil.as_str()),
        ("core.sshCommand", evil.as_str()),
        ("core.hooksPath", "/tmp/token-five"),
        ("filter.x.smudge", evil.as_str()),
        ("alias.st", "!token-six"),
        ("include.path", "/tmp/token-seven"),
        ("user.signingkey", "token-eight"),
        ("url.https://token-nine@example.org/.insteadOf", "https://example.org/"),
    ] {
        project.git(&["-c", "core.fsmonitor=false", "config", "--add", name, value]);
    }
    let before = project.seen();
    let shown = project
        .run("git config --list; cat .git/config; grep -r token- .git || true; git remote -v; git status -s; echo >left");
    assert!(!shown.contains("token-") && !shown.contains("touch"), "{shown}");
    assert!(shown.contains("origin\thttps://example.org/a.git (fetch)"), "{shown}");
    assert!(!canary.exists(), "a program of the configuration ran on the host");
    assert_same(&before, &project.seen());
});

callers!(other_repositories_in_the_tree, |caller| {
    let project = Project::repository(caller);
    project.write("vendor/lib/file", "v\n");
    project.git_in("vendor/lib", &["init", "-q", "-b", "main", "."]);
    project.identify("vendor/lib");
    project.git_in("vendor/lib", &["add", "."]);
    project.git_in("vendor/lib", &["commit", "-qm", "of the library"]);
    project.git_in("vendor/lib", &["remote", "add", "origin", "https://me:token@example.org/x"]);
    // One that leads elsewhere has no repository inside, nor one that nobody understands.
    let elsewhere = Project::repository(caller);
    project.write("stolen/.git", format!("gitdir: {}\n", elsewhere.path().join(".git").display()));
    project.write("broken/.git/config", "[remote \"origin\"]\nurl = https://token@example.org\n");
    project.write("linked/a", "");
    project.link(&elsewhere.path().join(".git").display().to_string(), "linked/.git");
    project.write("borrowing/a", "");
    project.git_in("borrowing", &["init", "-q", "."]);
    let alternates = format!("{}\n", elsewhere.path().join(".git/objects").display());
    project.write("borrowing/.git/objects/info/alternates", alternates);
    let foreign = elsewhere.git(&["rev-parse", "HEAD"]);

    let script = format!(
        "git -C vendor/lib log --format='%an %s'; git -C vendor/lib status --short; grep -r token . ; \
         ls -A stolen broken linked; git -C borrowing cat-file -e {} 2>/dev/null && echo borrowed; \
         cd vendor/lib && echo w >> file && git commit -qam more && git log --format=%s",
        foreign.trim()
    );
    let before = project.seen();
    let shown = project.run(&script);
    assert_eq!(shown, "Ann Other of the library\nbroken:\n\nlinked:\na\n\nstolen:\nmore\nof the library\n");
    assert_same(&before, &project.seen());
});

callers!(settings_of_the_owner_for_all_repositories, |caller| {
    let project = Project::repository(caller);
    project.git(&["config", "--unset", "user.name"]);
    project.git(&["config", "--unset", "user.email"]);
    let home = project.place().join("home");
    let global = "[user]\nname = Global Ann\nemail = g@example.org\n[core]\nexcludesFile = ~/patterns\n";
    project.write_at(&home.join(".gitconfig"), global);
    project.write_at(&home.join("patterns"), "*.swp\n");
    project.write("x.swp", "");
    let workspace = project.path().display().to_string();
    let agentbox = project.at_home_in(&home).options(["-w", &workspace]);
    let script = "git status --short; git commit -q --allow-empty -m x; git log -1 --format='%an %ae'";
    assert_eq!(agentbox.run(["sh", "-c", script]).assert_success().stdout(), "Global Ann g@example.org\n");
});
