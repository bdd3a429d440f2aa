//! Isolation 4 for a tree that is worked on directly: nothing of any `.git` changes or can be read, and the owner's next git
//! command runs nothing of the agent's.

use std::fs;
use std::process::Stdio;

use harness::{Agentbox, Caller, callers, stands};
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

callers!(the_owners_next_git_command_runs_nothing, |caller| {
    let check = |start: &dyn Fn() -> Agentbox| {
        let project = besieged(caller);
        let canary = project.place().join("canary");
        let evil = project.path().join("evil");
        project.write("evil", format!("#!/bin/sh\ntouch {}\n", canary.display()));
        fs::set_permissions(&evil, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let before = project.seen_of_git();
        let workspace = format!("{}:direct", project.path().display());
        let place = project.path().display().to_string();
        let agentbox = project.with_state(start()).options(["-w", &workspace]);
        let told = agentbox.run(["sh", "-c", ATTACK, "sh", &evil.display().to_string(), &place]).stdout();
        if !told.is_empty() {
            return Err(format!("it was read inside: {told}"));
        }
        let after = project.seen_of_git();
        let differs = before.iter().find(|(path, line)| after.get(*path) != Some(line));
        let new = after.keys().find(|path| !before.contains_key(*path));
        if differs.is_some() || new.is_some() {
            return Err(format!("it was changed: {:?} {new:?}", differs.map(|(path, _)| path)));
        }
        for words in [
            &["status"][..],
            &["diff"],
            &["log", "-p", "-1"],
            &["add", "readme"],
            &["commit", "-q", "--allow-empty", "-m", "owner"],
            &["submodule", "status"],
        ] {
            let mut git = caller.command(std::path::Path::new("/usr/bin/git"));
            git.arg("-C").arg(project.path()).args(words);
            let _ = git.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
            if canary.exists() {
                return Err(format!("git {words:?} ran the agent's program"));
            }
        }
        Ok(())
    };
    stands(caller, Wall::MountNamespace, &check);
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
