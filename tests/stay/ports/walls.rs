//! What a published port does not open: neither to another sandbox, nor anything of the host's to this one.

use std::fs;

use harness::{callers, stands};
use policy::Wall;

use super::server::{Server, ask, free_port, is_open};
use crate::home::Home;

/// Connects and tells what was answered.
const VISIT: &str = r#"
import socket, sys
try:
    peer = socket.create_connection(("127.0.0.1", int(sys.argv[1])), 10)
    peer.sendall(b"secret"); peer.shutdown(socket.SHUT_WR)
    print("reached", peer.recv(100).decode())
except OSError as error:
    print("refused", error)
"#;

/// Answers everybody with the same word.
const IMPOSTOR: &str = r#"
import socket, sys
listener = socket.create_server(("", int(sys.argv[1])))
print("ready", flush=True)
while True:
    peer = listener.accept()[0]
    while peer.recv(100): pass
    peer.sendall(b"wrong"); peer.close()
"#;

callers!(another_sandbox_does_not_reach_it, |caller| {
    let home = Home::new(caller);
    let port = free_port();
    let id = home.create(&["--publish", &format!("{port}:4001")]);
    let _server = Server::start(&home, &id);
    assert_eq!(ask(port, b"host"), b"host");
    stands(caller, Wall::NetNamespace, &|start| {
        let finished = start().run(["python3", "-c", VISIT, &port.to_string()]);
        let said = finished.assert_success().stdout();
        if said.starts_with("refused") { Ok(()) } else { Err(format!("port {port}: {said}")) }
    });
});

callers!(the_number_outside_means_nothing_inside, |caller| {
    let home = Home::new(caller);
    let port = free_port();
    let id = home.create(&["--publish", &format!("{port}:4001")]);
    // Not from inside: neither the port itself nor anything else of the host's.
    let said = home.exec(&id, &["python3", "-c", VISIT, &port.to_string()]);
    assert!(said.starts_with("refused"), "{said}");
    // A program that listens there inside is not the one that is published.
    let impostor = home.begin(&["exec", &id, "--", "python3", "-c", IMPOSTOR, &port.to_string()]);
    impostor.wait_for("ready");
    let _server = Server::start(&home, &id);
    assert_eq!(ask(port, b"right"), b"right");
    assert!(home.exec(&id, &["python3", "-c", VISIT, &port.to_string()]).starts_with("reached wrong"));
});

/// The number of the socket that listens on a port of 127.0.0.1.
fn socket_of(port: u16) -> String {
    let listening = format!("0100007F:{port:04X} 00000000:0000 0A");
    let table = fs::read_to_string("/proc/net/tcp").unwrap();
    let line = table.lines().find(|line| line.contains(&listening)).unwrap();
    format!("socket:[{}]", line.split_whitespace().nth(9).unwrap())
}

/// Whether a process has it; one that ends meanwhile has not.
fn holds(pid: i32, socket: &str) -> bool {
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    descriptors
        .into_iter()
        .any(|entry| fs::read_link(entry.path()).is_ok_and(|link| link.as_os_str() == socket))
}

callers!(nobody_but_the_supervisor_holds_it, |caller| {
    if !harness::is_root("look at the descriptors of processes that are not dumpable") {
        return;
    }
    let home = Home::new(caller);
    let port = free_port();
    let added = free_port();
    let id = home.create(&["--publish", &format!("{port}:4001")]);
    home.say(&["port", &id, "add", &format!("{added}:4001")]).assert_success();
    home.say(&["exec", "--detach", &id, "--", "sleep", "600"]).assert_success();
    assert!(is_open(port));
    for port in [port, added] {
        let socket = socket_of(port);
        let processes = harness::host_processes().into_iter().map(|process| process.pid);
        let holders: Vec<i32> = processes.filter(|pid| holds(*pid, &socket)).collect();
        assert_eq!(serde_json::json!(holders), serde_json::json!([home.status(&id)["supervisor"]]));
    }
});
