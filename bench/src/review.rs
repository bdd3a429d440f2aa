//! What a reviewed workspace costs: added to a start, to git and to builds inside beside the same outside, and how long it
//! takes to show and to take back what has been changed.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Result;

use crate::Effort;
use crate::goal::{Bound, Line};
use crate::place::Caller;
use crate::sandbox::{Sandbox, succeed};
use crate::statistics::median_milliseconds;

const FILES_A_DIRECTORY: usize = 50;
/// How many files somebody has changed.
const CHANGED: usize = 200;
const ROUNDS: usize = 7;

/// In a row, so that the start of the shell does not count.
const STATUS: &str = "for i in $(seq 20); do git status --porcelain > /dev/null || exit 1; done";
const WRITES: &str = "mkdir more && cp -r [0-9] [1-3][0-9] more && \
                      for file in more/*/*; do echo more >> $file; done; rm -r more";
const BUILD: &str = "rm -rf target && $HOME/.cargo/bin/cargo build --offline --quiet";

pub(crate) fn measure(who: &str, effort: Effort) -> Result<Vec<Line>> {
    let repository = std::env::temp_dir().join("repository");
    make_repository(&repository, effort.repository_files)?;
    let mut lines = start(who, &repository, effort)?;
    lines.extend(work(who, &repository)?);
    lines.extend(take_back(who, &repository, effort)?);
    fs::remove_dir_all(&repository)?;
    Ok(lines)
}

/// The same command with the repository and without, in turn: how long it takes until it runs, and until all is over.
fn start(who: &str, repository: &Path, effort: Effort) -> Result<Vec<Line>> {
    let text = repository.display().to_string();
    let mut times = [Vec::new(), Vec::new()];
    for cycle in 0..=effort.cycles {
        let ways: [&[&str]; 2] = [&["run", "--"], &["run", "-w", &text, "--"]];
        for (words, times) in ways.into_iter().zip(&mut times) {
            let time = cycle_of(words)?;
            times.extend((cycle > 0).then_some(time));
        }
    }
    let copy = repository.with_file_name("copy");
    let copied = succeed(Command::new("cp").arg("-a").args([repository, &copy]))?;
    fs::remove_dir_all(&copy)?;
    let files = effort.repository_files;
    let line = |what: &str, index: usize, bounds: Option<(f64, f64)>| {
        let [without, with] = [0, 1].map(|way: usize| {
            let times: Vec<Duration> = times[way].iter().map(|both: &[Duration; 2]| both[index]).collect();
            median_milliseconds(&times)
        });
        Line {
            what: format!("{what}, {who}, with a repository of {files} files under review (ms more)"),
            measured: vec![
                ("with it".to_owned(), format!("{with:.2} ms")),
                ("without".to_owned(), format!("{without:.2} ms")),
                ("cp -a of it".to_owned(), format!("{:.0} ms", copied.as_secs_f64() * 1000.0)),
            ],
            value: Some(with - without),
            goal: bounds.map(|(goal, _)| Bound::AtMost(goal)),
            floor: bounds.map(|(_, floor)| Bound::AtMost(floor)),
        }
    };
    Ok(vec![line("until the command runs", 0, Some((10.0, 60.0))), line("full cycle", 1, None)])
}

/// How long it took until the command ran, which says when that was, and until everything was over.
fn cycle_of(words: &[&str]) -> Result<[Duration; 2]> {
    crate::interrupt::check()?;
    let begun = SystemTime::now();
    let output = Caller::default()
        .agentbox(words)?
        .args(["date", "+%s%N"])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()?;
    let whole = begun.elapsed()?;
    let told: u64 = String::from_utf8(output.stdout)?.trim().parse()?;
    let ran = UNIX_EPOCH + Duration::from_nanos(told);
    Ok([ran.duration_since(begun)?, whole])
}

/// The same work inside and outside, in turn.
fn work(who: &str, repository: &Path) -> Result<Vec<Line>> {
    let mut lines = vec![
        beside(who, "git status, warm", repository, &[], STATUS, (1.1, 1.5))?,
        beside(who, "many small writes", repository, &[], WRITES, (1.1, 1.3))?,
    ];
    let cargo = std::env::home_dir().map(|home| home.join(".cargo/bin/cargo"));
    if cargo.is_some_and(|cargo| cargo.exists()) {
        let package = repository.with_file_name("package");
        make_package(&package)?;
        lines.push(beside(who, "cargo build", &package, &["--tools"], BUILD, (1.1, 1.3))?);
        fs::remove_dir_all(&package)?;
    }
    Ok(lines)
}

