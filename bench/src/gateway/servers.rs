//! Everybody out there: the site that all clients reach and the resolver that knows its name, in a process that holds the
//! namespace of the internet and ends when its stdin does. Threads and blocking calls, so that little of the processors
//! goes to this side.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

use anyhow::Result;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::names;
use super::process::{raise_descriptors, say_ready, wait_for_the_end};

/// The site's ports: HTTP on its own, HTTP and anything else, as many bytes as are asked for, and an echo.
pub(super) const HTTP: u16 = 80;
pub(super) const SMALL: u16 = 8080;
pub(super) const MUCH: u16 = 9000;
pub(super) const ECHO: u16 = 9001;

/// What ends a request, and every answer to one: a head and a word, a hundred bytes in all.
pub(super) const END: &[u8] = b"\r\n\r\n";
pub(super) const WORD: &[u8] = b"Hello there!\n";
const ANSWER_HEAD: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 13\r\nConnection: close\r\n\r\n";

/// As many wait for requests as clients make at once, and as many again for those that are just leaving.
const WAITING: usize = 32;

/// How long a client may be silent before it is given up.
const PATIENCE: Duration = Duration::from_secs(10);

const CHUNK: usize = 256 * 1024;

/// Serves until stdin ends.
pub(crate) fn serve() -> Result<()> {
    raise_descriptors()?;
    let any = Ipv4Addr::UNSPECIFIED;
    let resolver = UdpSocket::bind((any, 53))?;
    std::thread::spawn(move || names::answer(&resolver));
    for port in [HTTP, SMALL] {
        let listener = TcpListener::bind((any, port))?;
        for _ in 0..WAITING {
            let listener = listener.try_clone()?;
            std::thread::spawn(move || visits(&listener, small));
        }
    }
    let listener = TcpListener::bind((any, MUCH))?;
    std::thread::spawn(move || visits(&listener, much));
    let listener = TcpListener::bind((any, ECHO))?;
    std::thread::spawn(move || echo(listener));
    say_ready()?;
    wait_for_the_end()
}

/// One visit after the other. A visitor who breaks off is none of the next one's business.
fn visits(listener: &TcpListener, visit: fn(TcpStream) -> Result<()>) -> Result<()> {
    loop {
        let (stream, _) = listener.accept()?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let _ = visit(stream);
    }
}

/// Answers one request, whatever it says.
fn small(mut stream: TcpStream) -> Result<()> {
    let mut request = [0; 2048];
    let mut length = 0;
    while !request[..length].ends_with(END) {
        match stream.read(&mut request[length..])? {
            0 => return Ok(()),
            count => length += count,
        }
    }
    Ok(stream.write_all(&[ANSWER_HEAD, WORD].concat())?)
}

/// Sends as many bytes as it is told.
fn much(mut stream: TcpStream) -> Result<()> {
    let mut number = [0; 8];
    stream.read_exact(&mut number)?;
    let mut left = usize::try_from(u64::from_be_bytes(number))?;
    let bytes = vec![0; CHUNK];
    while left > 0 {
        let count = left.min(CHUNK);
        stream.write_all(&bytes[..count])?;
        left -= count;
    }
    Ok(())
}

/// Says what it hears, to thousands at once.
fn echo(listener: TcpListener) -> Result<()> {
    listener.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        loop {
            let (mut stream, _) = listener.accept().await?;
            tokio::spawn(async move {
                let mut byte = [0];
                while stream.read_exact(&mut byte).await.is_ok() && stream.write_all(&byte).await.is_ok() {}
            });
        }
    })
}
