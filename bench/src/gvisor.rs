//! gVisor's sandboxes: a full cycle beside `runsc run` of the same bundle, and of one with the same programs and nothing else; an
//! exec beside `runsc exec`; git in a reviewed workspace beside the same outside. runsc alone is measured as root, who can start
//! it without us.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, bail};
use rustix::process::geteuid;

use crate::Effort;
use crate::alone::Alone;
use crate::contender::make_bundle;
use crate::exec::Client;
use crate::goal::{Bound, Line};
use crate::place::Caller;
use crate::review::make_repository;
use crate::sandbox::{Sandbox, quiet, succeed};
use crate::statistics::median_milliseconds;

/// Where tests/setup.sh puts what it builds; last in the PATH of whoever measures, so that other peers stay the distribution's.
pub(crate) const TOOLS: &str = "/usr/local/libexec/agentbox-tests";
const BACKEND: [&str; 2] = ["--backend", "gvisor"];
/// What runsc need not do, as it is not asked to do it for us either; its own network is not compared.
const OPTIONS: [&str; 5] =
    ["--network=none", "--overlay2=none", "--host-settings=ignore", "--platform=systrap", "--ignore-cgroups"];
const ROUNDS: usize = 5;
/// So many times as many cycles as elsewhere.
const TIMES: usize = 4;
/// Before each: `runsc run` ends before its kernel's memory is gone, and whoever comes next would pay for it.
pub(crate) const PAUSE: Duration = Duration::from_millis(50);
/// Once before it counts: what is warm is what is asked for.
const STATUS: &str = "git status --porcelain > /dev/null && for i in 1 2 3; do git status --porcelain > /dev/null || exit 1; done";
const STATUSES: f64 = 4.0;

pub(crate) fn measure(who: &str, effort: Effort) -> Result<Vec<Line>> {
    let Some(runsc) = find() else {
        eprintln!("note: there is no runsc to measure with");
        return Ok(Vec::new());
    };
    let mut lines = vec![cycles(who, effort, &runsc)?, execs(who, effort, &runsc)?];
    lines.push(status(who, effort)?);
    Ok(lines)
}

fn find() -> Option<PathBuf> {
    let usual = ["/usr/local/bin", "/usr/bin"].map(Path::new);
    let mut directories = std::iter::once(Path::new(TOOLS)).chain(usual);
    directories.find_map(|directory| Some(directory.join("runsc")).filter(|path| path.is_file()))
}

fn cycles(who: &str, effort: Effort, runsc: &Path) -> Result<Line> {
    let bundle = std::env::temp_dir().join("bundle-gvisor");
    let program = ["/bin/true"];
    let alone = if geteuid().is_root() { Some(Alone::new(&BACKEND, &program)?) } else { None };
    if alone.is_some() {
        make_bundle(&bundle, &program)?;
    }
    let (mut with_us, mut same, mut bare) = (Vec::new(), Vec::new(), Vec::new());
    // One cycle differs from the next by more than is asked about.
    let rounds = if alone.is_some() { TIMES * effort.cycles } else { effort.cycles };
    for round in 0..=rounds {
        std::thread::sleep(PAUSE);
        let mut command = Caller::default().agentbox(&["run", BACKEND[0], BACKEND[1], "--", program[0]])?;
        let time = succeed(&mut command)?;
        with_us.extend((round > 0).then_some(time));
        if let Some(alone) = &alone {
            let time = alone.run()?;
            same.extend((round > 0).then_some(time));
            std::thread::sleep(PAUSE);
            let mut command = Command::new(runsc);
            command.args(OPTIONS).arg("run").arg("--bundle").arg(&bundle).arg(format!("bench-{round}"));
            let time = succeed(&mut command)?;
            bare.extend((round > 0).then_some(time));
        }
    }
    alone.map_or(Ok(()), Alone::remove)?;
    let _ = std::fs::remove_dir_all(&bundle);
    let what = format!("gVisor, full cycle, {who} (× runsc run of the same bundle)");
    let others = [("the same bundle", same.as_slice()), ("a bare one", bare.as_slice())];
    Ok(compared(&what, &with_us, &others, (1.0, 1.15)))
}

