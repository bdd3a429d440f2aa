//! Whole exchanges, over sockets: a client, the relay, and a server that says what it was told to.

mod kept;
mod refused;
mod stalled;
mod upgraded;

use std::sync::Arc;
use std::time::Duration;

use policy::network::Refusal;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::{Authority, Between, Ended, Head, Host, Judge, Passage, Times, relay};
use crate::conversation::Traffic;

/// Longer than anything takes that is not meant to.
const LONG: Duration = Duration::from_secs(10);

/// Short, and still long enough for what should come.
const SHORT: Duration = Duration::from_millis(150);

/// Allows `a.test`, and no `DELETE` there.
struct OnlyHere;

impl Judge for OnlyHere {
    fn judge(&self, request: &Head<'_>) -> Result<Passage, Refusal> {
        let Authority { host, port } = request.host();
        match host {
            Host::Name(name) if name.as_str() == "a.test" && port.is_none() => {}
            Host::Name(name) if name.as_str() == "elsewhere.test" => return Ok(Passage::Elsewhere),
            _ => return Err(Refusal::HostDiffers),
        }
        if request.method().to_string() == "DELETE" {
            Err(Refusal::RequestNotAllowed)
        } else {
            Ok(Passage::Here)
        }
    }
}

/// A client and a server, with the relay between them.
struct Stage {
    client: TcpStream,
    server: TcpStream,
    traffic: Arc<Traffic>,
    relay: JoinHandle<Result<Ended, Refusal>>,
}

async fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (one, other) = tokio::join!(TcpStream::connect(address), listener.accept());
    (one.unwrap(), other.unwrap().0)
}

impl Stage {
    async fn set() -> Self {
        Self::set_with(Times { head: LONG, idle: LONG }).await
    }

    async fn set_with(times: Times) -> Self {
        let ((client, mut inner), (mut outer, server)) = (pair().await, pair().await);
        let traffic = Arc::new(Traffic::default());
        let counted = Arc::clone(&traffic);
        let relay = tokio::spawn(async move {
            let between = Between { client: &inner, held: Vec::new(), server: &outer, traffic: &counted };
            let ended = relay(between, &OnlyHere, &times).await;
            if ended == Ok(Ended::Upgraded) {
                let _ = tokio::io::copy_bidirectional(&mut inner, &mut outer).await;
            }
            ended
        });
        Self { client, server, traffic, relay }
    }

    async fn ended(self) -> Result<Ended, Refusal> {
        drop(self.client);
        drop(self.server);
        timeout(LONG, self.relay).await.unwrap().unwrap()
    }

    /// The client says this, and the server hears that.
    async fn ask(&mut self, said: &str, heard: &str) {
        say(&mut self.client, said).await;
        hear(&mut self.server, heard).await;
    }

    /// The server says this, and the client hears that.
    async fn answer(&mut self, said: &str, heard: &str) {
        say(&mut self.server, said).await;
        hear(&mut self.client, heard).await;
    }

    /// The client is told this and no more; the server never hears a thing.
    async fn ends_refused(mut self, status: &str, refusal: Refusal) {
        let told = rest(&mut self.client).await;
        assert!(told.starts_with(&format!("HTTP/1.1 {status} ")), "{told}");
        assert!(told.contains("\r\nConnection: close\r\n"), "{told}");
        assert!(told.contains(&format!("\"reason\":\"{}\"", refusal.code())), "{told}");
        drop(self.client);
        assert_eq!(timeout(LONG, self.relay).await.unwrap().unwrap(), Err(refusal));
        assert_eq!(rest(&mut self.server).await, "");
    }
}

async fn say(stream: &mut TcpStream, text: &str) {
    stream.write_all(text.as_bytes()).await.unwrap();
}

/// Exactly this is what comes next.
async fn hear(stream: &mut TcpStream, text: &str) {
    let mut bytes = vec![0; text.len()];
    let read = timeout(LONG, stream.read_exact(&mut bytes)).await;
    assert_eq!(String::from_utf8_lossy(&bytes), text);
    read.unwrap().unwrap();
}

/// All that still comes.
async fn rest(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let _ = timeout(LONG, stream.read_to_end(&mut bytes)).await.unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Nothing comes for a while.
async fn hear_nothing(stream: &mut TcpStream) {
    let mut byte = [0; 1];
    assert!(timeout(SHORT, stream.read(&mut byte)).await.is_err(), "something came");
}

const GET: &str = "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n";
const EMPTY: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
