//! Kernel: 15, 16 and 18, the system calls.

use std::collections::BTreeMap;

use harness::{Agentbox, breach, breach_all, callers, stands, workspace_root};
use jail::seccomp::Architecture;
use policy::Wall;

use crate::{all_refused, none_of, probe};

/// Calls that only code which the kernel itself put in place can make.
const TRAMPOLINES: [&str; 2] = ["uretprobe", "uprobe"];

/// The verdict of a golden file for each name.
pub(crate) fn golden(subject: &str) -> BTreeMap<String, String> {
    let file = format!("crates/jail/golden/syscalls-{subject}-{}.txt", std::env::consts::ARCH);
    let text = std::fs::read_to_string(workspace_root().join(file)).unwrap();
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| line.split_once(' ').expect("name verdict"))
        .map(|(name, verdict)| (name.into(), verdict.into()))
        .collect()
}

/// What the probe saw: entry and number to outcome.
fn outcomes(sandbox: Agentbox) -> BTreeMap<(String, u32), String> {
    let output = probe(sandbox, &["syscalls"]);
    let parse = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let [entry, number, outcome] = words[..] else { panic!("{line}") };
        ((entry.to_owned(), number.parse().unwrap()), outcome.to_owned())
    };
    output.lines().map(parse).collect()
}

callers!(kernel_15_every_number, |caller| {
    if !harness::is_on(harness::HOST_KERNEL, "they are its own kernel's") {
        return;
    }
    let golden = golden("sandbox");
    // Without the filter: what the kernel itself says to these arguments.
    let bare = outcomes(Agentbox::weakened(caller, &[Wall::Seccomp]));
    stands(caller, Wall::Seccomp, &|start| {
        let seen = outcomes(start());
        let mut wrong = Vec::new();
        for ((entry, number), outcome) in &seen {
            let name = Architecture::NATIVE.name_of(*number);
            let verdict = match (entry.as_str(), name) {
                ("native", Some(name)) => golden[name].as_str(),
                ("native", None) => "enosys",
                _ => "kill",
            };
            let expected = match verdict {
                // The kernel does not ask a filter about its own trampolines.
                _ if entry == "native" && TRAMPOLINES.contains(&name.unwrap_or_default()) => {
                    bare[&(entry.clone(), *number)].as_str()
                }
                "eperm" => "EPERM",
                "enosys" => "ENOSYS",
                "kill" => "killed",
                // What depends on arguments has its own tests; what is allowed is as if there were no filter.
                "args" => continue,
                _ => bare[&(entry.clone(), *number)].as_str(),
            };
            if outcome != expected && !is_a_matter_of_time(outcome, expected) {
                wrong.push(format!(
                    "{entry} {number} {}: {outcome}, not {expected}",
                    name.unwrap_or("unknown")
                ));
            }
        }
        assert!(seen.len() > 600, "only {} numbers were tried", seen.len());
        none_of(&format!("{} verdicts are wrong", wrong.len()), wrong.iter().map(String::as_str).take(4))
    });
});

/// A call that waits may be cut off by the alarm or come back just before.
fn is_a_matter_of_time(one: &str, other: &str) -> bool {
    let waits = |outcome: &str| outcome == "signal-14" || outcome == "ok" || outcome == "errno-4";
    waits(one) && waits(other)
}

callers!(kernel_16_no_nested_namespaces, |caller| {
    if !harness::is_on(harness::HOST_KERNEL, "they are its own kernel's") {
        return;
    }
    let check: harness::Check<'_> = &|start| {
        let output = probe(start(), &["namespaces"]);
        let attempts =
            |name: &str| output.lines().filter(move |line| line.starts_with(name)).collect::<Vec<_>>();
        all_refused(&attempts("unshare ").join("\n"), &["EPERM"])?;
        all_refused(&attempts("clone ").join("\n"), &["EPERM"])?;
        all_refused(&attempts("clone3 ").join("\n"), &["ENOSYS"])?;
        // With a runtime the limit stands one namespace further out, where its own is counted and no other.
        let is_native = harness::backend() == policy::Backend::Native;
        let is_set = |line: &&str| *line == "limit user 0" || !is_native;
        none_of("the limit", attempts("limit").into_iter().filter(|line| !is_set(line)))
    };
    stands(caller, Wall::Seccomp, check);
    breach_all(caller, &[Wall::NestedNamespaces], check);
    // --nested is the owner's own way to open it, and says so.
    let nested = Agentbox::shipped(caller).option("--nested");
    let finished = nested.run(["unshare", "--user", "--map-root-user", "id", "-u"]);
    assert_eq!(finished.assert_success().stdout(), "0\n");
    assert!(finished.stderr().contains("missing   nested-namespaces"), "{}", finished.stderr());
});

callers!(kernel_18_young_parts_of_the_kernel, |caller| {
    if !harness::is_on(harness::HOST_KERNEL, "they are its own kernel's") {
        return;
    }
    breach(caller, Wall::Seccomp, &|start| all_refused(&probe(start(), &["forbidden"]), &["EPERM"]));
    harness::holds(caller, &|start| all_refused(&probe(start(), &["forbidden"]), &["EPERM"]));
});
