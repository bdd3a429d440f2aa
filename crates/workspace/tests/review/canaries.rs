//! Nothing of the owner's configuration and nothing of the agent's runs on the host while changes are shown and taken, and
//! nothing of the agent's runs by the owner's next git command.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use workspace::Both;

use crate::place::Place;

const PLACE: &str = "AGENTBOX_TEST_CANARIES";

/// A program that leaves a mark, and behaves as a filter.
fn canary(place: &Place, name: &str) -> PathBuf {
    let program = place.at(&format!("canary-{name}"));
    let mark = place.at(&format!("ran-{name}"));
    fs::write(&program, format!("#!/bin/sh\necho \"$0 $*\" >> '{}'\ncat\n", mark.display())).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    program
}

#[track_caller]
fn silent(place: &Place, name: &str) {
    let ran = fs::read_to_string(place.at(&format!("ran-{name}"))).unwrap_or_default();
    assert_eq!(ran, "", "a program of {name}'s ran");
}

/// Every setting that names a program.
fn settings(program: &Path) -> String {
    let program = program.display();
    format!(
        "[core]\n\tfsmonitor = {program}\n\thooksPath = {program}-hooks\n\tsshCommand = {program}\n\tpager = {program}\n\
         \teditor = {program}\n\talternateRefsCommand = {program}\n\tgitProxy = {program}\n\taskPass = {program}\n\
         [pager]\n\tdiff = {program}\n\tlog = {program}\n[diff]\n\texternal = {program}\n\
         [diff \"evil\"]\n\ttextconv = {program}\n\tcommand = {program}\n\
         [filter \"lfs\"]\n\tclean = {program}\n\tsmudge = {program}\n\tprocess = {program}\n\trequired = true\n\
         [merge \"evil\"]\n\tdriver = {program}\n[gpg]\n\tprogram = {program}\n[commit]\n\tgpgSign = true\n\
         [credential]\n\thelper = {program}\n[uploadpack]\n\tpackObjectsHook = {program}\n\
         [interactive]\n\tdiffFilter = {program}\n[sequence]\n\teditor = {program}\n"
    )
}

fn hooks(directory: &Path, program: &Path) {
    fs::create_dir_all(directory).unwrap();
    for name in [
        "pre-commit",
        "post-commit",
        "post-checkout",
        "post-merge",
        "reference-transaction",
        "post-index-change",
        "fsmonitor-watchman",
        "pre-receive",
        "update",
        "post-update",
        "post-rewrite",
        "pre-auto-gc",
        "proc-receive",
    ] {
        let _ = fs::remove_file(directory.join(name));
        fs::copy(program, directory.join(name)).unwrap();
    }
}

const ATTRIBUTES: &str = "* filter=lfs diff=evil merge=evil ident\n*.enc working-tree-encoding=UTF-16\n";

/// Does not test anything by itself: it is what runs with the owner's own configuration.
#[test]
fn the_one_with_the_owners_home() {
    let Some(root) = std::env::var_os(PLACE) else { return };
    let files = workspace::Files::of(Path::new(&root));
    let order = workspace::Order { id: "0123456789ab".to_owned(), ..workspace::Order::default() };
    workspace::record_base(&files).unwrap();
    workspace::review(&files, &[]).unwrap();
    workspace::choices(&files, &[]).unwrap();
    workspace::has_changes(&files).unwrap();
    workspace::apply_to_branch(&files, &order, "agentbox/box").unwrap();
    workspace::apply_to_worktree(&files, &order, Both::Merged).unwrap();
    workspace::discard(&files, &"0123456789ab".parse().unwrap()).unwrap();
}

