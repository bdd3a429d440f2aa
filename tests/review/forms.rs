//! Repositories and trees of every form.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;

use harness::callers;

use crate::project::{Project, assert_same};

callers!(a_linked_work_tree, |caller| {
    let project = Project::repository(caller);
    project.git(&["worktree", "add", "-q", "-b", "side", "../side"]);
    let before = (project.seen(), crate::project::seen(&project.place().join("side")));
    let side = project.place().join("side").display().to_string();
    let script =
        "git status --short --branch; echo x > new; git add new; git commit -qm side; git log --format=%s";
    let finished = project.agentbox().options(["-w", &side]).run(["sh", "-c", script]);
    assert_eq!(finished.assert_success().stdout(), "## side\nside\nfirst\n");
    assert_same(&before.0, &project.seen());
    assert_same(&before.1, &crate::project::seen(&project.place().join("side")));
});

callers!(a_submodule, |caller| {
    let library = Project::repository(caller);
    let project = Project::repository(caller);
    project.git(&["submodule", "--quiet", "add", &library.path().display().to_string(), "lib/x"]);
    project.git(&["commit", "-qm", "with a submodule"]);
    let before = project.seen();
    let script = "git status --short; git submodule status | cut -c 1,43-; git -C lib/x log --format=%s; \
                  cd lib/x && git config user.name A && git config user.email a@b && echo z >> readme && \
                  git commit -qam inner && cd ../.. && git status --short";
    assert_eq!(project.run(script), " lib/x (heads/main)\nfirst\n M lib/x\n");
    assert_same(&before, &project.seen());
    // The submodule by itself is a workspace, too.
    let path = project.path().join("lib/x").display().to_string();
    let finished = project.agentbox().options(["-w", &path]).run([
        "sh",
        "-c",
        "git status --short; git log --format=%s",
    ]);
    assert_eq!(finished.assert_success().stdout(), "first\n");
});

callers!(sparse_and_shallow, |caller| {
    let project = Project::repository(caller);
    project.write("readme", "two\n");
    project.git(&["commit", "-qam", "second"]);
    let url = format!("file://{}", project.path().display());
    project.git(&["clone", "-q", "--depth", "1", &url, "../shallow"]);
    let shallow = project.place().join("shallow").display().to_string();
    let run = |path: &str, script: &str| {
        project.agentbox().options(["-w", path]).run(["sh", "-c", script]).assert_success().stdout()
    };
    assert_eq!(run(&shallow, "git log --format=%s; git status --short; git fsck 2>&1"), "second\n");

    project.git(&["sparse-checkout", "set", "src"]);
    project.git(&["sparse-checkout", "set", "--sparse-index", "other"]);
    assert!(!project.path().join("src").exists());
    let path = project.path().display().to_string();
    let script = "git status --short; ls; echo x >> readme; git commit -qam third; git log --format=%s; git sparse-checkout list";
    assert_eq!(run(&path, script), "readme\nthird\nsecond\nfirst\nother\n");
});

callers!(detached_and_unborn, |caller| {
    let project = Project::repository(caller);
    project.git(&["checkout", "-q", "--detach"]);
    let script = "git symbolic-ref -q HEAD || echo detached; echo x > x; git add x; git commit -qm second; git log --format=%s";
    assert_eq!(project.run(script), "detached\nsecond\nfirst\n");

    let unborn = Project::empty(caller);
    unborn.git(&["init", "-q", "-b", "trunk", "."]);
    unborn.identify(".");
    unborn.write("a", "a\n");
    let script = "git status --short --branch; git add .; git commit -qm first; git log --format='%an %s'";
    assert_eq!(unborn.run(script), "## No commits yet on trunk\n?? a\nAnn Other first\n");
    assert_eq!(unborn.git(&["for-each-ref"]), "");
});

callers!(no_repository_at_all, |caller| {
    let project = Project::empty(caller);
    project.write("a/b", "b\n");
    project.write(".env", "KEY=1\n");
    let before = project.seen();
    let script = "ls -A; cat a/b; echo c >> a/b; rm -r a; git status 2>/dev/null || echo none; git init -q . && git add . && ls -A";
    assert_eq!(project.run(script), "a\nb\nnone\n.git\n");
    assert_same(&before, &project.seen());
});

callers!(borrowed_objects, |caller| {
    let project = Project::repository(caller);
    let clone = project.place().join("clone");
    project.git(&["clone", "-q", "--shared", ".", &clone.display().to_string()]);
    let finished = project.agentbox().options(["-w", &clone.display().to_string()]).run([
        "sh",
        "-c",
        "git log --format=%s; git status --short; git fsck 2>&1; cat .git/objects/info/alternates",
    ]);
    assert_eq!(finished.assert_success().stdout(), "first\n/.agentbox/objects/0\n/.agentbox/objects/1\n");
});

callers!(strange_names, |caller| {
    let project = Project::repository(caller);
    for name in
        [&b"with\nnewline"[..], b"not-\xff-text", b" space ", b"-dash", b"quote\"s'", b"comma,colon:=\\"]
    {
        project.write_at(&project.path().join(OsStr::from_bytes(name)).join(OsStr::from_bytes(name)), "x");
    }
    // A secret in a directory whose name is no text.
    project.write_at(&project.path().join(OsStr::from_bytes(b"not-\xff-text/.env")), "KEY");
    project.git(&["add", "--all", "--", ".", ":!*.env"]);
    project.git(&["commit", "-qm", "strange"]);
    assert_eq!(
        project.run("git status --porcelain; find . -name '*.env'; git ls-files | wc -l; echo >left"),
        "8\n"
    );
    let hidden = fs::read(project.only().join("review/hidden")).unwrap();
    assert_eq!(hidden, b"not-\xff-text/.env\0");
    // The options of an overlay have characters of their own.
    let named = project.place().join("a,b:c\\d=e");
    fs::rename(project.path(), &named).unwrap();
    let run =
        project.agentbox().options(["-w", &named.display().to_string()]).run(["sh", "-c", "cat readme"]);
    fs::rename(&named, project.path()).unwrap();
    assert_eq!(run.assert_success().stdout(), "one\n");
});

callers!(twenty_thousand_files, |caller| {
    let project = Project::empty(caller);
    project.git(&["init", "-q", "."]);
    project.identify(".");
    for directory in 0..400 {
        for file in 0..50 {
            project.write(&format!("d{}/e{directory}/f{file}", directory % 20), "");
        }
    }
    project.git(&["add", "."]);
    project.git(&["commit", "-qm", "many"]);
    assert_eq!(
        project.run("git status --porcelain; git ls-files | wc -l; echo x > d0/e0/f0; git status -s"),
        "20000\n M d0/e0/f0\n"
    );
});
