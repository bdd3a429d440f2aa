//! Connections as they come to a listening socket, each served beside the others.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// How long nothing is accepted after the kernel could not give a connection.
const BREATH: Duration = Duration::from_millis(100);

/// Serves each connection, until this is dropped; so are the connections then.
pub(crate) async fn each<Served>(listener: TcpListener, serve: impl Fn(TcpStream, SocketAddr) -> Served)
where
    Served: Future<Output = ()> + Send + 'static,
{
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(_) = connections.join_next() => continue,
        };
        match accepted {
            Ok((stream, from)) => drop(connections.spawn(serve(stream, from))),
            Err(_) => tokio::time::sleep(BREATH).await,
        }
    }
}
