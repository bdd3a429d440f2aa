//! The probe: a static program that tests bring into sandboxes. Each command does one thing that a shell
//! cannot, and prints what came of it. It runs on the hostile side and proves nothing by itself: what counts is
//! what the test sees on the host.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a probe that cannot go on has failed"
)]

mod attempts;
mod confine;
mod held;
mod hunt;
mod identity;
mod init;
mod namespaces;
mod outer;
mod reach;
mod runtime;
mod sockets;
mod sys;
mod syscalls;
mod terminal;

use std::process::ExitCode;

fn main() -> ExitCode {
    // In the place of our own PID 1.
    if std::env::args().next().as_deref() == Some("/.agentbox/init") {
        init::attack();
        return ExitCode::SUCCESS;
    }
    // In the place of a runtime.
    if std::env::args().next().is_some_and(|name| name.rsplit('/').next() == Some("runsc")) {
        return runtime::stand_in();
    }
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["hello"] => println!("hello"),
        ["hunt", token, ref paths @ ..] => hunt::files(token, paths),
        ["environments", token] => hunt::environments(token),
        ["descriptors"] => hunt::descriptors(),
        ["connect", kind, address] => reach::connect(kind, address),
        ["signal", pid, signal] => reach::signal(pid, signal),
        ["shared-memory", key] => reach::shared_memory(key),
        ["hold", directory] => held::hold(directory),
        ["mounts"] => attempts::mounts(),
        ["nodes"] => attempts::nodes(),
        ["trace", pid] => attempts::trace(pid),
        ["overwrite", ref paths @ ..] => attempts::overwrite(paths),
        ["forbidden"] => attempts::forbidden(),
        ["identity"] => identity::print(),
        ["landlock-layers"] => identity::landlock_layers(),
        ["namespaces"] => namespaces::attempt(),
        ["sockets"] => sockets::attempt(),
        ["syscalls"] => syscalls::attempt(),
        ["terminal"] => terminal::attempt(),
        ["outer", answers, "--", ref command @ ..] => return outer::run(answers, command),
        ["without", "netfilter", "--", ref command @ ..] => return outer::run_without_netfilter(command),
        ["without", kind, "--", ref command @ ..] => return outer::run_without(kind, command),
        ["confine", uid, ref action @ ..] => return confine::run(uid, action),
        _ => {
            eprintln!("probe: unknown command {words:?}");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}
