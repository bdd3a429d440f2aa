//! What is no workspace: said clearly, with our own exit code, and nothing is left behind.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use harness::{Caller, callers, is_root};

use crate::project::{Project, assert_same, assert_same_but_locks};

#[track_caller]
fn refused(project: &Project, workspace: &str, expected: &[&str]) {
    let finished = project.agentbox().options(["-w", workspace]).run(["true"]);
    let stderr = finished.assert_refused().stderr();
    for text in expected.iter().chain(&["hint: "]) {
        assert!(stderr.contains(text), "{workspace}: no '{text}' in {stderr}");
    }
    assert_eq!(project.kept(), Vec::<String>::new(), "{workspace}");
}

callers!(not_a_project, |caller| {
    let project = Project::repository(caller);
    let path = project.path().display().to_string();
    refused(&project, &format!("{path}/readme"), &["cannot be a workspace", "cause: not a directory"]);
    refused(&project, "/no/such", &["cannot be a workspace", "No such file"]);
    refused(&project, "/", &["it is the root of the file system"]);
    refused(&project, "/proc/self", &["it is a part of the system"]);
    refused(&project, &project.state().display().to_string(), &["cannot be a workspace"]);
    refused(
        &project,
        &project.place().display().to_string(),
        &["a directory of agentbox's own, or holds one"],
    );
    refused(&project, "/:direct", &["it is the root of the file system"]);
    refused(&project, &format!("{path}/src:direct"), &["is a part of the git repository at"]);
    let home = match caller {
        Caller::Root => "/root".to_owned(),
        Caller::Subordinate | Caller::Single => format!("/home/{}", caller.user()),
    };
    refused(&project, &home, &["cannot be a workspace: it is a"]);
    refused(&project, &format!("{home}:direct"), &["cannot be a workspace: it is a"]);
    let link = project.place().join("link");
    symlink("/", &link).unwrap();
    refused(&project, &link.display().to_string(), &["it is the root of the file system"]);
    let own = project.at_home_in(&project.path()).options(["-w", &path]).run(["true"]);
    assert!(own.assert_refused().stderr().contains("it is a home directory"), "{}", own.stderr());
});

callers!(parts_and_forms_of_repositories, |caller| {
    let project = Project::repository(caller);
    let path = project.path().display().to_string();
    let before = project.seen();
    let part = format!("{path}/src/deep");
    let hint = format!("hint: give the whole of it: --workspace {path} --workdir /workspace/src/deep");
    refused(&project, &part, &["is a part of the git repository at", &hint]);
    refused(&project, &format!("{path}/.git"), &["is a bare git repository"]);
    assert_same(&before, &project.seen());

    project.git(&["config", "core.repositoryformatversion", "1"]);
    project.git(&["config", "extensions.worktreeConfig", "true"]);
    project.run("true");
    let config = project.path().join(".git/config");
    let usual = fs::read_to_string(&config).unwrap();
    for (text, expected) in [
        ("[extensions]\nrefStorage = reftable\n", "reftable"),
        ("[extensions]\nunheardOf = yes\n", "unheardof"),
        ("[core]\nrepositoryformatversion = 7\n", "7"),
    ] {
        project.write(".git/config", format!("{usual}{text}"));
        let finished = project.agentbox().options(["-w", &path]).run(["true"]);
        let stderr = finished.assert_refused().stderr();
        assert!(stderr.contains(expected) && stderr.contains("hint: "), "{text}: {stderr}");
        assert_eq!(project.kept(), Vec::<String>::new());
    }
    project.write(".git/config", usual);
    // A work tree that its repository knows nothing of.
    let other = project.place().join("other");
    project.write_at(&other.join(".git"), format!("gitdir: {path}/.git\n"));
    refused(&project, &other.display().to_string(), &["which does not lead back"]);
    assert_eq!(project.git(&["for-each-ref", "refs/agentbox"]), "");
});

callers!(no_permission, |caller| {
    if caller == Caller::Root {
        return;
    }
    let project = Project::empty(caller);
    fs::set_permissions(project.path(), fs::Permissions::from_mode(0o000)).unwrap();
    refused(
        &project,
        &project.path().display().to_string(),
        &["cannot be a workspace", "cause: Permission denied"],
    );
    fs::set_permissions(project.path(), fs::Permissions::from_mode(0o755)).unwrap();
});

