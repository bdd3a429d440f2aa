//! A program inside that answers on several ports, and clients of it.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use harness::Running;

use crate::home::Home;

/// Nothing that a server is asked takes longer.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// Port 4001 echoes, 4002 answers when all has been asked, 4003 says more than anybody reads, 4004 speaks first and
/// listens then, 4005 reads nothing.
const SCRIPT: &str = r#"
import socket, threading, time
def echo(peer):
    while data := peer.recv(65536): peer.sendall(data)
def answer(peer):
    asked = b""
    while data := peer.recv(65536): asked += data
    peer.sendall(b"all of " + asked)
def flood(peer):
    while True: peer.sendall(b"x" * 65536)
def speak(peer):
    peer.sendall(b"first"); peer.shutdown(socket.SHUT_WR)
    print("heard", peer.makefile().read(), flush=True)
def sleep(peer):
    time.sleep(600)
def run(work, peer):
    try: work(peer)
    except OSError: pass
    finally: peer.close()
def serve(listener, work):
    while True: threading.Thread(target=run, args=(work, listener.accept()[0]), daemon=True).start()
for port, work in [(4001, echo), (4002, answer), (4003, flood), (4004, speak), (4005, sleep)]:
    threading.Thread(target=serve, args=(socket.create_server(("127.0.0.1", port), backlog=512), work)).start()
print("ready", flush=True)
"#;

/// The program; it ends when dropped.
pub(super) struct Server(pub(super) Running);

impl Server {
    #[track_caller]
    pub(super) fn start(home: &Home, id: &str) -> Self {
        let running = home.begin(&["exec", id, "--", "python3", "-c", SCRIPT]);
        running.wait_for("ready");
        Self(running)
    }
}

/// A port below those that the kernel chooses from, which nobody else here has.
pub(super) fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let own = u16::try_from(std::process::id() % 100).unwrap() * 100;
    loop {
        let port = 20_000 + own + NEXT.fetch_add(1, Ordering::SeqCst) % 100;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

#[track_caller]
pub(super) fn connect(port: u16) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Says something, says that this was all, and hears the answer.
#[track_caller]
pub(super) fn ask(port: u16, bytes: &[u8]) -> Vec<u8> {
    let mut stream = connect(port);
    stream.write_all(bytes).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    answer
}

/// Whether anybody listens.
pub(super) fn is_open(port: u16) -> bool {
    TcpStream::connect(("127.0.0.1", port)).is_ok()
}

/// What was killed may take a moment to be gone.
#[track_caller]
pub(super) fn wait_until_closed(port: u16) {
    let deadline = Instant::now() + Duration::from_secs(5);
    while is_open(port) {
        assert!(Instant::now() < deadline, "port {port} is still open");
        std::thread::sleep(Duration::from_millis(5));
    }
}
