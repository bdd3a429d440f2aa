//! Clients at the door: who is turned away, with what, and what is on record of it. Nothing here is dialled; what comes of
//! those who are let in is seen from the other side, in the network suite.

use std::sync::Mutex;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::*;
use crate::seen::{Seen, Unrecorded};

const LONG: Duration = Duration::from_secs(10);

/// What was put on record, as text.
#[derive(Debug, Default)]
struct Notes(Arc<Mutex<Vec<String>>>);

impl Book for Notes {
    fn turned_away(&self, _from: SocketAddr, refusal: Refusal) {
        self.0.lock().unwrap().push(refusal.code().to_owned());
    }

    fn witness(&self, holder: &SandboxName) -> Arc<dyn Witness> {
        Arc::new(Note(holder.to_string(), Arc::clone(&self.0)))
    }
}

#[derive(Debug)]
struct Note(String, Arc<Mutex<Vec<String>>>);

impl Witness for Note {
    fn see(&self, seen: &Seen<'_>) -> Result<(), Unrecorded> {
        if let Seen::Refused { peer, port, refusal } = seen {
            self.1.lock().unwrap().push(format!("{} {peer}:{port} {}", self.0, refusal.code()));
        }
        Ok(())
    }
}

fn key(byte: u8) -> SigningKey {
    SigningKey::new(vec![byte; 32]).unwrap()
}

fn grant(expires: u64) -> Grant {
    Grant {
        holder: "box".parse().unwrap(),
        allow: vec!["allowed.test".parse().unwrap(), "localhost:1".parse().unwrap()],
        deny: vec!["*.denied.test".parse().unwrap()],
        private: Vec::new(),
        issued: None,
        begins: None,
        expires,
    }
}

fn bearer(grant: &Grant, key: &SigningKey) -> String {
    format!("Proxy-Authorization: Bearer {}\r\n", grant.sign(key).unwrap())
}

struct Served {
    address: SocketAddr,
    notes: Arc<Mutex<Vec<String>>>,
}

fn serve(limits: Limits) -> Served {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let notes = Notes::default();
    let heard = Arc::clone(&notes.0);
    let proxy = Arc::new(Proxy::new(key(1), None, limits, Arc::new(notes)));
    tokio::spawn(async move { proxy.serve(listener).await });
    Served { address, notes: heard }
}

impl Served {
    async fn says(&self, request: &str) -> String {
        let mut client = TcpStream::connect(self.address).await.unwrap();
        client.write_all(request.as_bytes()).await.unwrap();
        let mut heard = Vec::new();
        let _ = timeout(LONG, client.read_to_end(&mut heard)).await.unwrap();
        String::from_utf8(heard).unwrap()
    }

    fn notes(&self) -> Vec<String> {
        std::mem::take(&mut self.notes.lock().unwrap())
    }
}

#[tokio::test]
async fn those_without_a_token_that_counts_are_told_so() {
    let served = serve(Limits::default());
    let future = Grant { begins: Some(u64::MAX - 1), ..grant(u64::MAX) };
    for (field, reason) in [
        (String::new(), "token-missing"),
        ("Proxy-Authorization: Bearer x\r\n".to_owned(), "token-invalid"),
        ("Proxy-Authorization: Digest x\r\n".to_owned(), "token-invalid"),
        ("Authorization: Bearer x\r\n".to_owned(), "token-missing"),
        (bearer(&grant(u64::MAX), &key(2)), "token-invalid"),
        (bearer(&grant(1), &key(1)), "token-expired"),
        (bearer(&future, &key(1)), "token-not-yet"),
    ] {
        for line in ["CONNECT allowed.test:443", "GET http://allowed.test/"] {
            let said = served.says(&format!("{line} HTTP/1.1\r\nHost: allowed.test\r\n{field}\r\n")).await;
            assert!(said.starts_with("HTTP/1.1 407 "), "{field}: {said}");
            assert!(said.contains("\r\nProxy-Authenticate: Basic realm=\"agentbox\"\r\n"), "{said}");
            assert!(said.contains(&format!("\"reason\":\"{reason}\"")), "{field}: {said}");
            assert_eq!(served.notes(), [reason]);
        }
    }
}

