//! Images: what a start from one costs beside a start from the host's own system, and how fast a layer is unpacked
//! beside `tar -x` of the same file. Both are on disk before the next begins.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result};
use rustix::process::geteuid;

use crate::Effort;
use crate::goal::{Bound, Line};
use crate::place::Caller;
use crate::sandbox::{state, succeed};
use crate::statistics::median_milliseconds;

const SMALL: &str = "bench/small:1";
const LARGE: &str = "bench/large:1";
const BASE: &str = "bench/base:1";
const SECOND: &str = "bench/second:1";
/// What a second image has besides its base.
const DIFFERENCE: usize = 1_000_000;
/// Files of the large layer, each of 100 kB: 200 MB.
const FILES: usize = 2000;
const FILE: usize = 100_000;
const ROUNDS: usize = 5;

pub(crate) fn measure(who: &str, effort: Effort) -> Result<Vec<Line>> {
    let caller = Caller::default();
    let place = std::env::temp_dir().join("images");
    fs::create_dir_all(&place)?;
    let mut lines = vec![start(&caller, &place, who, effort)?];
    // Where files belong to subuids nobody but a namespace of theirs removes them between two rounds.
    if geteuid().is_root() || !has_range(who) {
        lines.push(unpack(&caller, &place, who)?);
    }
    lines.push(second(&caller, &place, who)?);
    for name in [SMALL, LARGE, BASE, SECOND] {
        let _ = succeed(&mut caller.agentbox(&["image", "rm", name])?);
    }
    succeed(&mut caller.agentbox(&["image", "gc"])?)?;
    fs::remove_dir_all(&place)?;
    Ok(lines)
}

fn has_range(who: &str) -> bool {
    fs::read_to_string("/etc/subuid")
        .unwrap_or_default()
        .lines()
        .any(|line| line.starts_with(&format!("{who}:")))
}

/// `run` of a program without a libc, in an image and in the host's own system.
fn start(caller: &Caller, place: &Path, who: &str, effort: Effort) -> Result<Line> {
    let root = place.join("root");
    fs::create_dir_all(root.join("bin"))?;
    fs::copy("/bin/busybox", root.join("bin/true"))?;
    succeed(&mut caller.agentbox(&["image", "import", &root.display().to_string(), SMALL])?)?;
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..effort.cycles {
        times[0].push(succeed(&mut caller.agentbox(&["run", "--", "/bin/busybox", "true"])?)?);
        times[1].push(succeed(&mut caller.agentbox(&["run", "--image", SMALL, "--", "/bin/true"])?)?);
    }
    let [host, image] = [0, 1].map(|index| median_milliseconds(&times[index]));
    Ok(Line {
        what: format!("start from an image, {who} (ms over the host's root)"),
        measured: vec![
            ("host".to_owned(), format!("{host:.2} ms")),
            ("image".to_owned(), format!("{image:.2} ms")),
        ],
        value: Some(image - host),
        goal: Some(Bound::AtMost(1.0)),
        floor: Some(Bound::AtMost(3.0)),
    })
}

/// A layer of 200 MB by gzip: taken out of the store's blob, and by tar.
fn unpack(caller: &Caller, place: &Path, who: &str) -> Result<Line> {
    let tree = place.join("tree");
    make(&tree)?;
    let tar = place.join("tree.tar.gz");
    let mut command = Command::new("tar");
    succeed(command.arg("-C").arg(&tree).arg("-czf").arg(&tar).arg("."))?;
    fs::remove_dir_all(&tree)?;
    succeed(&mut caller.agentbox(&["image", "import", &tar.display().to_string(), LARGE])?)?;
    let layer = newest(&state()?.join("images/layers"))?;
    let out = place.join("out");
    let mut times: [Vec<Duration>; 2] = [Vec::new(), Vec::new()];
    for _ in 0..ROUNDS {
        fs::remove_dir_all(&layer)?;
        rustix::fs::syncfs(File::open(place)?)?;
        // What is missing is unpacked at the start, which takes a few milliseconds more.
        times[0].push(succeed(&mut caller.agentbox(&["run", "--image", LARGE, "--", "/bin/true"])?)?);
        fs::create_dir(&out)?;
        let mut command = Command::new("sh");
        command.args(["-c", "tar -xzf \"$1\" -C \"$2\" && sync -f \"$2\"", "sh"]).arg(&tar).arg(&out);
        times[1].push(succeed(&mut command)?);
        fs::remove_dir_all(&out)?;
    }
    let [ours, theirs] = [0, 1].map(|index| median_milliseconds(&times[index]));
    Ok(Line {
        what: format!("unpack of a layer of 200 MB, {who} (speed, × tar -x)"),
        measured: vec![
            ("agentbox".to_owned(), format!("{ours:.0} ms")),
            ("tar".to_owned(), format!("{theirs:.0} ms")),
        ],
        value: Some(theirs / ours),
        goal: Some(Bound::AtLeast(1.0)),
        floor: Some(Bound::AtLeast(0.8)),
    })
}

