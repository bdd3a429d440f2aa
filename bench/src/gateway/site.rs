//! A connection to the site, by one way or another, and a small request over it.

use std::net::{SocketAddr, ToSocketAddrs as _};

use anyhow::{Context as _, Result, bail, ensure};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::network::NAME;
use super::servers::{END, HTTP, SMALL, WORD};
use super::task::Kind;

/// A request of no known protocol, as long as that of HTTP.
const RAW: &str = "ASK for something small, by no protocol that is known\r\n\r\n";

/// How the site is reached.
#[derive(Clone, Copy, Debug)]
pub(super) enum Route {
    /// As if nobody were in between.
    Straight,
    /// By asking a proxy.
    Proxy(SocketAddr),
}

/// A port of the site's, and where a connection to it begins.
#[derive(Clone, Copy, Debug)]
pub(super) struct Port {
    route: Route,
    number: u16,
    address: SocketAddr,
}

impl Port {
    /// Asks for the name, once: what is measured are connections.
    pub(super) fn find(route: Route, number: u16) -> Result<Self> {
        let address = match route {
            Route::Proxy(address) => address,
            Route::Straight => {
                let mut found = (NAME, number).to_socket_addrs()?;
                found.next().with_context(|| format!("{NAME} has no address"))?
            }
        };
        Ok(Self { route, number, address })
    }

    /// The one that such requests go to.
    pub(super) fn of(kind: Kind, route: Route) -> Result<Self> {
        match kind {
            Kind::Tunnelled | Kind::Raw => Self::find(route, SMALL),
            Kind::Forwarded => Self::find(route, HTTP),
        }
    }

    /// A connection to it; a proxy is asked for a tunnel.
    pub(super) async fn open(self) -> Result<TcpStream> {
        let mut stream = TcpStream::connect(self.address).await?;
        if let Route::Proxy(_) = self.route {
            let host = format!("{NAME}:{}", self.number);
            let ask = format!("CONNECT {host} HTTP/1.1\r\nHost: {host}\r\n\r\n");
            stream.write_all(ask.as_bytes()).await?;
            // The site is silent until it is asked, so nothing of what it says can be in here.
            let mut answer = Vec::with_capacity(1024);
            while !answer.ends_with(END) {
                if stream.read_buf(&mut answer).await? == 0 {
                    bail!("the proxy ended with '{}'", answer.escape_ascii());
                }
            }
            let line = answer.split(|byte| *byte == b'\r').next().unwrap_or_default();
            let is_open = line.windows(5).any(|part| part == b" 200 ");
            ensure!(is_open, "the proxy says '{}'", line.escape_ascii());
        }
        Ok(stream)
    }

    /// One connection, one request, one answer.
    pub(super) async fn request(self, kind: Kind) -> Result<()> {
        let (mut stream, request) = match (kind, self.route) {
            (Kind::Raw, _) => (self.open().await?, RAW.to_owned()),
            (Kind::Tunnelled, _) | (Kind::Forwarded, Route::Straight) => (self.open().await?, get("/")),
            (Kind::Forwarded, Route::Proxy(address)) => {
                (TcpStream::connect(address).await?, get(&format!("http://{NAME}/")))
            }
        };
        stream.write_all(request.as_bytes()).await?;
        let mut answer = Vec::with_capacity(1024);
        stream.read_to_end(&mut answer).await?;
        ensure!(answer.ends_with(WORD), "'{}' is no answer", answer.escape_ascii());
        Ok(())
    }
}

fn get(target: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: {NAME}\r\nConnection: close\r\n\r\n")
}
