//! Tools that agents use all day: git, tmux, archives, search.

use harness::{Agentbox, HOST_KERNEL, callers, is_on};

use crate::{has, script};

callers!(git, |caller| {
    let text = r#"
git init --quiet --initial-branch=main repository; cd repository
git config user.name Agent; git config user.email agent@example.invalid
echo one > file; git add file; git commit --quiet --message=first
git switch --quiet --create topic; echo two >> file; git commit --quiet --all --message=second
git switch --quiet main; git merge --quiet topic; git gc --quiet
git worktree add --quiet ../tree topic
git clone --quiet . ../copy
git -C ../copy log --format=%s; git -C ../tree status --short --branch; git fsck --strict 2>&1 | grep -c . || true
"#;
    let stdout = script(Agentbox::shipped(caller), text).stdout();
    assert!(stdout.starts_with("second\nfirst\n## topic\n"), "{stdout}");
});

callers!(git_runs_in_a_mounted_repository, |caller| {
    let tree = caller.directory();
    let git = |words: &[&str]| {
        let mut command = caller.command(std::path::Path::new("/usr/bin/git"));
        let output = command.arg("-C").arg(tree.path()).args(words).output().unwrap();
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    };
    git(&["init", "--quiet", "--initial-branch=main"]);
    let who = ["-c", "user.name=Owner", "-c", "user.email=owner@example.invalid"];
    git(&[&who[..], &["commit", "--quiet", "--allow-empty", "--message=the owner's"]].concat());
    let mount = format!("{}:/workspace/source:rw", tree.path().display());
    let text = "cd source; git log --format=%s; echo new > file; git status --short";
    let finished = script(Agentbox::shipped(caller).options(["--mount", &mount]), text);
    assert_eq!(finished.stdout(), "the owner's\n?? file\n");
});

callers!(tmux, |caller| {
    if !has("/usr/bin/tmux") {
        return;
    }
    let text = r#"
tmux -f /dev/null new-session -d -x 80 -y 24 -s work 'sh -c "echo from the session; exec cat"'
until tmux capture-pane -p -t work | grep -q 'from the session'; do sleep 0.05; done
tmux send-keys -t work 'typed into it' Enter
until test "$(tmux capture-pane -p -t work | grep -c 'typed into it')" = 2; do sleep 0.05; done
tmux capture-pane -p -t work | grep . ; tmux list-sessions -F '#{session_name}'; tmux kill-server
"#;
    let stdout = script(Agentbox::shipped(caller), text).stdout();
    assert_eq!(stdout, "from the session\ntyped into it\ntyped into it\nwork\n");
});

callers!(archives_links_and_times, |caller| {
    let text = r#"
mkdir -p tree/a; echo data > tree/a/file; ln -s a/file tree/link; ln tree/a/file tree/hard; $PIPES && mkfifo tree/fifo
chmod 640 tree/a/file; touch -d '2001-02-03 04:05:06 UTC' tree/a
tar czf tree.tgz tree; mkdir out; tar xzf tree.tgz -C out
cat out/tree/link; stat -c '%h %a' out/tree/hard; stat -c %Y out/tree/a
mv out/tree/a/file out/moved; cp -a tree copy; rm -r out; $PIPES && find copy -type p; perl -e 'print "perl\n"'
"#;
    // A kernel of the sandbox's own makes named pipes, and does not let anybody change whose they are or their mode.
    let pipes = is_on(HOST_KERNEL, "named pipes keep the mode that they were made with");
    let options = ["--env", if pipes { "PIPES=true" } else { "PIPES=false" }];
    let stdout = script(Agentbox::shipped(caller).options(options), text).stdout();
    let found = if pipes { "copy/fifo\n" } else { "" };
    assert_eq!(stdout, format!("data\n2 640\n981173106\n{found}perl\n"));
});

callers!(jobs_locks_and_temporary_files, |caller| {
    let text = r#"
( flock 9; sleep 0.1; echo first ) 9>lock & sleep 0.05; ( flock 9; echo second ) 9>lock; wait
file=$(mktemp); test -w "$file"; echo shared > /dev/shm/x; cat /dev/shm/x
timeout 0.1 sleep 10 || echo "timed out $?"
ps -e -o pid= | head -1 | tr -d ' '
date -u -d @0 +%Y; LC_ALL=C.UTF-8 printf 'größe\n'; getent passwd agent | cut -d: -f6
"#;
    let stdout = script(Agentbox::shipped(caller), text).stdout();
    assert_eq!(stdout, "first\nsecond\nshared\ntimed out 124\n1\n1970\ngröße\n/home/agent\n");
});
