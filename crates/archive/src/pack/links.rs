//! Which files have been packed under another name already. What is remembered is bounded: beyond that, a second
//! name brings a second copy, which is as right.

use std::collections::HashMap;

use rustix::fs::Stat;

/// Most bytes of names that are remembered.
const KEPT: usize = 32 * 1024 * 1024;

/// What an entry costs besides its name.
const OVERHEAD: usize = 64;

/// The first names of files that have several.
#[derive(Debug, Default)]
pub(super) struct Links {
    names: HashMap<(u64, u64), Box<[u8]>>,
    kept: usize,
}

impl Links {
    /// The name that this file was packed under before; else it is remembered under `name`.
    pub(super) fn first_name(&mut self, stat: &Stat, name: &[u8]) -> Option<Box<[u8]>> {
        if stat.st_nlink < 2 {
            return None;
        }
        let file = (stat.st_dev, stat.st_ino);
        if let Some(first) = self.names.get(&file) {
            return Some(first.clone());
        }
        if self.kept + name.len() + OVERHEAD <= KEPT {
            self.kept += name.len() + OVERHEAD;
            self.names.insert(file, name.into());
        }
        None
    }
}
