//! `agentbox doctor`: what this machine grants a sandbox, as a table for people or as JSON for programs.

use std::io::{self, IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use engine::Engine;
use engine::doctor::{Checkup, Finding, Health};

use crate::arguments::Doctor;
use crate::failure::{Failure, escape};
use crate::output::describe;

/// The exit code where no sandbox starts with every wall that it needs.
const NOT_SOUND: u8 = 1;
/// Until then nobody wonders what takes so long.
const SILENCE: Duration = Duration::from_secs(1);

pub(crate) fn doctor(arguments: &Doctor) -> Result<ExitCode, Failure> {
    let engine = Engine::open()?;
    let begun = Instant::now();
    let mut progress = |name: &str| {
        if begun.elapsed() > SILENCE {
            let _ = writeln!(io::stderr(), "probing: {name}");
        }
    };
    let checkup = Checkup::of_this_machine(&engine, &mut progress)?;
    let text = if arguments.json {
        serde_json::to_string_pretty(&checkup)
            .map_err(|error| Failure::new("cannot write JSON").cause(error))?
            + "\n"
    } else {
        let colours = io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        table(&checkup, if colours { Palette::Terminal } else { Palette::Plain })
    };
    io::stdout()
        .write_all(text.as_bytes())
        .map_err(|error| Failure::new("cannot write to stdout").cause(error))?;
    Ok(if checkup.is_sound() { ExitCode::SUCCESS } else { ExitCode::from(NOT_SOUND) })
}

/// Whether states are shown in colour.
#[derive(Clone, Copy)]
enum Palette {
    Plain,
    Terminal,
}

impl Palette {
    fn state(self, state: Health) -> String {
        let (word, colour) = match state {
            Health::Ok => ("ok", 32),
            Health::Weaker => ("weaker", 33),
            Health::Missing => ("missing", 31),
        };
        match self {
            Self::Plain => format!("{word:<9}"),
            Self::Terminal => format!("\u{1b}[{colour}m{word:<9}\u{1b}[0m"),
        }
    }
}

fn table(checkup: &Checkup, palette: Palette) -> String {
    let Checkup { version, kernel, caller, .. } = checkup;
    let mut text = format!("agentbox {version} on Linux {} as {}\n\n", escape(kernel), escape(&caller.name));
    let width = checkup.probes.iter().map(|finding| finding.name.len()).max().unwrap_or_default();
    let mut fixes: Vec<&str> = Vec::new();
    for finding in &checkup.probes {
        let Finding { name, detail, fix, .. } = finding;
        text.push_str(&format!("{} {name:<width$} {}\n", palette.state(finding.state), escape(detail)));
        // One command may mend several things; it is shown once.
        if let Some(fix) = fix.as_deref().filter(|fix| !fixes.contains(fix)) {
            text.push_str(&paste(fix));
            fixes.push(fix);
        }
    }
    if !checkup.report.is_empty() {
        text.push_str("\nthe walls of that sandbox\n\n");
        checkup.report.iter().for_each(|line| text.push_str(&describe(line)));
    }
    text.push_str(if checkup.is_sound() {
        "\na sandbox starts here with every wall that is never optional\n"
    } else {
        "\nno sandbox starts here: mend what is missing above, from the top\n"
    });
    text
}

/// The command that mends a finding, below it and line by line as it can be pasted.
fn paste(fix: &str) -> String {
    let labels = std::iter::once("fix:").chain(std::iter::repeat(""));
    fix.lines().zip(labels).map(|(line, label)| format!("{label:>9} {}\n", escape(line))).collect()
}

#[cfg(test)]
mod tests {
    use engine::doctor::Caller;

    use super::*;

    #[test]
    fn the_table_is_aligned_and_shows_each_line_of_a_fix() {
        let finding = |name, state, fix: Option<&str>| Finding {
            name,
            state,
            detail: "detail\u{1b}[2J".to_owned(),
            fix: fix.map(str::to_owned),
        };
        let checkup = Checkup {
            version: "0.1.0",
            kernel: "6.1".to_owned(),
            caller: Caller { uid: 1, gid: 1, name: "ann".to_owned() },
            probes: vec![
                finding("kernel", Health::Ok, None),
                finding("fresh-proc", Health::Missing, Some("one\n  two")),
                finding("again", Health::Weaker, Some("one\n  two")),
            ],
            report: Vec::new(),
        };
        let expected = "\
agentbox 0.1.0 on Linux 6.1 as ann

ok        kernel     detail\\u{1b}[2J
missing   fresh-proc detail\\u{1b}[2J
     fix: one
            two
weaker    again      detail\\u{1b}[2J

no sandbox starts here: mend what is missing above, from the top
";
        assert_eq!(table(&checkup, Palette::Plain), expected);
        assert!(table(&checkup, Palette::Terminal).contains("\u{1b}[31mmissing  \u{1b}[0m fresh-proc"));
    }
}
