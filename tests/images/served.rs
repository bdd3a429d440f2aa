//! A real registry on the loopback, and somebody between it and us who cuts connections off.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::authority::Issued;
use crate::tokens::{ISSUER, SERVICE};

/// What the password of the registry that wants one is, and how it keeps it.
pub(crate) const PASSWORD: &str = "secret";
const HASHED: &str = "$2b$05$abcdefghijklmnopqrstuuOQiyCxlgf/oeuTqixKmWdcYUh4Hjl0a";

/// Docker's own registry, from Debian.
pub(crate) struct Registry {
    directory: TempDir,
    process: Child,
    pub(crate) port: u16,
}

/// How a registry is served.
#[derive(Clone, Copy, Default)]
pub(crate) struct Serving<'a> {
    pub(crate) wants: Wants<'a>,
    /// What it shows, where it speaks TLS, and whose certificates it wants to see, where it does.
    pub(crate) tls: Option<(&'a Issued, Option<&'a Path>)>,
}

/// What a registry wants of who asks.
#[derive(Clone, Copy, Default)]
pub(crate) enum Wants<'a> {
    #[default]
    Nothing,
    Password,
    /// A token from this address, signed by this certificate's key.
    Token(&'a str, &'a Path),
}

impl Registry {
    /// Starts one on the loopback; none where it is not installed.
    pub(crate) fn start(wants: Wants<'_>) -> Option<Self> {
        Self::serve(Serving { wants, tls: None })
    }

    pub(crate) fn serve(serving: Serving<'_>) -> Option<Self> {
        let program = Path::new("/usr/bin/docker-registry");
        if !program.exists() {
            eprintln!("skipped: docker-registry is not installed (tests/setup.sh installs it as root)");
            return None;
        }
        let directory = tempfile::Builder::new().prefix("agentbox-registry-").tempdir_in("/tmp").unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let path = directory.path().join("config.yml");
        fs::write(&path, configuration(serving, directory.path(), port)).unwrap();
        let process = Command::new(program)
            .arg("serve")
            .arg(&path)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let registry = Self { directory, process, port };
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(begun.elapsed() < Duration::from_secs(20), "the registry does not answer");
            std::thread::sleep(Duration::from_millis(20));
        }
        Some(registry)
    }

    /// Puts the image of a layout there, by another program.
    pub(crate) fn push(&self, layout: &Path, name: &str) {
        self.push_showing(layout, name, None);
    }

    /// The same with certificates out of a directory.
    pub(crate) fn push_showing(&self, layout: &Path, name: &str, certificates: Option<&Path>) {
        let to = format!("docker://127.0.0.1:{}/{name}", self.port);
        let status = Command::new("skopeo")
            .args(["copy", "--quiet", "--dest-tls-verify=false", "--dest-creds", &format!("me:{PASSWORD}")])
            .arg("--dest-compress-format=gzip")
            .args(certificates.map(|directory| format!("--dest-cert-dir={}", directory.display())))
            .arg(format!("oci:{}", layout.display()))
            .arg(to)
            .status();
        assert!(status.unwrap().success());
    }

    /// Puts a manifest there by itself, as it is: what it names has to be there already.
    pub(crate) fn put(&self, name: &str, tag: &str, kind: &str, manifest: &str) {
        let head = format!("PUT /v2/{name}/manifests/{tag}");
        let headers = format!("Content-Type: {kind}\r\nContent-Length: {}\r\n", manifest.len());
        let answer = self.ask(&head, &headers, manifest);
        assert!(answer.starts_with("HTTP/1.1 201 "), "{answer}");
    }

    /// The manifest of an image, as it is there.
    pub(crate) fn manifest(&self, name: &str, tag: &str) -> String {
        let accept = "Accept: application/vnd.oci.image.manifest.v1+json\r\n";
        let answer = self.ask(&format!("GET /v2/{name}/manifests/{tag}"), accept, "");
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        answer.split_once("\r\n\r\n").unwrap().1.to_owned()
    }

    fn ask(&self, what: &str, headers: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let asked = format!("{what} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\r\n{body}");
        stream.write_all(asked.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// Where it keeps a blob.
    pub(crate) fn blobs(&self) -> Vec<PathBuf> {
        let output = Command::new("find")
            .arg(self.directory.path().join("data/docker/registry/v2/blobs"))
            .args(["-name", "data", "-size", "+100k"])
            .output();
        String::from_utf8(output.unwrap().stdout).unwrap().lines().map(PathBuf::from).collect()
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn configuration(serving: Serving<'_>, directory: &Path, port: u16) -> String {
    let tls = serving.tls.map_or_else(String::new, |(Issued { certificate, key }, clients)| {
        let clients = clients.map_or_else(String::new, |path| format!(", clientcas: ['{}']", path.display()));
        format!(", tls: {{certificate: {}, key: {}{clients}}}", certificate.display(), key.display())
    });
    let auth = match serving.wants {
        Wants::Nothing => String::new(),
        Wants::Password => {
            let passwords = directory.join("passwords");
            fs::write(&passwords, format!("me:{HASHED}\n")).unwrap();
            format!("auth: {{htpasswd: {{realm: r, path: {}}}}}\n", passwords.display())
        }
        Wants::Token(realm, certificate) => format!(
            "auth: {{token: {{realm: '{realm}', service: {SERVICE}, issuer: {ISSUER}, rootcertbundle: {}}}}}\n",
            certificate.display()
        ),
    };
    format!(
        "version: 0.1\nlog: {{level: error}}\nstorage: {{filesystem: {{rootdirectory: {}}}}}\n\
         http: {{addr: '127.0.0.1:{port}'{tls}}}\n{auth}",
        directory.join("data").display()
    )
}

/// Somebody between a registry and us, who lets so many bytes of large answers through and hangs up.
pub(crate) struct Cutter {
    pub(crate) port: u16,
    /// How often it has hung up.
    pub(crate) cuts: Arc<AtomicUsize>,
    /// The ranges that were asked for.
    pub(crate) ranges: Arc<Mutex<Vec<String>>>,
}

/// What comes after some bytes of an answer.
enum Then {
    GoOn,
    HangUp,
    Wait,
}

impl Cutter {
    pub(crate) fn before(port: u16, most: usize, times: usize) -> Self {
        Self::between(port, move |passed, cuts| {
            if passed <= most || cuts.load(Ordering::SeqCst) >= times {
                return Then::GoOn;
            }
            cuts.fetch_add(1, Ordering::SeqCst);
            Then::HangUp
        })
    }

    /// One who lets everything through, and takes its time.
    pub(crate) fn slow(port: u16, each: Duration) -> Self {
        Self::between(port, move |_, _| {
            std::thread::sleep(each);
            Then::GoOn
        })
    }

    /// One who lets so many bytes of an answer through, and then neither goes on nor hangs up.
    pub(crate) fn holding(port: u16, most: usize) -> Self {
        Self::between(port, move |passed, _| if passed > most { Then::Wait } else { Then::GoOn })
    }

    fn between(port: u16, then: impl Fn(usize, &AtomicUsize) -> Then + Copy + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let own = listener.local_addr().unwrap().port();
        let (cuts, ranges) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(Vec::new())));
        let cutter = Self { port: own, cuts: cuts.clone(), ranges: ranges.clone() };
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let (cuts, ranges) = (cuts.clone(), ranges.clone());
                std::thread::spawn(move || pass(client, port, &|passed| then(passed, &cuts), &ranges));
            }
        });
        cutter
    }
}

