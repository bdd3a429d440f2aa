//! Isolation 4 for a tree that is worked on directly: nothing of any `.git` changes or can be read, and the owner's next git
//! command runs nothing of the agent's.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use harness::{Agentbox, Caller, callers, holds, stands};
use policy::Wall;

use crate::project::Project;

/// Everything that makes git run a program, in every repository there is, by every way to put one there.
const ATTACK: &str = r#"
evil=$1; place=$2
poison() {
  printf '[core]
	fsmonitor = %s
	hooksPath = %s
	pager = %s
[diff]
	external = %s
' "$evil" "$(dirname "$evil")" "$evil" "$evil" >>"$1/config"
  mkdir -p "$1/hooks"
  for hook in pre-commit post-commit commit-msg post-index-change reference-transaction; do ln -sf "$evil" "$1/hooks/$hook"; done
  echo "$place/bad" >"$1/commondir"
}
git init -q bad 2>/dev/null && mv bad/.git inner && rmdir bad && mv inner bad && rm -f bad/commondir
for top in /workspace "$place"; do
  cd "$top" || continue
  cat .git/token vendor/.git/token deep/er/.git/token .git/modules/lib/token 2>/dev/null
  for git in .git vendor/.git deep/er/.git .git/modules/lib unborn obeyed; do poison "$git"; done
  # Renamed, removed, replaced, linked, and those above them.
  mv .git away; rm -rf .git; mkdir .git; cp -r bad .git; ln -sfn bad .git
  for above in vendor deep deep/er lib unborn obeyed; do mv "$above" "$above.old" && cp -r bad "$above"; done
  mv vendor/.git vendor/old; rm -rf vendor; rm -rf deep; rm -rf lib
  echo "gitdir: $place/bad" >lib/.git; rm -f lib/.git; mv lib/.git lib/x; ln -sfn ../bad lib/.git
  mkdir -p unborn/.git && cp -r bad/. unborn/.git && poison unborn/.git
  printf '#!/bin/sh
exec %s
' "$evil" >obeyed/pre-commit
done 2>/dev/null
# Nothing of this is left to be found at the end but where it could be put.
rm -rf bad away *.old; true
"#;

/// A project with repositories of each kind, which must not change.
fn besieged(caller: Caller) -> Project {
    let library = Project::repository(caller);
    let project = Project::repository(caller);
    for below in ["vendor", "deep/er"] {
        project.write(&format!("{below}/file"), "x\n");
        project.git(&["init", "-q", below]);
    }
    let url = library.path().display().to_string();
    for name in ["lib", "unborn"] {
        project.git(&["submodule", "--quiet", "add", &url, name]);
    }
    project.write("obeyed/pre-commit", "#!/bin/sh\n");
    project.git(&["add", "obeyed"]);
    project.git(&["commit", "-qm", "with submodules"]);
    project.git(&["submodule", "--quiet", "deinit", "-f", "unborn"]);
    project.git(&["config", "core.hooksPath", "obeyed"]);
    for git in [".git", "vendor/.git", "deep/er/.git", ".git/modules/lib"] {
        project.write(&format!("{git}/token"), "TOKEN-OF-THE-OWNER\n");
    }
    project
}

/// What came of an attack.
struct Siege {
    read: Option<String>,
    changed: Option<String>,
    ran: Option<String>,
}

