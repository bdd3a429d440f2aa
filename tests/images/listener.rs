//! Somebody who speaks HTTP, answers as a test says, and keeps what it has heard.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::authority::Issued;

/// What was asked.
#[derive(Clone, Debug)]
pub(crate) struct Question {
    /// `GET /path`.
    pub(crate) first: String,
    /// The headers as they came.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Question {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(found, _)| found.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    fn read(stream: &mut impl Read) -> Option<Self> {
        let (mut bytes, mut piece) = (Vec::new(), [0; 4096]);
        let end = loop {
            if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
                break end + 4;
            }
            match stream.read(&mut piece) {
                Ok(0) | Err(_) => return None,
                Ok(count) => bytes.extend_from_slice(&piece[..count]),
            }
        };
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let mut lines = head.lines();
        let first = lines.next()?.trim_end_matches(" HTTP/1.1").to_owned();
        let headers: Vec<_> = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        let mut question = Self { first, headers, body: String::new() };
        let length = question.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
        while bytes.len() < end + length {
            match stream.read(&mut piece) {
                Ok(0) | Err(_) => return None,
                Ok(count) => bytes.extend_from_slice(&piece[..count]),
            }
        }
        question.body = String::from_utf8_lossy(&bytes[end..]).into_owned();
        Some(question)
    }
}

/// What is answered.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self { status, headers: Vec::new(), body: body.into() }
    }

    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    fn write(&self, stream: &mut impl Write) {
        let mut head = format!("HTTP/1.1 {} -\r\nconnection: close\r\n", self.status);
        head.push_str(&format!("content-length: {}\r\n", self.body.len()));
        self.headers.iter().for_each(|(name, value)| head.push_str(&format!("{name}: {value}\r\n")));
        let _ = stream.write_all(format!("{head}\r\n").as_bytes());
        let _ = stream.write_all(&self.body);
        let _ = stream.flush();
    }
}

/// Somebody who listens, until the test ends.
pub(crate) struct Listener {
    pub(crate) port: u16,
    heard: Arc<Mutex<Vec<Question>>>,
}

impl Listener {
    pub(crate) fn start(
        tls: Option<&Issued>,
        answer: impl Fn(&Question) -> Answer + Send + Sync + 'static,
    ) -> Self {
        Self::start_knowing(tls, |_| answer)
    }

    /// The same for one whose answers name its own port.
    pub(crate) fn start_knowing<A: Fn(&Question) -> Answer + Send + Sync + 'static>(
        tls: Option<&Issued>,
        answer: impl FnOnce(u16) -> A,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let (kept, answer, tls) = (heard.clone(), Arc::new(answer(port)), tls.map(server));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (kept, answer, tls) = (kept.clone(), answer.clone(), tls.clone());
                std::thread::spawn(move || match tls {
                    None => converse(stream, &kept, &*answer),
                    Some(tls) => {
                        let connection = ServerConnection::new(tls).unwrap();
                        converse(StreamOwned::new(connection, stream), &kept, &*answer);
                    }
                });
            }
        });
        Self { port, heard }
    }

    /// All that it was asked.
    pub(crate) fn heard(&self) -> Vec<Question> {
        self.heard.lock().unwrap().clone()
    }
}

fn converse(
    mut stream: impl Read + Write,
    kept: &Mutex<Vec<Question>>,
    answer: &dyn Fn(&Question) -> Answer,
) {
    let Some(question) = Question::read(&mut stream) else { return };
    kept.lock().unwrap().push(question.clone());
    answer(&question).write(&mut stream);
}

fn server(issued: &Issued) -> Arc<ServerConfig> {
    let certificates = CertificateDer::pem_file_iter(&issued.certificate).unwrap();
    let certificates = certificates.collect::<Result<Vec<_>, _>>().unwrap();
    let key = PrivateKeyDer::from_pem_file(&issued.key).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    Arc::new(config.with_no_client_auth().with_single_cert(certificates, key).unwrap())
}