fn run(place: &Place) {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "canaries::the_one_with_the_owners_home", "--test-threads", "1"])
        .env(PLACE, place.at("sandbox"))
        .env("HOME", place.at("home"))
        .env("GIT_PAGER", place.at("canary-owner"))
        .env("PAGER", place.at("canary-owner"))
        .env("GIT_EXTERNAL_DIFF", place.at("canary-owner"))
        .env("GIT_SSH_COMMAND", place.at("canary-owner"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn no_program_of_the_owners_runs() {
    let place = Place::repository(&[("a", "1\n"), ("b", "1\n"), (".gitattributes", ATTRIBUTES)]);
    let program = canary(&place, "owner");
    let config = place.owner().join(".git/config");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(place.at("included"), settings(&program)).unwrap();
    fs::write(&config, format!("{text}{}", settings(&program))).unwrap();
    let include = format!("[include]\n\tpath = {}\n", place.at("included").display());
    fs::write(place.at("home/.gitconfig"), settings(&program) + &include).unwrap();
    hooks(&place.owner().join(".git/hooks"), &program);
    hooks(&place.at("canary-owner-hooks"), &program);
    place.own("dirty", "x\n");
    place.start();
    place.write("a", "2\n");
    place.write("new.enc", "2\n");
    place.own("a", "owner's\n");
    run(&place);
    silent(&place, "owner");
    // The canary sings where it may: this is the owner's own command.
    place.git_command(&place.owner(), &["status"]);
    assert!(place.at("ran-owner").exists(), "the canary is mute");
}

#[test]
fn no_program_of_the_agents_runs_now_or_later() {
    let place = Place::repository(&[("a", "1\n"), ("sub/b", "1\n")]);
    place.start();
    workspace::record_base(&place.files()).unwrap();
    let program = canary(&place, "agent");
    // A repository of its own in place of ours, with everything that git would run.
    place.write(".git/config", settings(&program));
    place.write(".git/HEAD", "ref: refs/heads/main\n");
    place.write(".git/commondir", "/nowhere\n");
    place.write(".git/objects/info/alternates", format!("{}\n", place.at("outside").display()));
    place.write(".git/info/attributes", ATTRIBUTES);
    hooks(&place.upper().join(".git/hooks"), &program);
    // One that is hidden in a directory, bare, and one that another file leads to.
    for directory in ["bare", "sub"] {
        place.write(format!("{directory}/HEAD"), "ref: refs/heads/main\n");
        place.write(format!("{directory}/config"), settings(&program));
        place.write(format!("{directory}/objects/info/x"), "x");
        place.write(format!("{directory}/refs/x"), "x");
        hooks(&place.upper().join(directory).join("hooks"), &program);
    }
    place.write("led/.git", format!("gitdir: {}\n", place.upper().join("bare").display()));
    place.write("led/file", "x\n");
    place.write(".gitattributes", ATTRIBUTES);
    place.write(".gitconfig", settings(&program));
    place.write(
        ".gitmodules",
        format!("[submodule \"x\"]\n\tpath = x\n\turl = ext::{}\n\tupdate = !x\n", program.display()),
    );
    place.write("a", "2\n");
    // Links that lead out, and one in the way.
    fs::create_dir(place.at("outside")).unwrap();
    fs::write(place.at("outside/secret"), "secret\n").unwrap();
    symlink(place.at("outside"), place.upper().join("way")).unwrap();
    symlink(place.at("outside/secret"), place.upper().join("leak")).unwrap();
    let config = fs::read(place.owner().join(".git/config")).unwrap();
    run(&place);
    silent(&place, "agent");
    assert_eq!(fs::read(place.owner().join(".git/config")).unwrap(), config);
    assert!(!place.owner().join(".git/commondir").exists());
    for words in [
        &["status"][..],
        &["diff"],
        &["log", "-p", "--all"],
        &["show", "agentbox/box"],
        &["stash", "-u"],
        &["checkout", "-q", "agentbox/box"],
        &["status"],
        &["add", "-A"],
        &["gc", "-q"],
    ] {
        place.git_command(&place.owner(), words);
    }
    place.git_command(&place.owner().join("sub"), &["status"]);
    silent(&place, "agent");
    let leak = place.git(&["cat-file", "-p", "agentbox/box:leak"]);
    assert_eq!(leak, place.at("outside/secret").display().to_string());
}
