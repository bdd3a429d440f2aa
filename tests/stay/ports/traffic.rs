//! What goes through a published port: all of it, in order, each direction to its own end, and nobody in another's way.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use harness::callers;

use super::listed;
use super::server::{Server, ask, connect, free_port};
use crate::home::Home;

/// A sandbox with the server, each of its ports published, and where.
fn published<const N: usize>(home: &Home, insides: [u16; N]) -> (String, Server, [u16; N]) {
    let ports = insides.map(|_| free_port());
    let options: Vec<String> =
        ports.iter().zip(insides).map(|(port, inside)| format!("--publish={port}:{inside}")).collect();
    let id = home.create(&options.iter().map(String::as_str).collect::<Vec<_>>());
    let server = Server::start(home, &id);
    (id, server, ports)
}

/// Waits until so many connections are open.
#[track_caller]
fn wait_for_open(home: &Home, id: &str, open: u64) {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let ports = listed(home, id);
        let now: u64 = ports.iter().map(|port| port["open"].as_u64().unwrap()).sum();
        if now == open {
            return;
        }
        assert!(Instant::now() < deadline, "{ports:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

callers!(much_goes_both_ways_and_stays_whole, |caller| {
    let home = Home::new(caller);
    let (id, _server, [port]) = published(&home, [4001]);
    let bytes: Vec<u8> = (0..16_u32 << 20).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let mut stream = connect(port);
    let mut writing = stream.try_clone().unwrap();
    let mut back = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            writing.write_all(&bytes).unwrap();
            writing.shutdown(Shutdown::Write).unwrap();
        });
        stream.read_to_end(&mut back).unwrap();
    });
    assert!(back == bytes, "{} of {} bytes came back", back.len(), bytes.len());
    let entry = &listed(&home, &id)[0];
    assert_eq!((&entry["bytes_in"], &entry["bytes_out"]), (&bytes.len().into(), &bytes.len().into()));
});

callers!(each_direction_ends_by_itself, |caller| {
    let home = Home::new(caller);
    let (id, server, [answers, speaks]) = published(&home, [4002, 4004]);
    // The client has said all, and still hears.
    assert_eq!(ask(answers, b"it"), b"all of it");
    // The server has said all, and still hears.
    let mut stream = connect(speaks);
    let mut said = Vec::new();
    stream.read_to_end(&mut said).unwrap();
    assert_eq!(said, b"first");
    stream.write_all(b"afterwards").unwrap();
    drop(stream);
    server.0.wait_for("heard afterwards");
    wait_for_open(&home, &id, 0);
});

callers!(where_nobody_listens_a_connection_is_reset_at_once, |caller| {
    let home = Home::new(caller);
    let port = free_port();
    let _id = home.create(&["--publish", &format!("{port}:4999")]);
    for _ in 0..3 {
        let begun = Instant::now();
        let mut stream = connect(port);
        let error = stream.read(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    }
});

callers!(many_come_at_once_and_each_has_its_turn, |caller| {
    let home = Home::new(caller);
    let (id, _server, [port]) = published(&home, [4001]);
    let mut clients: Vec<TcpStream> = (0..300).map(|_| connect(port)).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        write!(client, "{number:03}").unwrap();
    }
    // The others wait, until those before them are done.
    wait_for_open(&home, &id, 256);
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(listed(&home, &id)[0]["total"], 256);
    for (number, mut client) in clients.into_iter().enumerate() {
        client.shutdown(Shutdown::Write).unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        assert_eq!(answer, format!("{number:03}"));
    }
    wait_for_open(&home, &id, 0);
    assert_eq!(listed(&home, &id)[0]["total"], 300);
});

callers!(who_does_not_read_is_in_nobodys_way, |caller| {
    let home = Home::new(caller);
    let (id, _server, [echoes, floods, sleeps]) = published(&home, [4001, 4003, 4005]);
    // Neither reads what is sent to it: two clients outside, and what two others talk to inside.
    let slow: Vec<TcpStream> = (0..2).map(|_| connect(floods)).collect();
    let stuck: Vec<TcpStream> = (0..2).map(|_| connect(sleeps)).collect();
    for stream in &stuck {
        stream.set_nonblocking(true).unwrap();
        let full = |mut stream: &TcpStream| stream.write(&[0; 65536]).is_err();
        let mut refused = 0;
        while refused < 20 {
            refused = if full(stream) { refused + 1 } else { 0 };
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    let begun = Instant::now();
    for _ in 0..20 {
        assert_eq!(ask(echoes, b"quick"), b"quick");
    }
    assert_eq!(home.exec(&id, &["echo", "alive"]), "alive\n");
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    wait_for_open(&home, &id, 4);
    // Those who leave in the middle are gone, also where what they sent is never read.
    drop(slow);
    for stream in stuck {
        rustix::net::sockopt::set_socket_linger(&stream, Some(Duration::ZERO)).unwrap();
    }
    wait_for_open(&home, &id, 0);
});
