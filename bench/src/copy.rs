//! Copies into a sandbox and out of it, beside a copy on the same file system: one large file beside `cp -a`, and a tree
//! of small ones beside `tar c | tar x`. What is read is in memory; what is written is new each time, and on disk before
//! the next begins.
//!
//! A virtual machine gives memory back that is free for seconds, and gets it back page by page. So a copy takes the place
//! of the last one, which is removed right before; and the first round, for which there is none, is not counted.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::Result;

use crate::Effort;
use crate::goal::{Bound, Line};
use crate::place::Caller;
use crate::sandbox::{Sandbox, state, succeed};
use crate::statistics::median_milliseconds;

const FILES_A_DIRECTORY: usize = 100;

/// What is copied.
#[derive(Clone, Copy)]
enum Load {
    /// One file of so many MiB.
    File(usize),
    /// A tree of so many files of 1 to 4 KiB.
    Tree(usize),
}

impl Load {
    fn name(self) -> String {
        match self {
            Self::File(mebibytes) => format!("a file of {mebibytes} MiB"),
            Self::Tree(files) => format!("a tree of {files} small files"),
        }
    }

    const fn bounds(self) -> (f64, f64) {
        match self {
            Self::File(_) => (0.6, 0.3),
            Self::Tree(_) => (0.5, 0.25),
        }
    }

    const fn peer(self) -> &'static str {
        match self {
            Self::File(_) => "cp -a",
            Self::Tree(_) => "tar | tar",
        }
    }

    const fn rounds(self) -> usize {
        match self {
            Self::File(_) => 7,
            Self::Tree(_) => 3,
        }
    }

    fn make(self, path: &Path) -> Result<()> {
        let mut bytes = vec![0; 1 << 20];
        rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
        match self {
            Self::File(mebibytes) => {
                let mut file = File::create(path)?;
                (0..mebibytes).try_for_each(|_| file.write_all(&bytes))?;
            }
            Self::Tree(files) => {
                for number in 0..files {
                    let directory = path.join((number / FILES_A_DIRECTORY).to_string());
                    if number % FILES_A_DIRECTORY == 0 {
                        fs::create_dir_all(&directory)?;
                    }
                    // Each size between 1 and 4 KiB, all over the tree.
                    let size = 1024 + number * 31 % 3073;
                    fs::write(directory.join(number.to_string()), &bytes[..size])?;
                }
            }
        }
        Ok(())
    }

    /// The peer's copy of `source` as `target`.
    fn copy(self, source: &Path, target: &Path) -> Command {
        let mut command = match self {
            Self::File(_) => Command::new("cp"),
            Self::Tree(_) => Command::new("sh"),
        };
        match self {
            Self::File(_) => command.arg("-a"),
            Self::Tree(_) => {
                command.args(["-c", "mkdir \"$2\" && tar -C \"$1\" -c . | tar -C \"$2\" -x", "sh"])
            }
        };
        command.arg(source).arg(target);
        command
    }
}

pub(crate) fn measure(who: &str, effort: Effort) -> Result<Vec<Line>> {
    let mut lines = Vec::new();
    for load in [Load::File(effort.copied_mebibytes), Load::Tree(effort.copied_files)] {
        lines.extend(measure_load(load, who)?);
    }
    Ok(lines)
}

fn measure_load(load: Load, who: &str) -> Result<[Line; 2]> {
    let sandbox = Sandbox::create(&Caller::default())?;
    let files = std::env::temp_dir();
    let [source, theirs, out] = ["source", "theirs", "out"].map(|name| files.join(name));
    let inside = sandbox.kept(&state()?).join("workspace/copied");
    let name = format!("{}:/workspace/copied", sandbox.id);
    load.make(&source)?;
    let text = |path: &PathBuf| path.display().to_string();
    let (from, to) = (text(&source), text(&out));
    let caller = Caller::default();
    let copies: [[(Command, &Path); 2]; 2] = [
        [(caller.agentbox(&["cp", &from, &name])?, &inside), (load.copy(&source, &theirs), &theirs)],
        [(caller.agentbox(&["cp", &name, &to])?, &out), (load.copy(&source, &theirs), &theirs)],
    ];
    let mut lines = Vec::new();
    for (direction, mut pair) in ["into a sandbox", "out of a sandbox"].into_iter().zip(copies) {
        let mut times = [Vec::new(), Vec::new()];
        for round in 0..=load.rounds() {
            for ((command, target), times) in pair.iter_mut().zip(&mut times) {
                let time = copy(command, target)?;
                times.extend((round > 0).then_some(time));
            }
        }
        lines.push(line(load, direction, who, &times));
    }
    succeed(Command::new("diff").arg("-r").args([&source, &out]))?;
    for path in [&source, &theirs, &out] {
        remove(path)?;
    }
    lines.try_into().map_err(|_| anyhow::anyhow!("two directions have two lines"))
}

fn copy(command: &mut Command, target: &Path) -> Result<Duration> {
    rustix::fs::syncfs(File::open(std::env::temp_dir())?)?;
    remove(target)?;
    succeed(command)
}

fn line(load: Load, direction: &str, who: &str, times: &[Vec<Duration>; 2]) -> Line {
    let [ours, theirs] = [0, 1].map(|index| median_milliseconds(&times[index]));
    let (goal, floor) = load.bounds();
    Line {
        what: format!("cp of {} {direction}, {who} (speed, × {})", load.name(), load.peer()),
        measured: vec![
            ("agentbox".to_owned(), format!("{ours:.0} ms")),
            (load.peer().to_owned(), format!("{theirs:.0} ms")),
        ],
        value: Some(theirs / ours),
        goal: Some(Bound::AtLeast(goal)),
        floor: Some(Bound::AtLeast(floor)),
    }
}

fn remove(path: &Path) -> Result<()> {
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => Ok(fs::remove_dir_all(path)?),
        Ok(_) => Ok(fs::remove_file(path)?),
        Err(_) => Ok(()),
    }
}
