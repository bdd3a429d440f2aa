//! The first words of a client. They are looked at and left where they are, so that all is passed on as it came.
//!
//! A few letters can be the beginning of a request, or all that somebody says who then waits for an answer. Where more than
//! HTTP is spoken, such letters are passed on after a moment, and what follows must not make a request of them.

use std::io;
use std::os::fd::AsFd as _;
use std::time::Duration;

use policy::network::Refusal;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{RecvFlags, recv};
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::hello::{self, Hello};
use crate::speech::{Speech, recognise};

/// What is looked at first; most have said all by then.
const FIRST_LOOK: usize = 2048;

/// How often it is looked at: as often as the largest greeting has segments, and a client that is slow.
pub(crate) const MOST_LOOKS: usize = 512;

/// What was heard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    /// A TLS client, and whom it means.
    Tls(Hello),
    /// A request of HTTP, or what should be one.
    Http,
    /// Something else.
    Other,
    /// Letters after which it waits. They are taken, and to be passed on.
    Letters(Vec<u8>),
    /// It has gone without a word.
    Nothing,
}

/// Waits for the first words of a client, as long as it takes; once it has begun, it has `patience` to say enough. What it
/// has `said` before has been passed on.
pub(crate) async fn listen(client: &TcpStream, said: &[u8], patience: Patience) -> Result<Heard, Refusal> {
    // Nothing is held for those who are silent.
    if client.readable().await.is_err() {
        return Ok(Heard::Nothing);
    }
    timeout(patience.whole, look(client, said, patience.letters)).await.unwrap_or(Err(Refusal::Stalled))
}

/// How long a client may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// For all that is needed to know what it speaks.
    pub(crate) whole: Duration,
    /// For what follows a few letters, where they may be all.
    pub(crate) letters: Option<Duration>,
}

async fn look(client: &TcpStream, said: &[u8], letters: Option<Duration>) -> Result<Heard, Refusal> {
    let mut buffer = vec![0; FIRST_LOOK];
    let mut seen = 0;
    let mut is_tls = false;
    for _ in 0..MOST_LOOKS {
        // What has begun as TLS is waited for.
        let letters = letters.filter(|_| seen > 0 && !is_tls);
        let more = client.async_io(Interest::READABLE, || peek(client, &mut buffer, seen));
        let more = match letters {
            Some(letters) => timeout(letters, more).await,
            None => Ok(more.await),
        };
        let look = match more {
            Ok(Ok(look)) => look,
            Ok(Err(_)) => return Ok(Heard::Nothing),
            Err(_) => return Ok(take(client, buffer, seen)),
        };
        seen = look.length;
        if seen == 0 {
            return Ok(Heard::Nothing);
        }
        let words = &buffer[..seen];
        let all = [said, words].concat();
        match recognise(&all) {
            Some(Speech::Http) => return Ok(Heard::Http),
            Some(Speech::Other) => return Ok(Heard::Other),
            Some(Speech::Tls) => match hello::read(words) {
                Hello::More => is_tls = true,
                hello => return Ok(Heard::Tls(hello)),
            },
            None => {}
        }
        if look.is_last {
            // It will not say more.
            return Ok(if is_tls { Heard::Tls(Hello::Malformed) } else { Heard::Other });
        }
        if seen == buffer.len() {
            if seen >= hello::LONGEST {
                return Ok(Heard::Tls(Hello::Malformed));
            }
            buffer.resize(seen * 2, 0);
        }
    }
    // Byte by byte, to keep us busy.
    Err(Refusal::Stalled)
}

/// Takes what has been seen. The kernel has told of it already, so it is not waited for.
fn take(client: &TcpStream, mut buffer: Vec<u8>, seen: usize) -> Heard {
    buffer.truncate(seen);
    match recv(client, &mut *buffer, RecvFlags::DONTWAIT) {
        Ok((length, _)) => {
            buffer.truncate(length);
            Heard::Letters(buffer)
        }
        Err(_) => Heard::Nothing,
    }
}

/// What a look has shown.
pub(crate) struct Look {
    pub(crate) length: usize,
    /// Whether nothing more will come.
    pub(crate) is_last: bool,
}

