//! What is done inside stays in the layer: the owner's tree is as it was, and what was written is the owner's and is there
//! again at the next start.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, chown};
use std::os::unix::net::UnixListener;

use harness::callers;

use crate::project::{Project, assert_same, assert_same_but_locks};

/// Everything that can be done to a tree.
const WORK: &str = "set -e
    echo two >> readme; mkdir -p new/dir; echo x > new/dir/file; ln -s ../readme new/link; ln readme hard
    rm -r src; mkdir src; echo y > src/other; chmod 755 readme; mv hard moved; mkfifo pipe; touch -d 2001-01-01 readme
    printf 'strange\\n' > \"$(printf 'a\\nb')\"
    git add -A; git commit -qm second; git tag v1; git branch topic; git gc -q; git config core.hooksPath /tmp
    echo evil > .git/hooks-of-mine";

callers!(nothing_of_the_owners_changes, |caller| {
    let project = Project::repository(caller);
    project.write(".env", "KEY=1\n");
    let before = project.seen();
    project.run(WORK);
    assert_same(&before, &project.seen());
    // The one thing that is written is the pin, which goes with the sandbox.
    let pins = || project.git(&["for-each-ref", "--format=%(objectname) %(refname)", "refs/agentbox"]);
    let id = project.kept().remove(0);
    let head = project.git(&["rev-parse", "HEAD"]);
    assert_eq!(pins(), format!("{} refs/agentbox/{id}\n", head.trim()));
    project.say(&["rm", "--force", &id]).assert_success();
    assert_eq!(pins(), "");
    assert!(!project.path().join(".git/refs/agentbox").exists());
    assert_same_but_locks(&project, &before);
});

/// One status after the other, with changes between them that come within a second and leave directories' sizes as they are.
const COMING_AND_GOING: &str = "set -e
    mkdir -p a/b; echo 1 > a/b/one; echo '*.log' > .gitignore; git add -A; git commit -qm base; tell() { git status --porcelain -uall; echo .; }
    tell; touch a/b/new a/two; tell; rm a/b/new; touch a/b/wen; tell; mkdir a/b/c; touch a/b/c/deep a/b/c/x.log; tell
    mv a/b/c a/c; tell; rm -r a/c a/two a/b/wen; tell; echo > .gitignore; touch a/y.log; tell; git add -A; git commit -qm more; tell
    git checkout -q HEAD^; tell; touch a/y.log; tell";

callers!(git_tells_of_all_that_came_and_went, |caller| {
    let project = Project::repository(caller);
    let told = project.run(COMING_AND_GOING);
    let steps: Vec<String> = told.split(".\n").map(|step| step.trim_end().replace('\n', ", ")).collect();
    let expected = [
        "",
        "?? a/b/new, ?? a/two",
        "?? a/b/wen, ?? a/two",
        "?? a/b/c/deep, ?? a/b/wen, ?? a/two",
        "?? a/b/wen, ?? a/c/deep, ?? a/two",
        "",
        " M .gitignore, ?? a/y.log",
        "",
        "",
        "",
        "",
    ];
    assert_eq!(steps, expected);
});