callers!(something_mounted_in_it, |caller| {
    if !is_root("mount something") {
        return;
    }
    let project = Project::repository(caller);
    let below = project.path().join("src");
    assert!(Command::new("mount").args(["-t", "tmpfs", "test"]).arg(&below).status().unwrap().success());
    let path = project.path().display().to_string();
    let finished = project.agentbox().options(["-w", &path]).run(["true"]);
    let _ = Command::new("umount").arg("--lazy").arg(&below).status();
    let stderr = finished.assert_refused().stderr();
    assert!(
        stderr.contains("something else is mounted at '") && stderr.contains("hint: unmount it"),
        "{stderr}"
    );
});

/// How much stays of sandboxes that did not start. Whoever records the base beside a start notices a little later, and takes
/// back what it has made.
fn left_in(sandboxes: &Path) -> usize {
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let left = fs::read_dir(sandboxes).map_or(0, Iterator::count);
        if left == 0 || Instant::now() > deadline {
            return left;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

callers!(a_state_that_carries_no_layer, |caller| {
    if !is_root("mount something") {
        return;
    }
    let project = Project::repository(caller);
    let path = project.path().display().to_string();
    // An overlay cannot be the upper layer of another one.
    let state = project.place().join("carries-nothing");
    let parts = ["l", "u", "w"].map(|name| project.place().join(name));
    for directory in parts.iter().chain([&state]) {
        fs::create_dir(directory).unwrap();
        caller.own(directory);
    }
    let [lower, upper, work] = parts.each_ref().map(|path| path.display().to_string());
    let options = format!("lowerdir={lower},upperdir={upper},workdir={work}");
    assert!(
        Command::new("mount")
            .args(["-t", "overlay", "test", "-o", &options])
            .arg(&state)
            .status()
            .unwrap()
            .success()
    );
    fs::set_permissions(&state, fs::Permissions::from_mode(0o700)).unwrap();
    let before = project.seen();
    let home = state.join("state").display().to_string();
    let run = || harness::Agentbox::shipped(caller).env("AGENTBOX_HOME", &home);
    let finished = run().options(["-w", &path]).run(["true"]);
    let left = left_in(&state.join("state/sandboxes"));
    let _ = Command::new("umount").arg("--lazy").arg(&state).status();
    let stderr = finished.assert_refused().stderr();
    assert!(stderr.contains("set AGENTBOX_HOME to a directory on a local disk"), "{stderr}");
    assert_eq!(left, 0, "{stderr}");
    assert_same_but_locks(&project, &before);
    assert_eq!(project.git(&["for-each-ref", "refs/agentbox"]), "");
});

/// A file system in memory that carries neither attributes nor other ids.
fn mount_ramfs(caller: Caller, place: &Path) {
    fs::create_dir(place).unwrap();
    assert!(Command::new("mount").args(["-t", "ramfs", "test"]).arg(place).status().unwrap().success());
    fs::set_permissions(place, fs::Permissions::from_mode(0o700)).unwrap();
    caller.own(place);
}

callers!(a_file_system_without_attributes, |caller| {
    if !is_root("mount something") {
        return;
    }
    let project = Project::repository(caller);
    let before = project.seen();
    let place = project.place().join("memory");
    mount_ramfs(caller, &place);
    let home = place.join("state").display().to_string();
    let path = project.path().display().to_string();
    let finished =
        harness::Agentbox::shipped(caller).env("AGENTBOX_HOME", &home).options(["-w", &path]).run(["true"]);
    let left = left_in(&place.join("state/sandboxes"));
    // The tree itself may be there, where nobody has to be shown as somebody else.
    project.write_at(&place.join("tree/file"), "one\n");
    let tree = place.join("tree").display().to_string();
    let shown = project.agentbox().options(["-w", &tree]).run(["cat", "file"]);
    let _ = Command::new("umount").arg("--lazy").arg(&place).status();

    let stderr = finished.assert_refused().stderr();
    assert!(stderr.contains("set AGENTBOX_HOME to a directory on a local disk"), "{stderr}");
    assert_eq!(left, 0, "{stderr}");
    assert_same_but_locks(&project, &before);
    if caller == Caller::Root {
        let stderr = shown.assert_refused().stderr();
        assert!(stderr.contains("cannot be mounted with other ids") && stderr.contains("hint: "), "{stderr}");
    } else {
        assert_eq!(shown.assert_success().stdout(), "one\n");
    }
    assert_eq!(left_in(&project.state().join("sandboxes")), 0);
});