/// Text that gzip makes about half as large, as programs are, and a program to start.
fn make(tree: &Path) -> Result<()> {
    let mut noise = vec![0; FILE];
    for number in 0..FILES {
        let directory = tree.join((number / 100).to_string());
        if number % 100 == 0 {
            fs::create_dir_all(&directory)?;
        }
        rustix::rand::getrandom(&mut noise, rustix::rand::GetRandomFlags::empty())?;
        let text: Vec<u8> = noise.iter().map(|byte| b'a' + (byte & 15)).collect();
        File::create(directory.join(number.to_string()))?.write_all(&text)?;
    }
    fs::create_dir_all(tree.join("bin"))?;
    fs::copy("/bin/busybox", tree.join("bin/true"))?;
    Ok(())
}

/// An image over the base of another, made by a commit: the disk has only the difference more.
fn second(caller: &Caller, place: &Path, who: &str) -> Result<Line> {
    let root = place.join("base");
    fs::create_dir_all(root.join("bin"))?;
    fs::copy("/bin/busybox", root.join("bin/busybox"))?;
    let mut noise = vec![0; FILE];
    for number in 0..FILES / 20 {
        rustix::rand::getrandom(&mut noise, rustix::rand::GetRandomFlags::empty())?;
        fs::write(root.join(number.to_string()), &noise)?;
    }
    succeed(&mut caller.agentbox(&["image", "import", &root.display().to_string(), BASE])?)?;
    let store = state()?.join("images");
    let before = on_disk(&store)?;
    succeed(&mut caller.agentbox(&["create", "--name", "bench-second", "--image", BASE])?)?;
    let script = format!("/bin/busybox head -c {DIFFERENCE} /dev/urandom > /home/agent/new");
    let words = ["exec", "bench-second", "--", "/bin/busybox", "sh", "-c", &script];
    let made = succeed(&mut caller.agentbox(&words)?)
        .and_then(|_| succeed(&mut caller.agentbox(&["commit", "bench-second", SECOND])?));
    succeed(&mut caller.agentbox(&["rm", "--force", "bench-second"])?)?;
    made?;
    let grown = on_disk(&store)?.saturating_sub(before);
    // The difference is there twice: as it goes out, and unpacked.
    let times = grown as f64 / (2 * DIFFERENCE) as f64;
    Ok(Line {
        what: format!(
            "a second image on the same base, {who} (disk grown, × what it has besides, packed and unpacked)"
        ),
        measured: vec![
            ("base".to_owned(), format!("{:.1} MB", before as f64 / 1e6)),
            ("grown by".to_owned(), format!("{:.2} MB", grown as f64 / 1e6)),
        ],
        value: Some(times),
        goal: Some(Bound::AtMost(1.1)),
        floor: Some(Bound::AtMost(1.5)),
    })
}

/// How many bytes a directory takes, as du counts.
fn on_disk(path: &Path) -> Result<u64> {
    let output = Command::new("du").args(["--summarize", "--block-size=1"]).arg(path).output()?;
    let text = String::from_utf8(output.stdout)?;
    text.split_whitespace().next().context("du says nothing")?.parse().context("du says no number")
}

/// The layer that was made last.
fn newest(layers: &Path) -> Result<PathBuf> {
    let directories = fs::read_dir(layers)?.flatten().map(|entry| entry.path()).filter(|path| path.is_dir());
    let made =
        |path: &PathBuf| fs::metadata(path.with_extension("json")).and_then(|facts| facts.modified()).ok();
    directories.max_by_key(made).context("there is no layer")
}
