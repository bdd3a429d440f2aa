//! The head of a first request, looked at where it is: what stands behind it may be for somebody else, and must not be
//! taken with it.

use std::time::Duration;

use policy::network::Refusal;
use rustix::net::{RecvFlags, recv};
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::listen::{MOST_LOOKS, peek};

use super::fields::{LONGEST_HEAD, find_end};

/// How much is looked at first; most heads are shorter.
const FIRST_LOOK: usize = 4096;

/// Waits for a whole head and shows it; none where the client has said nothing. What is `held` has been taken from the
/// client before, and begins with a whole head.
pub(crate) async fn look_ahead(
    client: &TcpStream,
    held: &[u8],
    limit: Duration,
) -> Result<Option<Vec<u8>>, Refusal> {
    if !held.is_empty() {
        let end = find_end(held, 0).ok().flatten().ok_or(Refusal::MalformedRequest)?;
        return Ok(held.get(..end).map(<[u8]>::to_vec));
    }
    let mut buffer = vec![0; FIRST_LOOK];
    let mut seen = 0;
    match timeout(limit, look(client, &mut buffer, &mut seen)).await {
        Ok(Ok(Some(end))) => {
            buffer.truncate(end);
            Ok(Some(buffer))
        }
        Ok(Ok(None)) => Ok(None),
        Ok(Err(refusal)) => Err(refusal),
        // Who says nothing is told nothing.
        Err(_) if seen == 0 => Ok(None),
        Err(_) => Err(Refusal::Stalled),
    }
}

/// Where the head ends; none where the client has gone.
async fn look(client: &TcpStream, buffer: &mut Vec<u8>, seen: &mut usize) -> Result<Option<usize>, Refusal> {
    for _ in 0..MOST_LOOKS {
        let look = client.async_io(Interest::READABLE, || peek(client, buffer, *seen)).await;
        let Ok(look) = look else { return Ok(None) };
        if look.is_last {
            return Ok(None);
        }
        let searched = std::mem::replace(seen, look.length);
        let end = find_end(&buffer[..look.length], searched).map_err(|_| Refusal::MalformedRequest)?;
        if end.is_some() {
            return Ok(end);
        }
        if look.length == buffer.len() {
            if look.length >= LONGEST_HEAD {
                return Err(Refusal::MalformedRequest);
            }
            buffer.resize((look.length * 2).min(LONGEST_HEAD), 0);
        }
    }
    // Byte by byte, to keep us busy.
    Err(Refusal::Stalled)
}

/// Takes a head of this length that has been looked at, and nothing behind it; none where the client has gone.
pub(crate) async fn take_head(client: &TcpStream, length: usize) -> Option<()> {
    let mut head = vec![0; length];
    let mut taken = 0;
    while taken < length {
        client.readable().await.ok()?;
        match client.try_read(&mut head[taken..]) {
            Ok(0) => return None,
            Ok(count) => taken += count,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(_) => return None,
        }
    }
    // The runtime learns that nothing is left, where nothing is: who waits for the next word must not be told of this one.
    let _ = client
        .try_io(Interest::READABLE, || Ok(recv(client, &mut [0; 1], RecvFlags::PEEK | RecvFlags::DONTWAIT)?));
    Some(())
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt as _;
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn who_says_nothing_behind_a_head_is_not_heard_of() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (client, served) = tokio::join!(TcpStream::connect(address), listener.accept());
        let (mut client, (served, _)) = (client.unwrap(), served.unwrap());
        let head = b"CONNECT a.test:25 HTTP/1.1\r\n\r\n";
        client.write_all(head).await.unwrap();
        let seen = look_ahead(&served, &[], Duration::from_secs(10)).await.unwrap().unwrap();
        assert_eq!(seen, head);
        take_head(&served, seen.len()).await.unwrap();
        let soon = Duration::from_millis(100);
        assert!(timeout(soon, served.readable()).await.is_err());
        client.write_all(b"more").await.unwrap();
        timeout(Duration::from_secs(10), served.readable()).await.unwrap().unwrap();
    }
}
