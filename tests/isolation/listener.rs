//! Sockets of the host's that must never be reached from inside.

use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts who comes.
#[derive(Clone)]
pub(crate) struct Listener {
    visits: Arc<AtomicUsize>,
}

impl Listener {
    /// A socket at a path that everybody may write to.
    pub(crate) fn at(path: &Path) -> Self {
        use std::os::unix::fs::PermissionsExt as _;
        let listener = UnixListener::bind(path).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o666)).unwrap();
        Self::serve(move || listener.accept().map(|(stream, _)| stream))
    }

    /// A socket in the network namespace's own table of names.
    pub(crate) fn abstractly(name: &str) -> Self {
        let address = SocketAddr::from_abstract_name(name).unwrap();
        let listener = UnixListener::bind_addr(&address).unwrap();
        Self::serve(move || listener.accept().map(|(stream, _)| stream))
    }

    /// A port of the host's, and its address.
    pub(crate) fn tcp(address: &str) -> (Self, String) {
        let listener = TcpListener::bind((address, 0)).unwrap();
        let bound = listener.local_addr().unwrap().to_string();
        (Self::serve(move || listener.accept().map(|(stream, _)| stream)), bound)
    }

    fn serve<S>(accept: impl Fn() -> std::io::Result<S> + Send + 'static) -> Self
    where
        S: std::io::Read + std::io::Write,
    {
        let visits = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&visits);
        // The thread ends with the test program.
        std::thread::spawn(move || {
            while let Ok(mut stream) = accept() {
                counted.fetch_add(1, Ordering::SeqCst);
                let _ = stream.read(&mut [0; 64]);
                let _ = stream.write_all(b"!");
            }
        });
        Self { visits }
    }

    /// How many came so far.
    pub(crate) fn visits(&self) -> usize {
        self.visits.load(Ordering::SeqCst)
    }

    /// Nobody came while `visit` ran.
    pub(crate) fn check(&self, name: &str, visit: impl FnOnce() -> String) -> Result<(), String> {
        let before = self.visits();
        let said = visit();
        let visits = self.visits() - before;
        if visits == 0 && said.lines().all(|line| !line.ends_with(" ok")) {
            return Ok(());
        }
        Err(format!("{name} was reached {visits} times from inside ({})", said.trim()))
    }
}
