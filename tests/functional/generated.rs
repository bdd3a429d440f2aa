//! What is made from the definition of the command line: completions and man pages.

use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};

use harness::callers;

use crate::program::agentbox;

callers!(completions, |caller| {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = agentbox(caller, &["completions", shell]).assert_success().stdout();
        for word in ["run", "doctor", "isolation", "mount"] {
            assert!(script.contains(word), "no {word} for {shell}");
        }
    }
    let script = agentbox(caller, &["completions", "bash"]).stdout;
    let mut bash = Command::new("bash").arg("-n").stdin(Stdio::piped()).spawn().unwrap();
    bash.stdin.take().unwrap().write_all(&script).unwrap();
    assert!(bash.wait().unwrap().success());
});

callers!(man_pages, |caller| {
    let directory = caller.directory();
    let pages = directory.path().join("share/man1");
    agentbox(caller, &["man", pages.to_str().unwrap()]).assert_success();
    let read = |name: &str| fs::read_to_string(pages.join(name)).unwrap();
    assert!(read("agentbox.1").contains("agentbox\\-doctor(1)"));
    // The exit codes are where people look for them.
    for text in ["124 if its time ran out", "\\-\\-isolation", "tar c . | agentbox run"] {
        let page = read("agentbox-run.1");
        assert!(page.contains(text), "no {text} in {page}");
    }
    let refused = agentbox(caller, &["man", "/proc/no/such"]);
    assert!(
        refused
            .assert_refused()
            .stderr()
            .contains("error: cannot write man pages to '/proc/no/such'\ncause: ")
    );
});
