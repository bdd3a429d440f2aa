//! Choosing from changes piece by piece, as people know it from git.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufRead as _, Write as _};

use workspace::Change;

use super::{pager, show};
use crate::failure::Failure;

/// What somebody answers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Answer {
    Yes,
    No,
    /// This one and all that follow in the file.
    All,
    /// Neither this one nor any that follows in the file.
    Done,
    /// Nothing more at all.
    Quit,
}

const HELP: &str = "\
y - take this piece
n - leave it
a - take it and all that follow in this file
d - leave it and all that follow in this file
q - leave it and everything that follows
? - this help
";

/// Asks for each piece: those that were chosen, by file; all of a file that has none.
pub(super) fn pieces(changes: &[Change]) -> Result<BTreeMap<Vec<u8>, BTreeSet<usize>>, Failure> {
    let mut chosen = BTreeMap::new();
    // The questions are on stderr.
    let colour = pager::colour_of(&io::stderr());
    for change in changes {
        say(&show::file_head(change, colour))?;
        if change.hunks.is_empty() {
            match ask("Take this change")? {
                Answer::Yes | Answer::All => drop(chosen.insert(change.path.clone(), BTreeSet::new())),
                Answer::No | Answer::Done => {}
                Answer::Quit => return Ok(chosen),
            }
            continue;
        }
        let mut taken = BTreeSet::new();
        let mut rest = None;
        for (number, hunk) in change.hunks.iter().enumerate() {
            if rest.is_none() {
                say(&show::piece(hunk, colour))?;
                match ask("Take this piece")? {
                    Answer::Yes => drop(taken.insert(number)),
                    Answer::No => {}
                    answer => rest = Some(answer),
                }
            }
            if rest == Some(Answer::All) {
                taken.insert(number);
            }
        }
        if !taken.is_empty() {
            chosen.insert(change.path.clone(), taken);
        }
        if rest == Some(Answer::Quit) {
            break;
        }
    }
    Ok(chosen)
}

fn ask(what: &str) -> Result<Answer, Failure> {
    loop {
        say(&format!("{what} [y,n,a,d,q,?]? "))?;
        let mut line = String::new();
        let read = io::stdin().lock().read_line(&mut line);
        let count = read.map_err(|error| Failure::new("cannot read an answer").cause(error))?;
        // Whoever says nothing more takes nothing more.
        if count == 0 {
            return Ok(Answer::Quit);
        }
        match line.trim() {
            "y" => return Ok(Answer::Yes),
            "n" => return Ok(Answer::No),
            "a" => return Ok(Answer::All),
            "d" => return Ok(Answer::Done),
            "q" => return Ok(Answer::Quit),
            _ => say(HELP)?,
        }
    }
}

fn say(text: &str) -> Result<(), Failure> {
    let mut stderr = io::stderr().lock();
    stderr
        .write_all(text.as_bytes())
        .and_then(|()| stderr.flush())
        .map_err(|error| Failure::new("cannot ask").cause(error))
}