#[tokio::test]
async fn what_is_refused_is_told_with_what_would_allow_it() {
    let served = serve(Limits::default());
    let token = bearer(&grant(u64::MAX), &key(1));
    for (authority, reason, more) in [
        (
            "other.test:443",
            "not-in-allowlist",
            r#""host":"other.test","hint":"to allow it: agentbox proxy token --allow other.test""#,
        ),
        (
            "allowed.test:22",
            "port-not-allowed",
            r#""rule":"allowed.test","hint":"to allow it: agentbox proxy token --allow allowed.test:22""#,
        ),
        ("a.denied.test:443", "denied", r#""rule":"*.denied.test""#),
        ("169.254.169.254:80", "link-local-address", r#""host":"169.254.169.254""#),
        ("10.0.0.1:80", "private-address", "--allow 10.0.0.1"),
        ("127.0.0.1:1", "loopback-address", r#""host":"127.0.0.1""#),
        ("[::ffff:127.0.0.1]:1", "loopback-address", "host"),
        ("[::1]:1", "loopback-address", "host"),
        ("0.0.0.0:1", "unusable-address", "host"),
    ] {
        let said = served.says(&format!("CONNECT {authority} HTTP/1.1\r\n{token}\r\n")).await;
        assert!(said.starts_with("HTTP/1.1 403 "), "{authority}: {said}");
        assert!(
            said.contains(&format!("\"reason\":\"{reason}\"")) && said.contains(more),
            "{authority}: {said}"
        );
        let notes = served.notes();
        assert!(notes.len() == 1 && notes[0].starts_with("box ") && notes[0].ends_with(reason), "{notes:?}");
    }
    // A name that is allowed and leads here.
    let said = served.says(&format!("CONNECT localhost:1 HTTP/1.1\r\n{token}\r\n")).await;
    assert!(said.starts_with("HTTP/1.1 403 ") && said.contains("loopback-address"), "{said}");
}

#[tokio::test]
async fn what_is_no_errand_is_told_so_before_anything_is_decided() {
    let served = serve(Limits::default());
    let token = bearer(&grant(u64::MAX), &key(1));
    for (line, reason) in [
        ("GET / HTTP/1.1\r\nHost: allowed.test", "not-for-proxy"),
        ("GET https://allowed.test/ HTTP/1.1\r\nHost: allowed.test", "needs-tunnel"),
        ("GET http://allowed.test/ HTTP/1.1\r\nHost: other.test", "malformed-request"),
        ("CONNECT allowed.test:+443 HTTP/1.1", "malformed-request"),
        ("CONNECT allowed.test%00:443 HTTP/1.1", "malformed-request"),
        ("CONNECT a@allowed.test:443 HTTP/1.1", "malformed-request"),
        ("CONNECT allowed.test:443\nX: y HTTP/1.1", "malformed-request"),
        ("\r\nCONNECT allowed.test:443 HTTP/1.1", "malformed-request"),
        ("CONNECT allowed.test:443 HTTP/1.1\r\nContent-Length: 3", "malformed-request"),
    ] {
        let said = served.says(&format!("{line}\r\n{token}\r\n")).await;
        assert!(said.starts_with("HTTP/1.1 400 "), "{line}: {said}");
        assert!(said.contains(&format!("\"reason\":\"{reason}\"")), "{line}: {said}");
        assert_eq!(served.notes(), [reason], "{line}");
    }
}

#[tokio::test]
async fn whoever_does_not_go_on_is_left() {
    let served = serve(Limits { head: Duration::from_millis(100), ..Limits::default() });
    let said = served.says("CONNECT allowed.test:443 HTT").await;
    assert!(said.starts_with("HTTP/1.1 408 ") && said.contains("stalled"), "{said}");
    assert_eq!(served.says("").await, "");
    assert_eq!(served.notes(), ["stalled"]);
    let endless =
        served.says(&format!("CONNECT allowed.test:443 HTTP/1.1\r\nX: {}", "x".repeat(70_000))).await;
    assert!(endless.starts_with("HTTP/1.1 400 ") || endless.is_empty(), "{endless}");
}

#[tokio::test]
async fn there_is_room_for_so_many_and_then_there_is_again() {
    let served = serve(Limits { connections: 2, head: LONG, ..Limits::default() });
    let slow = [
        TcpStream::connect(served.address).await.unwrap(),
        TcpStream::connect(served.address).await.unwrap(),
    ];
    assert_eq!(served.says("CONNECT").await, "");
    drop(slow);
    for _ in 0..50 {
        if served.says("GET / HTTP/1.1\r\n\r\n").await.contains("not-for-proxy") {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("there was never room again");
}

#[test]
fn holders_are_kept_and_forgotten() {
    let notes = Notes::default();
    let mut holders = Holders::new(Limits::default(), None);
    let mut of = |number: u64| {
        let grant = grant(u64::MAX - number);
        holders.of(&grant.sign(&key(1)).unwrap(), &grant, &notes)
    };
    let first = of(0);
    assert!(Arc::ptr_eq(&first, &of(0)));
    for number in 1..1000 {
        assert!(!of(number).is(&first));
    }
    // One who is here is not forgotten for others who are not.
    assert!(Arc::ptr_eq(&first, &of(0)));
}
