//! Questions for names, by UDP and TCP, whoever they are sent to. They are answered here, from the policy alone: nothing is
//! ever asked of anybody else for it.

pub(crate) mod message;

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::AsFd as _;
use std::time::Duration;

use policy::Wall;
use policy::network::{HOST_ALIAS, HostName, Refusal, Request, Rule, Target, Verdict};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, Interest};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::{Instant, timeout};

use crate::gateway::Gateway;
use crate::names::Named;
use crate::seen::Seen;
use crate::sys;
use message::{A, NotAsked, Question, Reply};

/// The port that questions are sent to.
pub(crate) const PORT: u16 = 53;

/// How long an answer holds. An address stays its name's for ever; whether it may be reached is decided each time.
const SECONDS: u32 = 60;

/// How long whoever asks by TCP may take for the next question.
const PATIENCE: Duration = Duration::from_secs(10);

/// More than any question has.
const LONGEST: usize = 4096;

/// Answers what comes by UDP, until the socket breaks.
pub(crate) async fn by_udp(gateway: &Gateway, socket: UdpSocket) {
    let mut buffer = vec![0; LONGEST];
    loop {
        let receive = || sys::receive(socket.as_fd(), &mut buffer);
        let Ok((length, way)) = socket.async_io(Interest::READABLE, receive).await else {
            // An answer that did not arrive is told here; a socket that is broken would be told without end.
            tokio::time::sleep(Duration::from_millis(1)).await;
            continue;
        };
        if let Some(answer) = answer(gateway, &buffer[..length]) {
            // Whoever has no room for it asks again.
            let _ = socket.try_io(Interest::WRITABLE, || sys::answer(socket.as_fd(), &answer, way));
        }
    }
}

/// Answers what comes by one connection.
pub(crate) async fn by_tcp(gateway: &Gateway, mut stream: TcpStream) -> io::Result<()> {
    loop {
        let Ok(question) = timeout(PATIENCE, read(&mut stream)).await else { return Ok(()) };
        let Some(answer) = answer(gateway, &question?) else { return Ok(()) };
        let length = u16::try_from(answer.len()).map_err(io::Error::other)?;
        let whole = [&length.to_be_bytes()[..], &answer].concat();
        timeout(PATIENCE, stream.write_all(&whole)).await??;
    }
}

async fn read(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let length = usize::from(stream.read_u16().await?);
    if length > LONGEST {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut question = vec![0; length];
    stream.read_exact(&mut question).await?;
    Ok(question)
}

/// The answer to a message; none where it deserves none.
fn answer(gateway: &Gateway, bytes: &[u8]) -> Option<Vec<u8>> {
    let question = match Question::read(bytes) {
        Ok(question) => question,
        Err(NotAsked(error)) => return error.map(|error| error.to_vec()),
    };
    let found = find(gateway, question.name.as_ref());
    let seen = Seen::Question { name: question.name.as_ref(), refusal: found.err() };
    let found = gateway.witness.see(&seen).map_err(|_| Refusal::Unrecorded).and(found);
    Some(question.answer(match found {
        Ok(address) if question.kind == A => Reply::Address(address, SECONDS),
        Ok(_) => Reply::Nothing,
        // To be asked again later.
        Err(Refusal::TooManyNames | Refusal::Unrecorded) => Reply::Failure,
        Err(_) => Reply::NoName,
    }))
}

/// The address of a name inside.
fn find(gateway: &Gateway, name: Option<&HostName>) -> Result<Ipv4Addr, Refusal> {
    let name = name.ok_or(Refusal::NotAName)?;
    let policy = gateway.policy();
    let named = match policy.decide(&Request::Lookup(name)) {
        Verdict::Service(_) => return Ok(HOST_ALIAS),
        Verdict::Refused(_) if !gateway.weaken.keeps(Wall::Egress) => Named::ByItself,
        Verdict::Refused(refusal) => return Err(refusal),
        Verdict::Rule(Rule { target: Target::Below(_), .. }) => Named::Below,
        Verdict::Rule(_) | Verdict::Private(_) | Verdict::Public => Named::ByItself,
    };
    gateway.names().address(name, named, Instant::now().into_std()).ok_or(Refusal::TooManyNames)
}