callers!(what_is_written_is_the_owners_and_stays, |caller| {
    let project = Project::repository(caller);
    // As root the owner may be anybody.
    let owner = if caller == Caller::Root { (4321, 8765) } else { (caller.uid(), caller.gid()) };
    if caller == Caller::Root {
        let all = crate::project::seen(&project.path());
        all.keys().for_each(|path| chown(path, Some(owner.0), Some(owner.1)).unwrap());
    }
    let script = "stat -c %U:%G . readme src/deep; echo two >> readme; echo new > src/deep/new; rm src/deep/main.c; \
                  git add -A; git commit -qm second; cat readme";
    assert_eq!(project.run(script), format!("{}one\ntwo\n", "agent:agent\n".repeat(3)));
    let mut waiting = vec![project.only().join("layer/upper")];
    let mut files = 0;
    while let Some(path) = waiting.pop() {
        let metadata = fs::symlink_metadata(&path).unwrap();
        assert_eq!((metadata.uid(), metadata.gid()), owner, "{}", path.display());
        files += 1;
        if metadata.is_dir() {
            waiting.extend(fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
        }
    }
    assert!(files > 20, "{files}");
    assert_eq!(fs::read_to_string(project.only().join("layer/upper/src/deep/new")).unwrap(), "new\n");

    // A plain run leaves it on file, and it starts again as it was left.
    let id = project.kept().remove(0);
    let listed = project.say(&["ls", "--all"]).assert_success().stdout();
    assert!(listed.contains(&id) && listed.contains("exited (0)"), "{listed}");
    project.say(&["start", &id]).assert_success();
    let again = project.say(&[
        "exec",
        &id,
        "--",
        "sh",
        "-c",
        "cat readme; ls src/deep; git log --format=%s; echo 3 > 3",
    ]);
    assert_eq!(again.assert_success().stdout(), "one\ntwo\nnew\nsecond\nfirst\n");
    project.say(&["stop", &id]).assert_success();
    project.say(&["start", &id]).assert_success();
    assert_eq!(
        project.say(&["exec", &id, "--", "cat", "3", "readme"]).assert_success().stdout(),
        "3\none\ntwo\n"
    );
    project.say(&["rm", "--force", &id]).assert_success();
    assert!(project.kept().is_empty());
});

callers!(at_workspace_and_at_its_own_path, |caller| {
    let project = Project::repository(caller);
    let path = project.path().display().to_string();
    let script = format!(
        "pwd; cat {path}/readme; echo new > {path}/there; cat there; touch {path}/../x || echo refused"
    );
    let shown = project.run(&script);
    assert!(shown == "/workspace\none\nnew\nrefused\n" || shown == "/workspace\none\nnew\n", "{shown}");
    let shown = project.run_with(&["--workdir", &format!("{path}/src")], "pwd; ls").assert_success().stdout();
    // To a kernel of its own the second place is a link to the first, which it follows.
    let place = if harness::backend().has_own_kernel() { "/workspace" } else { &path };
    assert_eq!(shown, format!("{place}/src\ndeep\n"));
});

callers!(mounts_within_it, |caller| {
    let project = Project::repository(caller);
    let data = caller.directory();
    project.write_at(&data.path().join("file"), "of the mount\n");
    let before = project.seen();
    let mount = |target: &str| format!("{}:{target}", data.path().display());
    let own = project.path().join("src/there").display().to_string();
    let options = [
        "--mount",
        &mount("/workspace/new/data"),
        "--mount",
        &mount("/workspace/src"),
        "--mount",
        &mount(&own),
    ];
    let shown = project.run_with(&options[..4], "cat new/data/file src/file; ls");
    assert_eq!(shown.assert_success().stdout(), "of the mount\nof the mount\nnew\nreadme\nsrc\n");
    let shown = project.run_with(&options[4..], &format!("cat {own}/file; ls {own}/.."));
    assert_eq!(shown.assert_success().stdout(), "of the mount\ndeep\nthere\n");
    assert_same_but_locks(&project, &before);
});

callers!(create_and_detached_runs, |caller| {
    let project = Project::repository(caller);
    let path = project.path().display().to_string();
    let id = project.say(&["create", "-w", &format!("{path}:review")]).assert_success().stdout();
    let id = id.trim();
    project.say(&["exec", id, "--", "sh", "-c", "echo two > /workspace/readme"]).assert_success();
    project.say(&["stop", id]).assert_success();
    let detached = project.say(&["run", "-w", &path, "--detach", "--", "sh", "-c", "echo three > readme"]);
    let other = detached.assert_success().stdout();
    project.say(&["wait", other.trim()]).assert_success();
    let upper = |id: &str| project.state().join("sandboxes").join(id).join("layer/upper/readme");
    assert_eq!(fs::read_to_string(upper(id)).unwrap(), "two\n");
    assert_eq!(fs::read_to_string(upper(other.trim())).unwrap(), "three\n");
    assert_eq!(fs::read_to_string(project.path().join("readme")).unwrap(), "one\n");
});

callers!(sockets_and_devices_are_absent, |caller| {
    let project = Project::repository(caller);
    let socket = project.path().join("src/agent.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    fs::set_permissions(&socket, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    let connect = "import socket; socket.socket(socket.AF_UNIX).connect('src/agent.sock')";
    let script = format!("ls src; python3 -c \"{connect}\" 2>/dev/null && echo connected; echo looked");
    let finished = project.run_with(&[], &script);
    assert_eq!(finished.assert_success().stdout(), "deep\nlooked\n");
    let line = format!("covered   {}: a socket", socket.display());
    assert!(finished.stderr().contains(&line), "{}", finished.stderr());
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_err(), "something inside has connected");

    // Nor does the overlay lead to one that is made later.
    let path = project.path().display().to_string();
    let id = project.say(&["create", "-w", &path]).assert_success().stdout();
    let later = project.path().join("later.sock");
    let listener = UnixListener::bind(&later).unwrap();
    fs::set_permissions(&later, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    let connect = "import socket; socket.socket(socket.AF_UNIX).connect('later.sock')";
    let tried = project.say(&["exec", id.trim(), "--", "python3", "-c", connect]);
    assert!(tried.stderr().contains("ConnectionRefusedError"), "{}", tried.stderr());
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_err(), "something inside has connected");
});

callers!(the_owner_may_go_on, |caller| {
    let project = Project::repository(caller);
    let path = project.path().display().to_string();
    let id = project.say(&["create", "-w", &path]).assert_success().stdout();
    let inside =
        |script: &str| project.say(&["exec", id.trim(), "--", "sh", "-c", script]).assert_success().stdout();
    inside("echo mine >> readme");
    project.write("readme", "of the owner\n");
    project.write("src/deep/later", "later\n");
    assert_eq!(inside("cat readme src/deep/later"), "one\nmine\nlater\n");
    assert_eq!(fs::read_to_string(project.path().join("readme")).unwrap(), "of the owner\n");
});
