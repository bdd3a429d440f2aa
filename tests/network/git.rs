//! git as people use it, by HTTPS and by ssh, to a repository of the world's: clone and push where it is allowed, and a line
//! that says why where it is not.

use harness::{Caller, Finished, Internet, Repository, callers};

/// Clones each of these, commits and pushes to a branch of that name; what fails is said and the next is tried.
const WORK: &str = "
export GIT_SSL_CAINFO=/ca.pem GIT_TERMINAL_PROMPT=0 HOME=/tmp
# ssh takes no key that others may read.
install -m 600 /keys/id /tmp/id
export GIT_SSH_COMMAND='ssh -F none -i /tmp/id -o IdentitiesOnly=yes -o UserKnownHostsFile=/keys/known_hosts -o BatchMode=yes'
git config --global user.name agent && git config --global user.email agent@inside
while [ $# -gt 0 ]; do
    cd /tmp
    git clone -q $2 $1 && cd $1 && cat README && echo more > more && git add more && git commit -qm \"by $1\" \\
        && git push -q origin HEAD:$1 && echo \"pushed $1\" || echo \"failed $1\"
    shift 2
done";

fn work(internet: &Internet, caller: Caller, repository: &Repository, options: &[&str]) -> Finished {
    let ca = format!("{}:/ca.pem", internet.ca().display());
    let keys = format!("{}:/keys", repository.keys().display());
    let agentbox = internet.agentbox(caller).options(["--mount", &ca, "--mount", &keys]).options(options);
    let (https, ssh) = (repository.https(), repository.ssh());
    agentbox.run(["sh", "-c", WORK, "sh", "https", &https, "ssh", &ssh])
}

#[track_caller]
fn assert_said(finished: &Finished, repository: &Repository, stdout: &str, blocked: &[&str]) {
    let (said, stderr) = (finished.stdout(), finished.stderr());
    assert_eq!(said, stdout, "{stderr}\n{}", repository.log());
    let lines: Vec<&str> = stderr.lines().filter(|line| line.starts_with("blocked: ")).collect();
    assert_eq!(lines, blocked, "{stderr}");
}

callers!(git_clones_and_pushes_by_https_and_ssh_where_that_is_allowed, |caller| {
    if !Caller::Single.is_available() {
        eprintln!("skipped: run tests/setup.sh as root for the user who serves the repository");
        return;
    }
    let internet = Internet::new();
    let repository = internet.repository();

    let nobody = work(&internet, caller, &repository, &["--allow", "allowed.test"]);
    let line = "blocked: git.test (not in allowlist); to allow: --allow git.test";
    assert_said(&nobody, &repository, "failed https\nfailed ssh\n", &[line]);
    assert!(internet.seen().is_nothing(), "{:?}", internet.seen());

    let https = work(&internet, caller, &repository, &["--allow", "git.test"]);
    let line = "blocked: git.test:22 (allowed, but not on this port); to allow: --allow git.test:22";
    assert_said(&https, &repository, "hello\npushed https\nfailed ssh\n", &[line]);
    assert_eq!((&*repository.last("https"), &*repository.last("ssh")), ("by https", ""));
    let seen = internet.seen();
    let names: Vec<_> = seen.connections().iter().map(|connection| connection.sni.as_deref()).collect();
    assert!(!names.is_empty() && names.iter().all(|name| *name == Some("git.test")), "{names:?}");

    let ssh = work(&internet, caller, &repository, &["--allow", "git.test:22"]);
    let line = "blocked: git.test:443 (allowed, but not on this port); to allow: --allow git.test";
    assert_said(&ssh, &repository, "failed https\nhello\npushed ssh\n", &[line]);
    assert_eq!(repository.last("ssh"), "by ssh");
    // For the clone and for the push.
    assert_eq!(internet.seen().connections_to("203.0.113.30:22").len(), 2);
});