/// Looks for more than has been seen; the kernel tells anew of what comes later.
pub(crate) fn peek(client: &TcpStream, buffer: &mut [u8], seen: usize) -> io::Result<Look> {
    let (length, _) = recv(client, &mut *buffer, RecvFlags::PEEK | RecvFlags::DONTWAIT)?;
    if length > seen || length == 0 {
        return Ok(Look { length, is_last: length == 0 });
    }
    let descriptor = client.as_fd();
    let mut ends = [PollFd::from_borrowed_fd(descriptor, PollFlags::RDHUP)];
    if poll(&mut ends, Some(&Timespec::default()))? > 0 {
        return Ok(Look { length, is_last: true });
    }
    Err(io::ErrorKind::WouldBlock.into())
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt as _;
    use tokio::net::TcpListener;

    use super::*;

    const PATIENCE: Patience = Patience { whole: Duration::from_millis(300), letters: None };

    async fn heard(parts: &[&[u8]], then_ends: Ends) -> Result<Heard, Refusal> {
        heard_after(b"", parts, then_ends, PATIENCE).await
    }

    async fn heard_after(
        said: &[u8],
        parts: &[&[u8]],
        then_ends: Ends,
        patience: Patience,
    ) -> Result<Heard, Refusal> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (client, inner) =
            tokio::join!(TcpStream::connect(listener.local_addr().unwrap()), listener.accept());
        let (mut client, inner) = (client.unwrap(), inner.unwrap().0);
        let speak = async {
            for part in parts {
                client.write_all(part).await.unwrap();
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            if then_ends == Ends::Yes {
                client.shutdown().await.unwrap();
            }
            std::future::pending().await
        };
        tokio::select! {
            heard = listen(&inner, said, patience) => heard,
            () = speak => unreachable!(),
        }
    }

    #[derive(Clone, Copy, PartialEq, Eq)]
    enum Ends {
        Yes,
        No,
    }

    #[tokio::test]
    async fn first_words_are_heard_however_they_come() {
        assert_eq!(heard(&[b"GET / HTTP/1.1"], Ends::No).await, Ok(Heard::Http));
        assert_eq!(heard(&[b"G", b"E", b"T ", b"/"], Ends::No).await, Ok(Heard::Http));
        assert_eq!(heard(&[b"SSH-2.0-x\r\n"], Ends::No).await, Ok(Heard::Other));
        assert_eq!(heard(&[b"SSH", b"-2.0\r\n"], Ends::No).await, Ok(Heard::Other));
        assert_eq!(heard(&[b"hi"], Ends::Yes).await, Ok(Heard::Other));
        assert_eq!(heard(&[], Ends::Yes).await, Ok(Heard::Nothing));
        assert_eq!(heard(&[b"\x16\x03"], Ends::Yes).await, Ok(Heard::Tls(Hello::Malformed)));
        assert_eq!(heard(&[b"\x16\x03\x01\x00\x05hello"], Ends::No).await, Ok(Heard::Tls(Hello::Malformed)));
        assert_eq!(heard(&[b"\x16\x03"], Ends::No).await, Err(Refusal::Stalled));
        assert_eq!(heard(&[b"GET"], Ends::No).await, Err(Refusal::Stalled));
    }

    #[tokio::test]
    async fn letters_are_heard_after_a_moment_and_not_taken_for_a_beginning_twice() {
        let patience = Patience { letters: Some(Duration::from_millis(60)), ..PATIENCE };
        let heard =
            |said: &'static [u8], parts: &'static [&[u8]]| heard_after(said, parts, Ends::No, patience);
        assert_eq!(heard(b"", &[b"GET"]).await, Ok(Heard::Letters(b"GET".to_vec())));
        assert_eq!(heard(b"", &[b"G", b"E", b"T /"]).await, Ok(Heard::Http));
        assert_eq!(heard(b"GET", &[b" /"]).await, Ok(Heard::Http));
        assert_eq!(heard(b"one", &[b"\r\n"]).await, Ok(Heard::Other));
        assert_eq!(heard(b"", &[b"\x16\x03"]).await, Err(Refusal::Stalled));
    }
}
