//! Nothing inside but the overlay leads to the owner's tree: what is hidden there, and the owner's `.git`, are nowhere.

use std::fs;

use harness::{Agentbox, breach, callers, holds, probe_mount};
use policy::Wall;

use crate::project::Project;

callers!(what_lies_under_the_layer_is_nowhere, |caller| {
    let project = Project::repository(caller);
    let token = format!("canary-{}", std::process::id());
    // A secret by its name, one in the owner's `.git`, and one in that of another repository.
    let hidden = [format!("{token}.pem"), format!(".git/{token}"), format!("vendor/.git/{token}")];
    for name in &hidden {
        project.write(name, &token);
    }
    let path = project.path().display().to_string();
    let layer = project.state().display().to_string();
    let places = ["/.agentbox/lower", "/.agentbox/layer/upper", "/workspace", &path].map(str::to_owned);
    let absent: Vec<String> = places
        .iter()
        .flat_map(|place| hidden.iter().map(move |name| format!("{place}/{name}")))
        .chain([layer])
        .collect();
    let check = |start: &dyn Fn() -> Agentbox| {
        let words = ["/probe", "hunt", &token].into_iter().chain(absent.iter().map(String::as_str));
        let sandbox = project.with_state(start()).options(["-w", &path, "--mount", &probe_mount()]);
        let found = sandbox.run(words).assert_success().stdout();
        if found.is_empty() { Ok(()) } else { Err(found.lines().take(3).collect::<Vec<_>>().join("; ")) }
    };
    holds(caller, &check);
    breach(caller, Wall::MountNamespace, &check);
});

callers!(the_kernel_names_no_path_of_the_host, |caller| {
    let project = Project::repository(caller);
    let mounts = project
        .run("cat /proc/self/mountinfo /proc/1/mountinfo 2>/dev/null; grep -c . /proc/mounts >/dev/null");
    if harness::backend().has_own_kernel() {
        // It knows nothing of overlays, and names nothing but what it mounted itself.
        let host = [project.path(), project.state()].map(|path| path.display().to_string());
        assert!(
            mounts.contains(" /workspace ") && !host.iter().any(|path| mounts.contains(path)),
            "{mounts}"
        );
        return;
    }
    let overlays: Vec<&str> = mounts.lines().filter(|line| line.contains(" - overlay ")).collect();
    assert!(overlays.len() >= 2, "{mounts}");
    for line in overlays {
        let options = line.rsplit(' ').next().unwrap();
        for option in options.split(',') {
            let Some((_, path)) = option.split_once("dir=") else { continue };
            assert!(path.starts_with(".agentbox/") || path == "nofollow", "{line}");
        }
        assert!(line.contains("nosuid,nodev"), "{line}");
    }
    let shown = project.run("ls -A /.agentbox/lower /.agentbox/layer; ls /.agentbox/objects; touch /.agentbox/objects/0/x || echo refused");
    assert_eq!(shown, "/.agentbox/layer:\n\n/.agentbox/lower:\n0\nrefused\n");
    // Of the sandbox's own directory only the outputs are bound.
    let state = project.state().display().to_string();
    assert!(
        mounts
            .lines()
            .all(|line| !line.contains(&state) || line.contains("/outputs /mnt/user-data/outputs "))
    );
});

callers!(setuid_and_devices_give_nothing, |caller| {
    let project = Project::repository(caller);
    let program = project.path().join("id");
    assert!(harness::copy_program(std::path::Path::new("/usr/bin/id"), &program));
    caller.own(&program);
    fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o6755)).unwrap();
    assert_eq!(
        project
            .run("./id -u; cp id own; chmod 6755 own; ./own -u; mknod n c 1 3 2>/dev/null || echo refused"),
        "1000\n1000\nrefused\n"
    );
});

// Object stores are bound beside the tree: only objects are in them.
callers!(of_the_repository_only_objects_are_bound, |caller| {
    let project = Project::repository(caller);
    project.write(".git/hooks/post-checkout", "#!/bin/sh\n");
    let shown = project.run("find /.agentbox/objects -type f | sed 's,/[0-9a-f]*$,,' | cut -d / -f 1-4 | sort -u; ls .git/hooks 2>/dev/null || true");
    assert_eq!(shown, "/.agentbox/objects/0\n");
});
