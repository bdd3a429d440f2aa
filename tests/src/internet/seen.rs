//! What the world has seen of the host, read from its records.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use serde_json::Value;

/// Everything so far.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    questions: Vec<Question>,
    connections: Vec<Connection>,
    datagrams: Vec<Datagram>,
    packets: Vec<Packets>,
}

/// A question to a resolver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// In small letters.
    pub name: String,
    /// Such as `AAAA`, or a number.
    pub kind: String,
    /// `udp` or `tcp`.
    pub over: String,
    /// Who was asked.
    pub server: IpAddr,
}

/// A connection that was accepted, out there or by the host's own services.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connection {
    /// Who came.
    pub from: SocketAddr,
    /// Where to.
    pub to: SocketAddr,
    /// The first bytes that came, as they were on the wire; at most 512.
    pub first: Vec<u8>,
    /// The name in a TLS greeting, whatever came of it.
    pub sni: Option<String>,
    /// What came of a TLS greeting: nothing, or why it failed.
    pub handshake: Option<Result<(), String>>,
    /// What was asked by HTTP, behind TLS, too.
    pub requests: Vec<Request>,
    /// How many bytes came and went, once it has ended; those behind TLS are counted.
    pub total: Option<(u64, u64)>,
}

/// A request by HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Its first line.
    pub line: String,
    /// Its last `Host`.
    pub host: Option<String>,
    /// All headers as they were written, in their order.
    pub headers: Vec<(String, String)>,
}

/// A datagram that was no question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// Who sent it.
    pub from: SocketAddr,
    /// Where to.
    pub to: SocketAddr,
    /// All of it.
    pub bytes: Vec<u8>,
}

/// Packets of one kind that came from the host, whether or not anybody listened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packets {
    /// Such as `tcp`, `udp`, `icmp`.
    pub protocol: String,
    /// The address that they gave as theirs.
    pub from: String,
    /// Where to.
    pub to: String,
    /// The port there, if the protocol has such.
    pub port: Option<u16>,
    /// How many.
    pub count: u64,
}

impl Seen {
    /// Reads the records of each side.
    pub(super) fn read(records: &[String]) -> Self {
        let mut seen = Self::default();
        records.iter().for_each(|records| seen.add(records));
        seen
    }

    /// Questions to any resolver, in the order they came.
    #[must_use]
    pub fn questions(&self) -> &[Question] {
        &self.questions
    }

    /// Connections, those to the host's own services last.
    #[must_use]
    pub fn connections(&self) -> &[Connection] {
        &self.connections
    }

    /// The connections to one address and port, such as `203.0.113.10:443` or `[::1]:9999`.
    #[must_use]
    pub fn connections_to(&self, to: &str) -> Vec<&Connection> {
        let to: SocketAddr = to.parse().unwrap();
        self.connections.iter().filter(|connection| connection.to == to).collect()
    }

    /// Datagrams that somebody listened for, but for questions.
    #[must_use]
    pub fn datagrams(&self) -> &[Datagram] {
        &self.datagrams
    }

    /// Packets that left the host, but for those by which neighbours on a wire find each other.
    #[must_use]
    pub fn packets(&self) -> &[Packets] {
        &self.packets
    }

    /// Whether nothing left the host and nothing came to its own services.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        self.questions.is_empty()
            && self.connections.is_empty()
            && self.datagrams.is_empty()
            && self.packets.is_empty()
    }

    fn add(&mut self, records: &str) {
        let mut places = BTreeMap::new();
        // What has no end yet is still being written.
        for line in records.split_inclusive('\n').filter(|line| line.ends_with('\n')) {
            let record: Value = serde_json::from_str(line).unwrap();
            match record["seen"].as_str().unwrap() {
                "question" => self.questions.push(Question::read(&record)),
                "datagram" => self.datagrams.push(Datagram::read(&record)),
                // Each such record counts from the beginning.
                "packets" => self.packets = list(&record["flows"]).iter().map(Packets::read).collect(),
                "connection" => {
                    places.insert(record["id"].as_u64(), self.connections.len());
                    self.connections.push(Connection::read(&record));
                }
                more => self.connections[places[&record["id"].as_u64()]].learn(more, &record),
            }
        }
    }
}

impl Question {
    fn read(record: &Value) -> Self {
        let server = text(&record["server"]).parse().unwrap();
        let (name, kind, over) = (text(&record["name"]), text(&record["kind"]), text(&record["over"]));
        Self { name, kind, over, server }
    }
}

impl Connection {
    fn read(record: &Value) -> Self {
        let (from, to) = (place(&record["from"]), place(&record["to"]));
        let (first, requests) = (Vec::new(), Vec::new());
        Self { from, to, first, sni: None, handshake: None, requests, total: None }
    }

    fn learn(&mut self, what: &str, record: &Value) {
        match what {
            "first" => self.first = bytes(&record["hex"]),
            "greeting" => self.sni = record["sni"].as_str().map(str::to_owned),
            "handshake" if record["ok"] == true => self.handshake = Some(Ok(())),
            "handshake" => self.handshake = Some(Err(text(&record["why"]))),
            "request" => self.requests.push(Request::read(record)),
            "end" => self.total = record["received"].as_u64().zip(record["sent"].as_u64()),
            _ => panic!("no record of ours: {record}"),
        }
    }
}

impl Request {
    fn read(record: &Value) -> Self {
        let headers = list(&record["headers"]).iter().map(|pair| (text(&pair[0]), text(&pair[1])));
        let host = record["host"].as_str().map(str::to_owned);
        Self { line: text(&record["line"]), host, headers: headers.collect() }
    }
}

impl Datagram {
    fn read(record: &Value) -> Self {
        Self { from: place(&record["from"]), to: place(&record["to"]), bytes: bytes(&record["hex"]) }
    }
}

impl Packets {
    fn read(flow: &Value) -> Self {
        let port = flow["port"].as_u64().map(|port| u16::try_from(port).unwrap());
        let (protocol, from, to) = (text(&flow["protocol"]), text(&flow["from"]), text(&flow["to"]));
        Self { protocol, from, to, port, count: flow["count"].as_u64().unwrap() }
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

fn place(value: &Value) -> SocketAddr {
    text(value).parse().unwrap()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap()
}

fn bytes(value: &Value) -> Vec<u8> {
    let digits = text(value);
    let pairs = digits.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
    pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
}
