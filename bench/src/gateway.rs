//! The way out of a sandbox beside none at all and beside proxies that are asked: how much goes through one connection,
//! how many small requests, how long each takes, what idle tunnels hold, and what a network adds to a start. Everything
//! but the last is measured by root, in a network of its own that goes with it.

mod client;
mod names;
mod network;
mod process;
mod proxies;
mod servers;
mod site;
mod start;
mod task;
mod tunnels;
mod turns;
mod way;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::goal::Line;
use crate::place::Place;
use crate::{Effort, directory};
use network::Network;
use way::Way;

pub(crate) use client::work;
pub(crate) use servers::serve;
pub(crate) use start::measure_start;

/// The first words of processes that are not the measurement: who serves, and who asks.
pub(crate) const SERVERS: &str = "servers";
pub(crate) const CLIENT: &str = "client";

pub(crate) fn measure(place: &Place, effort: Effort) -> Result<Vec<Line>> {
    // What is made last goes first, and the files last.
    let files = Files::make()?;
    let network = Network::make(files.path())?;
    let mut ways = Way::all(&network, place, files.path())?;
    let mut lines = turns::measure(&mut ways, effort)?;
    drop(ways);
    lines.extend(tunnels::measure(&network, place, effort)?);
    Ok(lines)
}

/// A directory that users of packages can reach; removed when it is dropped.
struct Files(PathBuf);

impl Files {
    fn make() -> Result<Self> {
        let files = Self(directory()?.join("gateway"));
        fs::create_dir(files.path())?;
        Ok(files)
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            eprintln!("warning: '{}' is left: {error}", self.0.display());
        }
    }
}

/// This program, for those who serve and ask.
fn own_program() -> Result<String> {
    Ok(directory()?.join("agentbox-bench").display().to_string())
}
