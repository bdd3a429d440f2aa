//! What git would ignore of a layer: asked with the rules that hold inside, which are the layer's own, or else the base's.

use rustix::io::Errno;

use super::{Walk, joined};
use crate::error::ReviewError;
use crate::ignore::Ignore;
use crate::layer::{Directory, Entry, Kind};

/// A file of rules is no longer.
const LONGEST_RULES: u64 = 1 << 20;

impl Walk<'_> {
    /// Which of a directory's entries git would ignore; those that it has already it does not.
    pub(super) fn ignored(
        &mut self,
        directory: &Directory,
        path: &[u8],
        entries: &[(Vec<u8>, Entry)],
    ) -> Result<Vec<bool>, ReviewError> {
        let is_new: Vec<bool> = entries.iter().map(|(path, entry)| self.is_new(path, entry)).collect();
        if !is_new.contains(&true) {
            return Ok(vec![false; entries.len()]);
        }
        self.rules_for(path, Some(directory))?;
        let mut asked: Vec<&[u8]> = Vec::new();
        for ((path, entry), _) in entries.iter().zip(&is_new).filter(|(_, is_new)| **is_new) {
            if matches!(entry.kind, Kind::Directory) {
                // Some rules are for directories only, and git looks.
                self.staging.directory(path)?;
            }
            asked.push(path);
        }
        if self.ignore.is_none() {
            self.ignore = Some(Ignore::start(self.git, self.staging.path())?);
        }
        let answers = self.ignore.as_mut().map_or_else(|| Ok(Vec::new()), |ignore| ignore.ask(&asked))?;
        let mut answers = answers.into_iter();
        Ok(is_new.into_iter().map(|is_new| is_new && answers.next().unwrap_or(false)).collect())
    }

    fn is_new(&self, path: &[u8], entry: &Entry) -> bool {
        let is_known = |path: &[u8]| self.base.listing.get(path).is_some() || self.also_known.contains(path);
        match entry.kind {
            Kind::Whiteout => false,
            Kind::Directory => {
                let mut bound = path.to_vec();
                bound.push(b'/');
                let after = self.also_known.range(bound.clone()..).next();
                self.base.listing.below(path).is_empty()
                    && self.base.listing.get(path).is_none_or(|entry| entry.mode != "160000")
                    && !after.is_some_and(|path| path.starts_with(&bound))
            }
            Kind::File | Kind::Link | Kind::Special => !is_known(path),
        }
    }

    /// Puts the rules of a directory and of those above it where git looks for them.
    fn rules_for(&mut self, path: &[u8], held: Option<&Directory>) -> Result<(), ReviewError> {
        if self.ruled.contains(path) {
            return Ok(());
        }
        if !path.is_empty() {
            self.rules_for(crate::staging::above(path), None)?;
        }
        self.ruled.insert(path.to_vec());
        let rule = joined(path, b".gitignore");
        let from_layer = match held {
            Some(directory) => directory.file(b".gitignore"),
            None => self.top.file(&rule),
        };
        match from_layer {
            Ok((file, _)) => {
                let copied = self.staging.file(&rule, &file, false, LONGEST_RULES)?;
                if copied > LONGEST_RULES {
                    return Err(ReviewError::TooMuch { what: "bytes of rules", most: LONGEST_RULES });
                }
                Ok(())
            }
            // One that is a link counts for nothing, and one that is gone neither.
            Err(Errno::NOENT) => self.rule_of_the_base(&rule),
            Err(_) => Ok(()),
        }
    }

    fn rule_of_the_base(&mut self, rule: &[u8]) -> Result<(), ReviewError> {
        if self.found.removed.contains(rule) {
            return Ok(());
        }
        self.staging.rule(&self.rules, rule)
    }
}