fn besiege(project: &Project, agentbox: Agentbox, script: &str) -> Siege {
    let canary = project.place().join("canary");
    let evil = project.path().join("evil");
    project.write("evil", format!("#!/bin/sh\ntouch {}\n", canary.display()));
    fs::set_permissions(&evil, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let before = project.seen_of_git();
    let workspace = format!("{}:direct", project.path().display());
    let (evil, place) = (evil.display().to_string(), project.path().display().to_string());
    let agentbox = project.with_state(agentbox).options(["-w", &workspace]);
    let told = agentbox.run(["sh", "-c", script, "sh", &evil, &place]).stdout();
    let after = project.seen_of_git();
    let differs = before.iter().find(|(path, line)| after.get(*path) != Some(line)).map(|(path, _)| path);
    let new = after.keys().find(|path| !before.contains_key(*path));
    let ran = COMMANDS.iter().find(|words| {
        let mut git = project.caller.command(Path::new("/usr/bin/git"));
        git.arg("-C").arg(project.path()).args(**words);
        let _ = git.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
        canary.exists()
    });
    Siege {
        read: (!told.is_empty()).then(|| format!("it was read inside: {told}")),
        changed: differs.or(new).map(|path| format!("it was changed: {}", path.display())),
        ran: ran.map(|words| format!("git {words:?} ran the agent's program")),
    }
}

/// What an owner does next.
const COMMANDS: [&[&str]; 6] = [
    &["status"],
    &["diff"],
    &["log", "-p", "-1"],
    &["add", "readme"],
    &["commit", "-q", "--allow-empty", "-m", "owner"],
    &["submodule", "status"],
];

/// A wall that stands as long as an attack comes to nothing of one kind.
#[track_caller]
fn withstands(caller: Caller, project: fn(Caller) -> Project, script: &str, of: fn(Siege) -> Option<String>) {
    let check = |start: &dyn Fn() -> Agentbox| match of(besiege(&project(caller), start(), script)) {
        Some(breach) => Err(breach),
        None => Ok(()),
    };
    stands(caller, Wall::MountNamespace, &check);
}

callers!(nothing_of_any_git_is_read, |caller| {
    withstands(caller, besieged, ATTACK, |siege| siege.read);
});

callers!(nothing_of_any_git_is_changed, |caller| {
    withstands(caller, besieged, ATTACK, |siege| siege.changed);
});

callers!(the_owners_next_git_command_runs_nothing, |caller| {
    holds(caller, &|start| match besiege(&besieged(caller), start(), ATTACK).ran {
        Some(breach) => Err(breach),
        None => Ok(()),
    });
});

/// A configuration and hooks of the agent's, by each of the ways that work where nothing is in the way.
const WAYS: [&str; 4] = [
    "git config core.fsmonitor \"$1\"",
    "git config core.hooksPath /none; mkdir -p .git/hooks; cp evil .git/hooks/pre-commit; git config --unset core.hooksPath",
    "cp -r .git bad && GIT_DIR=bad git config core.fsmonitor \"$1\" && echo ../bad >.git/commondir",
    "cp -r .git bad && GIT_DIR=bad git config core.fsmonitor \"$1\" && mv .git old && mv bad .git",
];

callers!(no_way_leads_to_the_owners_next_git_command, |caller| {
    for way in WAYS {
        let script = format!("{{ {way}; }} >/dev/null 2>&1; rm -rf bad; true");
        let script = if way.contains("commondir") { script.replace("rm -rf bad; ", "") } else { script };
        withstands(caller, Project::repository, &script, |siege| siege.ran);
    }
});

/// A submodule that is not checked out, and nothing else.
fn with_unborn(caller: Caller) -> Project {
    let library = Project::repository(caller);
    let project = Project::repository(caller);
    project.git(&["submodule", "--quiet", "add", &library.path().display().to_string(), "unborn"]);
    project.git(&["commit", "-qm", "with a submodule"]);
    project.git(&["submodule", "--quiet", "deinit", "-f", "unborn"]);
    project
}

// git looks into each submodule that has a repository, whoever made that.
callers!(no_repository_is_made_where_a_submodule_belongs, |caller| {
    let script = "{ cd unborn && git init -q . && git config user.name A && git config user.email a@b && \
                  git commit -q --allow-empty -m x && git config core.fsmonitor \"$1\"; } >/dev/null 2>&1; true";
    withstands(caller, with_unborn, script, |siege| siege.ran);
});

/// Hooks that are files of the tree.
fn with_hooks(caller: Caller) -> Project {
    let project = Project::repository(caller);
    project.write("obeyed/readme", "hooks\n");
    project.git(&["config", "core.hooksPath", "obeyed"]);
    project
}

callers!(no_hook_is_made_where_the_owner_has_them, |caller| {
    withstands(caller, with_hooks, "cp evil obeyed/pre-commit 2>/dev/null; true", |siege| siege.ran);
});

// Who may make namespaces may mount there, and still uncovers nothing.
callers!(nothing_is_uncovered_in_a_namespace_of_ones_own, |caller| {
    let project = besieged(caller);
    let before = project.seen_of_git();
    let script = "unshare -Urm sh -c 'mkdir -p /tmp/a /tmp/u /tmp/w; cd /; echo in; umount /workspace/.git; umount -l /workspace/vendor/.git; \
        mount --bind /workspace /tmp/a && cat /tmp/a/.git/token; mount --rbind /workspace /tmp/a && cat /tmp/a/.git/token; umount /tmp/a/.git; \
        mount -t overlay o -o lowerdir=/workspace,userxattr /tmp/u; mount -t overlay o -o lowerdir=/workspace:/tmp/w /tmp/u && cat /tmp/u/.git/token; \
        cat /workspace/.git/token /workspace/vendor/.git/token /tmp/a/.git/token; touch /tmp/a/.git/x /workspace/vendor/.git/x' 2>/dev/null; true";
    let ran = project.direct(&["--nested"], script);
    assert_eq!(ran.assert_success().stdout(), "in\n", "{}", ran.stderr());
    crate::project::assert_same(&before, &project.seen_of_git());
});

/// A secret, which git does not track.
fn with_secret(caller: Caller) -> Project {
    let project = Project::repository(caller);
    project.write(".env", "SECRET\n");
    project
}

callers!(no_secret_is_read, |caller| {
    withstands(caller, with_secret, "cat .env \"$2/.env\" 2>/dev/null; true", |siege| siege.read);
});

callers!(what_git_includes_or_runs_from_the_tree_is_read_only, |caller| {
    let project = Project::repository(caller);
    project.write("shared.config", "[alias]\n\tx = status\n");
    project.git(&["config", "include.path", "../shared.config"]);
    project.write("fixtures/bare.git/HEAD", "ref: refs/heads/main\n");
    for part in ["objects/x", "refs/x"] {
        project.write(&format!("fixtures/bare.git/{part}"), "");
    }
    let script = "echo x >>shared.config || echo refused; mv shared.config s || echo stays; echo x >fixtures/bare.git/config || echo refused; \
                  mv fixtures f || echo stays; cat shared.config | head -1";
    let ran = project.direct(&[], &format!("{{ {script}; }} 2>/dev/null"));
    assert_eq!(ran.assert_success().stdout(), "refused\nstays\nrefused\nstays\n[alias]\n");
});

callers!(what_cannot_be_covered_is_refused, |caller| {
    let project = Project::repository(caller);
    let refused = |text: &str| {
        let ran = project.direct(&[], "true");
        let said = ran.assert_refused().stderr();
        assert!(said.contains(text) && said.contains("hint: leave :direct out"), "{said}");
        assert_eq!(project.kept(), Vec::<String>::new());
    };
    project.write("sub/file", "");
    project.link("../.git", "sub/.git");
    refused("'sub/.git' is a link");
    fs::remove_file(project.path().join("sub/.git")).unwrap();
    let head = project.git(&["rev-parse", "HEAD"]);
    project.git(&["update-index", "--add", "--cacheinfo", &format!("160000,{},gone", head.trim())]);
    refused("'gone' is a submodule, and its directory is missing");
});

// A repository whose directory has another name, in the tree itself.
callers!(what_a_git_file_leads_to_is_nowhere, |caller| {
    let project = Project::repository(caller);
    project.git(&["init", "-q", "--separate-git-dir", "meta", "sub"]);
    fs::rename(project.path().join("meta"), project.path().join("sub/meta")).unwrap();
    project.write("sub/.git", "gitdir: meta\n");
    let before = crate::project::seen(&project.path().join("sub"));
    let ran = project.direct(&[], "ls -A sub/meta; touch sub/meta/config 2>/dev/null || echo refused; cat sub/.git 2>/dev/null || echo closed");
    assert_eq!(ran.assert_success().stdout(), "refused\nclosed\n");
    crate::project::assert_same(&before, &crate::project::seen(&project.path().join("sub")));
});
