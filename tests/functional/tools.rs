//! `--tools`: the owner's tool chains come along, what opens accounts does not.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use failpoint::Point;
use harness::{Agentbox, Caller, as_caller, callers};

/// A home with a few tool chains and everything that must stay outside.
fn home(caller: Caller) -> tempfile::TempDir {
    let home = caller.directory();
    let write = |path: &str, contents: &str, mode: u32| {
        let path = home.path().join(path);
        let mut made = Vec::new();
        for parent in path.ancestors().skip(1).take_while(|parent| *parent != home.path()) {
            made.push(parent.to_owned());
        }
        for parent in made.iter().rev() {
            let _ = fs::create_dir(parent);
            caller.own(parent);
        }
        fs::write(&path, contents).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        caller.own(&path);
    };
    for tool in [
        ".cargo/bin/fake-cargo",
        ".local/bin/fake-tool",
        ".nvm/versions/node/v1/bin/fake-node",
        "go/bin/fake",
    ] {
        write(tool, &format!("#!/bin/sh\necho {tool} runs\n"), 0o755);
    }
    write(".rustup/settings.toml", "version = 12\n", 0o644);
    for secret in SECRETS {
        write(secret, "canary\n", 0o644);
    }
    home
}

const SECRETS: [&str; 8] = [
    ".cargo/credentials.toml",
    ".cargo/config.toml",
    ".ssh/id_ed25519",
    ".npmrc",
    ".netrc",
    ".config/gh/hosts.yml",
    ".local/share/keyrings/login",
    ".nvm/alias/default",
];

fn at_home(caller: Caller, home: &Path) -> Agentbox {
    let path = |directory: &str| home.join(directory).display().to_string();
    let entries = [path(".cargo/bin"), path(".local/bin"), path(".nvm/versions/node/v1/bin"), path("go/bin")];
    let path = format!("{}:{}", entries.join(":"), harness::path());
    let agentbox = Agentbox::shipped(caller).env("PATH", &path).env("HOME", &home.display().to_string());
    match caller {
        // Root's own home would come after the variable.
        Caller::Root => agentbox.behind(["/usr/bin/env", &format!("HOME={}", home.display())]),
        Caller::Subordinate | Caller::Single => agentbox,
    }
}

callers!(programs_come_along, |caller| {
    let home = home(caller);
    let script = "fake-cargo && fake-tool && fake-node && fake && echo $RUSTUP_HOME";
    let finished = at_home(caller, home.path()).option("--tools").run(["sh", "-c", script]);
    let expected = format!(
        ".cargo/bin/fake-cargo runs\n.local/bin/fake-tool runs\n.nvm/versions/node/v1/bin/fake-node runs\n\
         go/bin/fake runs\n{}\n",
        home.path().join(".rustup").display()
    );
    assert_eq!(finished.assert_success().stdout(), expected);
});

callers!(and_are_read_only, |caller| {
    let home = home(caller);
    let target = home.path().join(".cargo/bin/fake-cargo");
    let script = format!("echo evil >> {}; rm -f {}; true", target.display(), target.display());
    at_home(caller, home.path()).option("--tools").run(["sh", "-c", &script]).assert_success();
    assert_eq!(fs::read_to_string(target).unwrap(), "#!/bin/sh\necho .cargo/bin/fake-cargo runs\n");
});

callers!(credentials_stay_outside, |caller| {
    let home = home(caller);
    for option in ["--tools", "--report"] {
        let script = format!(
            "cd {} 2>/dev/null; for f in {}; do test -e $f && echo \"$f is there\"; done; \
             grep -r canary {} /home /root 2>/dev/null; echo looked",
            home.path().display(),
            SECRETS.join(" "),
            home.path().display()
        );
        let finished = at_home(caller, home.path()).option(option).run(["sh", "-c", &script]);
        assert_eq!(finished.assert_success().stdout(), "looked\n");
    }
});

callers!(without_the_option_nothing_comes, |caller| {
    let home = home(caller);
    let stderr = at_home(caller, home.path()).run(["fake-cargo"]).assert_code(127).stderr();
    assert!(stderr.contains("hint: --tools brings your tool chains along"), "{stderr}");
});

/// A keeper that is held up where it would look through them.
#[test]
fn a_look_through_large_ones_is_said_and_nothing_else() {
    as_caller(Caller::Root, harness::Company::Anybody, |caller| {
        let home = home(caller);
        let mark = home.path().join("mark");
        fs::write(&mark, "0").unwrap();
        let order = format!("wait {} {}", Point::KeeperOrdered.name(), mark.display());
        let agentbox = Agentbox::weakened(caller, &[])
            .env("AGENTBOX_FAILPOINT", &order)
            .behind(["/usr/bin/env", &format!("HOME={}", home.path().display())]);
        let running = agentbox.option("--tools").start(["echo", "ran"]);
        running.wait_for_stderr("looking through your tool chains for sockets");
        // Longer than whoever asks waits for an answer: there is nobody yet who could give one.
        std::thread::sleep(std::time::Duration::from_millis(5500));
        let file = fs::File::options().write(true).open(&mark).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, b"2", 0).unwrap();
        let finished = running.finish();
        assert_eq!(finished.assert_success().stdout(), "ran\n");
        assert!(!finished.stderr().contains("has not answered"), "{}", finished.stderr());
    });
}
