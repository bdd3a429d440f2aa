//! The client of a measurement, in a process of its own: on the host of the network, behind a proxy there, or in a
//! sandbox. It does one task after the other as it is told on stdin, and ends when that does. Like most clients it has one
//! thread, however much it does at once.

use std::io::{BufRead as _, Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::runtime::Runtime;
use tokio::time::timeout;

use super::process::raise_descriptors;
use super::servers::{ECHO, MUCH};
use super::site::{Port, Route};
use super::task::{Kind, Outcome, Task};
use crate::statistics::{median_milliseconds, percentile_milliseconds};

/// How long somebody in between may take to start, and how long anybody may be silent.
const STARTING: Duration = Duration::from_secs(20);
const PATIENCE: Duration = Duration::from_secs(20);

const CHUNK: usize = 256 * 1024;

/// Does what it is told; the first word is the address of a proxy, if there is one.
pub(crate) fn work(words: &[&str]) -> Result<()> {
    raise_descriptors()?;
    let route = match words.first() {
        Some(address) => Route::Proxy(address.parse()?),
        None => Route::Straight,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut client = Client { route, runtime, held: Vec::new() };
    let mut stdout = std::io::stdout();
    for line in std::io::stdin().lock().lines() {
        let outcome = client.perform(serde_json::from_str(&line?)?).map_err(|error| format!("{error:#}"));
        stdout.write_all(format!("{}\n", serde_json::to_string(&outcome)?).as_bytes())?;
        stdout.flush()?;
    }
    Ok(())
}

struct Client {
    route: Route,
    runtime: Runtime,
    /// Tunnels that idle.
    held: Vec<TcpStream>,
}

impl Client {
    fn perform(&mut self, task: Task) -> Result<Outcome> {
        match task {
            Task::Reach => self.reach(),
            Task::Read { mebibytes } => self.read(mebibytes << 20),
            Task::Request { kind, at_once, milliseconds } => {
                let port = Port::of(kind, self.route)?;
                let long = Duration::from_millis(milliseconds);
                let requests = request_many(port, kind, at_once, long);
                self.runtime.block_on(async { timeout(long + PATIENCE, requests).await })?
            }
            Task::Hold { tunnels } => {
                let port = Port::find(self.route, ECHO)?;
                // As many as can be had: the number is part of what is measured.
                let opened = (0..tunnels).map_while(|_| self.runtime.block_on(hold(port)).ok());
                self.held.extend(opened);
                Ok(Outcome { count: self.held.len() as u64, ..Outcome::default() })
            }
            Task::LetGo => {
                self.held.clear();
                Ok(Outcome::default())
            }
        }
    }

    /// Waits for the site to be reached.
    fn reach(&self) -> Result<Outcome> {
        let begun = Instant::now();
        let attempt = || {
            let port = Port::of(Kind::Raw, self.route)?;
            self.runtime.block_on(async { timeout(PATIENCE, port.request(Kind::Raw)).await })?
        };
        loop {
            match attempt() {
                Ok(()) => return Ok(Outcome { count: 1, ..Outcome::default() }),
                Err(error) if begun.elapsed() > STARTING => return Err(error),
                Err(_) => std::thread::sleep(Duration::from_millis(50)),
            }
        }
    }

    /// Reads so many bytes over one connection, as fast as one thread can that does nothing else.
    fn read(&self, bytes: u64) -> Result<Outcome> {
        let port = Port::find(self.route, MUCH)?;
        let mut buffer = vec![0; CHUNK];
        let begun = Instant::now();
        let mut stream = self.runtime.block_on(async { blocking(port.open().await?) })?;
        stream.write_all(&bytes.to_be_bytes())?;
        let mut count = 0;
        while count < bytes {
            match stream.read(&mut buffer)? {
                0 => bail!("the connection ended after {count} bytes"),
                some => count += some as u64,
            }
        }
        Ok(Outcome { count, seconds: begun.elapsed().as_secs_f64(), ..Outcome::default() })
    }
}

/// Requests one after the other, and so many rows of them at once.
async fn request_many(port: Port, kind: Kind, at_once: usize, long: Duration) -> Result<Outcome> {
    let begun = Instant::now();
    let row = move || async move {
        let mut times = Vec::new();
        while begun.elapsed() < long {
            let begun = Instant::now();
            port.request(kind).await?;
            times.push(begun.elapsed());
        }
        anyhow::Ok(times)
    };
    let rows: Vec<_> = (0..at_once).map(|_| tokio::spawn(row())).collect();
    let mut times = Vec::new();
    for row in rows {
        times.extend(row.await??);
    }
    Ok(Outcome {
        count: times.len() as u64,
        seconds: begun.elapsed().as_secs_f64(),
        p50: median_milliseconds(&times),
        p99: percentile_milliseconds(&times, 99),
    })
}

/// A tunnel over which something has been said.
async fn hold(port: Port) -> Result<TcpStream> {
    let open = async {
        let mut stream = port.open().await?;
        stream.write_all(b"\0").await?;
        stream.read_exact(&mut [0]).await?;
        blocking(stream)
    };
    timeout(PATIENCE, open).await?
}

fn blocking(stream: tokio::net::TcpStream) -> Result<TcpStream> {
    let stream = stream.into_std()?;
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    Ok(stream)
}