fn beside(
    who: &str,
    what: &str,
    directory: &Path,
    options: &[&str],
    script: &str,
    (goal, floor): (f64, f64),
) -> Result<Line> {
    let text = directory.display().to_string();
    let home = format!("HOME={}", std::env::var("HOME").unwrap_or_default());
    let mut whole = vec!["-w", &text, "--env", &home];
    whole.extend(options);
    let sandbox = Sandbox::create_with(&Caller::default(), &whole)?;
    let mut inside = sandbox.exec_of(&["sh", "-c", script])?;
    let mut outside = Command::new("sh");
    outside.args(["-c", script]).current_dir(directory);
    let mut times = [Vec::new(), Vec::new()];
    for round in 0..=ROUNDS {
        for (command, times) in [&mut inside, &mut outside].into_iter().zip(&mut times) {
            let time = succeed(command)?;
            times.extend((round > 0).then_some(time));
        }
    }
    let [ours, native] = times.map(|times| median_milliseconds(&times));
    Ok(Line {
        what: format!("{what}, inside under review, {who} (× outside)"),
        measured: vec![
            ("inside".to_owned(), format!("{ours:.1} ms")),
            ("outside".to_owned(), format!("{native:.1} ms")),
        ],
        value: Some(ours / native),
        goal: Some(Bound::AtMost(goal)),
        floor: Some(Bound::AtMost(floor)),
    })
}

/// What was changed is shown, and taken to a branch.
fn take_back(who: &str, repository: &Path, effort: Effort) -> Result<Vec<Line>> {
    let text = repository.display().to_string();
    let sandbox = Sandbox::create_with(&Caller::default(), &["-w", &text])?;
    let step = (effort.repository_files / CHANGED).max(1);
    let change = format!(
        "for i in $(seq 0 {step} {}); do echo changed >> $((i / {FILES_A_DIRECTORY}))/$i; done",
        step * CHANGED - 1
    );
    succeed(&mut sandbox.exec_of(&["sh", "-c", &change])?)?;
    let mut shown = Vec::new();
    let mut taken = Vec::new();
    for round in 0..=ROUNDS {
        // Something new each time, so that nothing is shown from memory alone.
        let again = format!("echo {round} >> 0/0");
        succeed(&mut sandbox.exec_of(&["sh", "-c", &again])?)?;
        let diff = succeed(&mut Caller::default().agentbox(&["diff", &sandbox.id])?)?;
        let branch = format!("bench-{round}");
        let apply =
            succeed(&mut Caller::default().agentbox(&["apply", &sandbox.id, "--branch", &branch])?)?;
        if round > 0 {
            shown.push(diff);
            taken.push(apply);
        }
    }
    let files = effort.repository_files;
    let line = |what: &str, times: &[Duration], goal, floor| {
        let median = median_milliseconds(times);
        Line {
            what: format!("{what} of {CHANGED} changed files of {files}, {who} (ms)"),
            measured: vec![("agentbox".to_owned(), format!("{median:.0} ms"))],
            value: Some(median),
            goal: Some(Bound::AtMost(goal)),
            floor: Some(Bound::AtMost(floor)),
        }
    };
    Ok(vec![line("diff", &shown, 100.0, 300.0), line("apply to a branch", &taken, 150.0, 500.0)])
}

pub(crate) fn make_repository(path: &Path, files: usize) -> Result<()> {
    for number in 0..files {
        let directory = path.join((number / FILES_A_DIRECTORY).to_string());
        if number % FILES_A_DIRECTORY == 0 {
            fs::create_dir_all(&directory)?;
        }
        let lines: String = (0..20).map(|line| format!("line {line} of {number}\n")).collect();
        fs::write(directory.join(number.to_string()), lines)?;
    }
    commit(path)
}

/// A package with many modules and no dependencies.
fn make_package(path: &Path) -> Result<()> {
    const MODULES: usize = 60;
    fs::create_dir_all(path.join("src"))?;
    fs::write(
        path.join("Cargo.toml"),
        "[package]\nname = \"package\"\nversion = \"0.1.0\"\nedition = \"2021\"\n",
    )?;
    fs::write(path.join(".gitignore"), "target\n")?;
    let main: String = (0..MODULES).map(|module| format!("mod m{module};\n")).collect();
    let calls: String = (0..MODULES).map(|module| format!("m{module}::run({module});")).collect();
    fs::write(path.join("src/main.rs"), format!("{main}fn main() {{ {calls} }}\n"))?;
    for module in 0..MODULES {
        let functions: String = (0..30)
            .map(|number| format!("fn f{number}(x: usize) -> Vec<String> {{ (0..x).map(|y| format!(\"{{y}}\")).collect() }}\n"))
            .collect();
        let uses: String = (0..30).map(|number| format!("println!(\"{{:?}}\", f{number}(x));")).collect();
        fs::write(
            path.join(format!("src/m{module}.rs")),
            format!("{functions}pub fn run(x: usize) {{ {uses} }}\n"),
        )?;
    }
    commit(path)
}

fn commit(path: &Path) -> Result<()> {
    let git = |words: &[&str]| {
        // Nothing is tidied up behind our back, while something is measured.
        succeed(Command::new("git").args(["-c", "gc.auto=0"]).args(words).current_dir(path))
    };
    git(&["init", "--quiet"])?;
    git(&["config", "user.name", "bench"])?;
    git(&["config", "user.email", "bench@example.com"])?;
    git(&["add", "--all"])?;
    git(&["commit", "--quiet", "--message", "as it was"])?;
    git(&["gc", "--quiet"])?;
    Ok(())
}