fn execs(who: &str, effort: Effort, runsc: &Path) -> Result<Line> {
    let sandbox = Sandbox::create_with(&Caller::default(), &BACKEND)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let times = runtime.block_on(async {
        let client = Client::connect(&sandbox)?;
        client.ask().await?;
        let mut times = Vec::new();
        for _ in 0..effort.cycles {
            times.push(client.ask().await?.1);
        }
        anyhow::Ok(times)
    })?;
    sandbox.remove()?;
    let alone = if geteuid().is_root() { runsc_execs(effort, runsc)? } else { Vec::new() };
    let value = median_milliseconds(&times);
    let mut measured = vec![("agentbox".to_owned(), format!("{value:.2} ms"))];
    if !alone.is_empty() {
        measured.push(("runsc exec".to_owned(), format!("{:.2} ms", median_milliseconds(&alone))));
    }
    Ok(Line {
        what: format!("gVisor, exec in a running sandbox, {who} (ms)"),
        measured,
        value: Some(value),
        goal: Some(Bound::AtMost(6.0)),
        floor: Some(Bound::AtMost(8.0)),
    })
}

/// `runsc exec` of /bin/true in a container of its own.
fn runsc_execs(effort: Effort, runsc: &Path) -> Result<Vec<Duration>> {
    const NAME: &str = "bench-exec";
    let bundle = std::env::temp_dir().join("bundle-gvisor-exec");
    make_bundle(&bundle, &["/bin/sleep", "600"])?;
    let runsc_of = |words: &[&str]| {
        let mut command = Command::new(runsc);
        command.args(OPTIONS).args(words);
        command
    };
    let mut start = runsc_of(&["run", "--detach", "--bundle"]);
    if !quiet(start.arg(&bundle).arg(NAME)).status()?.success() {
        bail!("runsc run --detach failed");
    }
    let mut times = Vec::new();
    let mut failed = None;
    for round in 0..=effort.cycles {
        match succeed(&mut runsc_of(&["exec", NAME, "/bin/true"])) {
            Ok(time) => times.extend((round > 0).then_some(time)),
            Err(error) => failed = Some(error),
        }
    }
    let _ = quiet(&mut runsc_of(&["delete", "--force", NAME])).status();
    let _ = std::fs::remove_dir_all(&bundle);
    failed.map_or(Ok(times), Err)
}

fn status(who: &str, effort: Effort) -> Result<Line> {
    let repository = std::env::temp_dir().join("repository-gvisor");
    make_repository(&repository, effort.repository_files)?;
    let text = repository.display().to_string();
    let options = [BACKEND[0], BACKEND[1], "-w", &text];
    let sandbox = Sandbox::create_with(&Caller::default(), &options)?;
    let (mut inside, mut outside) = (Vec::new(), Vec::new());
    for round in 0..=ROUNDS {
        let time = succeed(&mut sandbox.exec_of(&["sh", "-c", STATUS])?)?;
        inside.extend((round > 0).then_some(time));
        let mut native = Command::new("sh");
        let time = succeed(native.args(["-c", STATUS]).current_dir(&repository))?;
        outside.extend((round > 0).then_some(time));
    }
    sandbox.remove()?;
    std::fs::remove_dir_all(&repository)?;
    let [ours, native] = [&inside, &outside].map(|times| median_milliseconds(times) / STATUSES);
    Ok(Line {
        what: format!(
            "gVisor, git status of {} files under review, {who} (× native)",
            effort.repository_files
        ),
        measured: vec![
            ("inside".to_owned(), format!("{ours:.0} ms")),
            ("outside".to_owned(), format!("{native:.0} ms")),
        ],
        value: Some(ours / native),
        goal: Some(Bound::AtMost(5.0)),
        floor: Some(Bound::AtMost(15.0)),
    })
}

/// Beside others, of whom the first is what counts.
fn compared(
    what: &str,
    ours: &[Duration],
    others: &[(&str, &[Duration])],
    (goal, floor): (f64, f64),
) -> Line {
    let value = median_milliseconds(ours);
    let mut measured = vec![("agentbox".to_owned(), format!("{value:.1} ms"))];
    let medians: Vec<(&str, f64)> = others
        .iter()
        .filter(|(_, times)| !times.is_empty())
        .map(|(name, times)| (*name, median_milliseconds(times)))
        .collect();
    measured.extend(medians.iter().map(|(name, time)| ((*name).to_owned(), format!("{time:.1} ms"))));
    let ratio = medians.first().map(|(_, time)| value / time);
    Line {
        what: what.to_owned(),
        measured,
        value: ratio,
        goal: ratio.map(|_| Bound::AtMost(goal)),
        floor: ratio.map(|_| Bound::AtMost(floor)),
    }
}