fn pass(mut client: TcpStream, port: u16, then: &dyn Fn(usize) -> Then, ranges: &Arc<Mutex<Vec<String>>>) {
    let Ok(mut server) = TcpStream::connect(("127.0.0.1", port)) else { return };
    let (Ok(asking), Ok(asked)) = (client.try_clone(), server.try_clone()) else { return };
    let ranges = ranges.clone();
    let forward = std::thread::spawn(move || listen(asking, asked, &ranges));
    let mut passed = 0;
    let mut buffer = [0; 8192];
    while let Ok(count) = server.read(&mut buffer) {
        if count == 0 || client.write_all(&buffer[..count]).is_err() {
            break;
        }
        passed += count;
        match then(passed) {
            Then::GoOn => {}
            Then::HangUp => break,
            // Whoever asks ends before the test does.
            Then::Wait => std::thread::sleep(Duration::from_secs(600)),
        }
    }
    let _ = client.shutdown(Shutdown::Both);
    let _ = server.shutdown(Shutdown::Both);
    let _ = forward.join();
}

/// Passes questions on, and writes down which ranges they ask for. A question fits into one piece.
fn listen(mut asking: TcpStream, mut asked: TcpStream, ranges: &Mutex<Vec<String>>) {
    let mut piece = [0; 16 * 1024];
    while let Ok(count) = asking.read(&mut piece) {
        if count == 0 || asked.write_all(&piece[..count]).is_err() {
            return;
        }
        let text = String::from_utf8_lossy(&piece[..count]).to_ascii_lowercase();
        let found = text.lines().filter_map(|line| line.strip_prefix("range: ")).map(str::to_owned);
        ranges.lock().unwrap().extend(found);
    }
}
