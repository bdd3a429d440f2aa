//! The way through the owner's own HTTP proxy: it is asked for a connection to exactly the name that was decided on, and
//! finds out itself where that is.

use std::io;
use std::net::SocketAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use policy::network::{ProxyHost, Refusal, UpstreamProxy};
use rustix::net::{RecvFlags, recv};
use tokio::io::Interest;
use tokio::net::TcpStream;

use crate::carry::pass_on;
use crate::dial::{By, Dialled, any_of};
use crate::gateway::Gateway;
use crate::resolve::Family;

/// The longest answer that is read.
const LONGEST: usize = 8192;

/// Asks the proxy for a connection to `authority`, a name or an address with a port.
pub(crate) async fn through(
    gateway: &Gateway,
    proxy: &UpstreamProxy,
    authority: &str,
) -> Result<Dialled, Refusal> {
    let port = proxy.port.get();
    let addresses: Vec<SocketAddr> = match &proxy.host {
        ProxyHost::Address(address) => vec![SocketAddr::new(*address, port)],
        ProxyHost::Name(name) => {
            let addresses = match gateway.resolver.resolve(name, Family::V4).await {
                Err(_) => gateway.resolver.resolve(name, Family::V6).await?,
                Ok(addresses) => addresses,
            };
            addresses.into_iter().map(|address| SocketAddr::new(address, port)).collect()
        }
    };
    let dialled = any_of(&addresses).await?;
    let who =
        proxy.credentials().map(|who| format!("Proxy-Authorization: Basic {}\r\n", STANDARD.encode(who)));
    let who = who.unwrap_or_default();
    let question = format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n{who}\r\n");
    let unreachable = |_| Refusal::Unreachable;
    pass_on(&dialled.stream, question.as_bytes()).await.map_err(unreachable)?;
    let answer = answer(&dialled.stream).await.map_err(unreachable)?;
    if is_success(&answer) {
        Ok(Dialled { by: By::Upstream, ..dialled })
    } else {
        Err(Refusal::RefusedUpstream)
    }
}

/// Reads an answer to the end of its head and no further: what follows is already the server's.
async fn answer(stream: &TcpStream) -> io::Result<Vec<u8>> {
    let mut buffer = vec![0; LONGEST];
    let mut seen = 0;
    let end = loop {
        let look = stream.async_io(Interest::READABLE, || {
            let (length, _) = recv(stream, &mut *buffer, RecvFlags::PEEK | RecvFlags::DONTWAIT)?;
            match length {
                0 => Err(io::ErrorKind::UnexpectedEof.into()),
                // The kernel tells anew of what comes later.
                length if length == seen => Err(io::ErrorKind::WouldBlock.into()),
                length => Ok(length),
            }
        });
        seen = look.await?;
        if let Some(end) = buffer[..seen].windows(4).position(|bytes| bytes == b"\r\n\r\n") {
            break end + 4;
        }
        if seen == LONGEST {
            return Err(io::ErrorKind::InvalidData.into());
        }
    };
    buffer.truncate(end);
    let (length, _) = recv(stream, &mut *buffer, RecvFlags::DONTWAIT)?;
    buffer.truncate(length);
    Ok(buffer)
}

fn is_success(answer: &[u8]) -> bool {
    let line = answer.split(|byte| *byte == b'\r').next().unwrap_or_default();
    matches!(
        line,
        [b'H', b'T', b'T', b'P', b'/', b'1', b'.', b'0' | b'1', b' ', b'2', b'0'..=b'9', b'0'..=b'9', ..]
    )
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    #[test]
    fn only_a_success_is_one() {
        assert!(is_success(b"HTTP/1.1 200 OK\r\n\r\n") && is_success(b"HTTP/1.0 200\r\n\r\n"));
        for answer in
            [&b"HTTP/1.1 403 no\r\n\r\n"[..], b"HTTP/2 200\r\n\r\n", b"", b"200", b"HTTP/1.1 2\r\n\r\n"]
        {
            assert!(!is_success(answer), "{answer:?}");
        }
    }

    #[tokio::test]
    async fn an_answer_is_read_to_its_end_and_no_further() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (client, server) =
            tokio::join!(TcpStream::connect(listener.local_addr().unwrap()), listener.accept());
        let (mut client, mut server) = (client.unwrap(), server.unwrap().0);
        let speak = async {
            server.write_all(b"HTTP/1.1 200 O").await.unwrap();
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            server.write_all(b"K\r\nX: y\r\n\r\nSSH-2.0").await.unwrap();
        };
        let (answer, ()) = tokio::join!(answer(&client), speak);
        assert_eq!(answer.unwrap(), b"HTTP/1.1 200 OK\r\nX: y\r\n\r\n");
        let mut rest = [0; 7];
        client.read_exact(&mut rest).await.unwrap();
        assert_eq!(&rest, b"SSH-2.0");
    }
}
