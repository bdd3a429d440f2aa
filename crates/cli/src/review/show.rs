//! Changes for a person. Names, lines and messages are an enemy's: all of them are made inert here.

use std::collections::BTreeMap;

use workspace::{Change, Hunk, Mode, Review, Reviewed, Risk, Status, inert, inert_name};

/// The mode of a file that is nothing special.
const ORDINARY: &str = "100644";

/// Whether the reader sees colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Colour {
    Seen,
    Unseen,
}

#[derive(Clone, Copy)]
enum Tint {
    Bold,
    Red,
    Green,
    Yellow,
    Cyan,
}

impl Colour {
    fn paint(self, tint: Tint, text: &str) -> String {
        let code = match tint {
            Tint::Bold => 1,
            Tint::Red => 31,
            Tint::Green => 32,
            Tint::Yellow => 33,
            Tint::Cyan => 36,
        };
        match self {
            Self::Seen => format!("\u{1b}[{code}m{text}\u{1b}[m"),
            Self::Unseen => text.to_owned(),
        }
    }
}

/// What it is, how much, and what to look at.
pub(super) fn head(review: &Review, colour: Colour) -> String {
    let mut text = format!("tree {}\nbase {}", review.tree, review.base);
    if let Some(commit) = &review.base_commit {
        text.push_str(&format!(" (commit {commit})"));
    }
    if review.mode == Mode::Direct {
        text.push_str(
            "\nyour directory itself was worked on: what you have changed since the start is shown, too",
        );
    }
    let sum = |lines: fn(&Change) -> Option<u64>| -> u64 {
        review.files.iter().filter_map(|file| lines(&file.change)).sum()
    };
    text.push_str(&format!(
        "\n{} changed, {} lines added, {} removed\n",
        super::count(review.files.len()),
        sum(|change| change.added),
        sum(|change| change.removed)
    ));
    for file in review.files.iter().filter(|file| file.conflict) {
        let path = inert_name(&file.change.path);
        text.push_str(&colour.paint(Tint::Red, &format!("conflict  {path}: you have changed it, too\n")));
    }
    text.push_str(&risks(&review.files, colour, ""));
    text.push_str(&named(review, colour));
    for remark in &review.remarks {
        let line = format!("left out  {}: {}\n", inert_name(&remark.path), remark.why.reason());
        text.push_str(&colour.paint(Tint::Yellow, &line));
    }
    for (commit, files) in &review.commits {
        let (author, subject) = (inert_name(&commit.author), inert_name(&commit.subject));
        let id = commit.id.get(..12).unwrap_or(&commit.id);
        text.push_str(&format!("commit    {} {subject} ({author})\n", colour.paint(Tint::Yellow, id)));
        text.push_str(&risks(files, colour, "  "));
    }
    if review.is_cut {
        text.push_str("there are more lines than are shown, and than were looked at\n");
    }
    text
}

fn risks(files: &[Reviewed], colour: Colour, indent: &str) -> String {
    let mut text = String::new();
    for file in files {
        for risk in &file.risks {
            let path = inert_name(&file.change.path);
            let kind = if risk.code.is_note() { "note" } else { "risk" };
            let line = format!("{indent}{kind}      {path}: {} ({})\n", risk.reason, risk.code.name());
            text.push_str(&colour.paint(if risk.code.is_note() { Tint::Cyan } else { Tint::Red }, &line));
        }
    }
    text
}

/// What runs or misleads, without notes.
pub(super) fn only_risks(files: &[Reviewed], colour: Colour) -> String {
    let mut text = String::new();
    for file in files {
        for risk in file.risks.iter().filter(|risk| !risk.code.is_note()) {
            text.push_str(&colour.paint(Tint::Red, &risk_line(&file.change.path, risk)));
        }
    }
    text
}

/// What runs by its name where git does not look; of what is in one directory, the first few.
pub(super) fn named(review: &Review, colour: Colour) -> String {
    const FEW: usize = 3;
    let mut text = String::new();
    let mut within: BTreeMap<&[u8], usize> = BTreeMap::new();
    for named in &review.named {
        if let Some(directory) = &named.within {
            let count = within.entry(directory).or_default();
            *count += 1;
            if *count > FEW {
                continue;
            }
        }
        text.push_str(&colour.paint(Tint::Red, &risk_line(&named.path, &named.risk)));
    }
    for (directory, count) in within.into_iter().filter(|(_, count)| *count > FEW) {
        let line = format!(
            "risk      {}: {} more files in it run by their names, and git does not look there\n",
            inert_name(directory),
            count - FEW
        );
        text.push_str(&colour.paint(Tint::Red, &line));
    }
    text
}

fn risk_line(path: &[u8], risk: &Risk) -> String {
    format!("risk      {}: {} ({})\n", inert_name(path), risk.reason, risk.code.name())
}

/// The files only.
pub(super) fn names(review: &Review) -> String {
    review.files.iter().map(|file| format!("{}\n", inert_name(&file.change.path))).collect()
}

/// How much of each file.
pub(super) fn stat(review: &Review) -> String {
    let line = |file: &Reviewed| {
        let change = &file.change;
        let much = match (change.added, change.removed) {
            (Some(added), Some(removed)) => format!("+{added} -{removed}"),
            _ => "binary".to_owned(),
        };
        format!("{:<9} {:<12} {}\n", change.status.name(), much, title(change))
    };
    let mut text = "\n".to_owned();
    text.extend(review.files.iter().map(line));
    text
}

fn title(change: &Change) -> String {
    match &change.old_path {
        Some(old) => format!("{} => {}", inert_name(old), inert_name(&change.path)),
        None => inert_name(&change.path),
    }
}

/// All lines of all files.
pub(super) fn lines(review: &Review, colour: Colour) -> String {
    let mut text = String::new();
    for file in &review.files {
        text.push('\n');
        text.push_str(&file_head(&file.change, colour));
        for hunk in &file.change.hunks {
            text.push_str(&piece(hunk, colour));
        }
    }
    text
}

/// What a file was and is.
pub(super) fn file_head(change: &Change, colour: Colour) -> String {
    let mut text = colour.paint(Tint::Bold, &format!("{} {}", change.status.name(), title(change)));
    text.push('\n');
    match change.status {
        Status::Deleted => {}
        Status::Added if change.mode == ORDINARY => {}
        Status::Added => text.push_str(&format!("mode {}\n", change.mode)),
        _ if change.old_mode == change.mode => {}
        _ => text.push_str(&format!("mode {} => {}\n", change.old_mode, change.mode)),
    }
    if change.is_binary() {
        text.push_str("binary, not shown\n");
    }
    text
}

/// One piece of a file.
pub(super) fn piece(hunk: &Hunk, colour: Colour) -> String {
    let (old, new) = (hunk.old, hunk.new);
    let head = format!("@@ -{},{} +{},{} @@", old.0, old.1, new.0, new.1);
    let mut text = colour.paint(Tint::Cyan, &head);
    text.push('\n');
    for line in &hunk.lines {
        // A carriage return before the end is a line's end on some machines, and seen as one.
        let shown = inert(line);
        match line.first() {
            Some(b'+') => text.push_str(&colour.paint(Tint::Green, &shown)),
            Some(b'-') => text.push_str(&colour.paint(Tint::Red, &shown)),
            _ => text.push_str(&shown),
        }
        text.push('\n');
    }
    text
}
