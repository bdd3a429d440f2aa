//! Published ports: a program inside, reached by plain TCP clients on the host; opened, listed and closed while a
//! sandbox runs; gone when it is.

mod offers;
mod server;
mod traffic;
mod walls;

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use harness::{callers, callers_alone};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::home::Home;
use server::{Server, free_port, is_open, wait_until_closed};

/// The published ports of a sandbox.
#[track_caller]
fn listed(home: &Home, id: &str) -> Vec<Value> {
    let said = home.say(&["port", id, "ls", "--json"]);
    serde_json::from_slice::<Value>(&said.assert_success().stdout).unwrap().as_array().unwrap().clone()
}

callers!(a_web_server_is_reached_from_the_host, |caller| {
    let home = Home::new(caller);
    let port = free_port();
    let running = home.begin(&[
        "run",
        "--publish",
        &format!("{port}:8000"),
        "--",
        "sh",
        "-c",
        "echo from inside > page; python3 -m http.server 8000",
    ]);
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let mut answer = String::new();
        let mut stream = TcpStream::connect(("127.0.0.1", port));
        if let Ok(stream) = &mut stream
            && stream.set_read_timeout(Some(server::PATIENCE)).is_ok()
            && stream.write_all(b"GET /page HTTP/1.0\r\n\r\n").is_ok()
            && stream.read_to_string(&mut answer).is_ok()
        {
            assert!(answer.contains("200 OK") && answer.ends_with("from inside\n"), "{answer}");
            break;
        }
        assert!(Instant::now() < deadline, "{stream:?} {}", running.stderr());
        std::thread::sleep(Duration::from_millis(20));
    }
    running.signal(Signal::TERM);
    let _ = running.finish();
    wait_until_closed(port);
});

callers!(ports_are_added_listed_and_removed, |caller| {
    let home = Home::new(caller);
    let id = home.create(&[]);
    let _server = Server::start(&home, &id);
    assert!(listed(&home, &id).is_empty());
    let said = home.say(&["port", &id, "add", "0:4001"]).assert_success().stdout();
    let port: u16 = said.trim().strip_prefix("127.0.0.1:").unwrap().parse().unwrap();
    assert_eq!(server::ask(port, b"hello"), b"hello");
    let six = home.say(&["port", &id, "add", "[::1]:0:4001"]).assert_success().stdout();
    let mut stream = TcpStream::connect(six.trim()).unwrap();
    stream.write_all(b"six").unwrap();
    let mut answer = [0; 3];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"six");

    let entry = &listed(&home, &id)[0];
    assert_eq!((&entry["address"], &entry["port"]), (&"127.0.0.1".into(), &port.into()));
    assert_eq!((&entry["inside"], &entry["open"], &entry["total"]), (&4001.into(), &0.into(), &1.into()));
    assert_eq!((&entry["bytes_in"], &entry["bytes_out"]), (&5.into(), &5.into()));
    assert_eq!(listed(&home, &id)[1]["open"], 1);
    assert!(home.say(&["port", &id, "ls"]).assert_success().stdout().contains(&format!("127.0.0.1:{port} ")));

    // What is closed is closed at once, with what went through it.
    home.say(&["port", &id, "rm", six.trim()]).assert_success();
    assert_eq!(stream.read(&mut answer).unwrap_or(0), 0);
    home.say(&["port", &id, "rm", &port.to_string()]).assert_success();
    assert!(!is_open(port) && listed(&home, &id).is_empty());
    let again = home.say(&["port", &id, "rm", &port.to_string()]);
    assert!(again.assert_refused().stderr().contains("hint: "), "{}", again.stderr());

    let audit = home.say(&["audit", &id]).assert_success().stdout();
    for line in [format!("port      added 127.0.0.1:{port}"), format!("port      removed 127.0.0.1:{port}")] {
        assert!(audit.contains(&line), "{audit}");
    }
    home.say(&["stop", &id]).assert_success();
    for words in [&["add", "0:80"][..], &["ls"], &["rm", "80"]] {
        home.say(&[&["port", &id], words].concat()).assert_refused();
    }
});

callers!(what_was_published_is_so_again_after_a_start, |caller| {
    let home = Home::new(caller);
    let port = free_port();
    let publish = format!("{port}:4001");
    let id = home.create(&["--publish", &publish, "--publish", "0:4002"]);
    let expected: Value =
        serde_json::from_str(&format!(r#"{{"address":"127.0.0.1","port":{port},"inside":4001}}"#)).unwrap();
    assert_eq!(home.entry(&id)["ports"][0], expected);
    let inspected = home.say(&["inspect", &id]).assert_success().stdout();
    let inspected: Value = serde_json::from_str(&inspected).unwrap();
    assert_eq!(inspected["spec"]["ports"][0], expected);

    let added = free_port();
    home.say(&["port", &id, "add", &format!("{added}:4001")]).assert_success();
    for _ in 0..3 {
        let server = Server::start(&home, &id);
        assert_eq!(server::ask(port, b"again"), b"again");
        drop(server);
        home.say(&["stop", "--time", "0", &id]).assert_success();
        assert!(!is_open(port) && !is_open(added));
        // At once: nobody of the old one is in the way.
        home.say(&["start", &id]).assert_success();
        let ports: Vec<Value> = listed(&home, &id).iter().map(|entry| entry["inside"].clone()).collect();
        assert_eq!(ports.len(), 2, "{ports:?}");
    }
    home.say(&["rm", "--force", &id]).assert_success();
    assert!(!is_open(port));
});

// Alone: what a killed keeper leaves is cleaned up by whoever comes first, and is locked meanwhile.
callers_alone!(whoever_is_killed_nothing_listens, |caller| {
    let home = Home::new(caller);
    let port = free_port();
    let id = home.create(&["--publish", &format!("{port}:4001")]);
    for victim in ["keeper", "supervisor", "init"] {
        assert!(is_open(port), "before the {victim}");
        let pid = home.status(&id)[victim].as_i64().unwrap().try_into().unwrap();
        kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
        wait_until_closed(port);
        home.say(&["wait", &id]).assert_success();
        home.say(&["start", &id]).assert_success();
    }
});

callers!(a_port_that_is_taken_is_refused_before_anything_starts, |caller| {
    let home = Home::new(caller);
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let publish = format!("{}:80", taken.local_addr().unwrap().port());
    for words in [
        &["create", "--publish", &publish][..],
        &["run", "--publish", "0:81", "--publish", &publish, "--", "true"],
        &["run", "--detach", "--publish", &publish, "--", "true"],
    ] {
        let said = home.say(words);
        let stderr = said.assert_refused().stderr();
        assert!(stderr.contains("cannot listen on 127.0.0.1:") && stderr.contains("hint: "), "{stderr}");
    }
    assert!(home.list().is_empty());
    // Two of one sandbox's are no better.
    let twice = format!("{}:80", free_port());
    home.say(&["create", "--publish", &twice, "--publish", &twice]).assert_refused();
    assert!(home.list().is_empty());

    let id = home.create(&[]);
    let said = home.say(&["port", &id, "add", &publish]);
    assert!(said.assert_refused().stderr().contains("hint: "), "{}", said.stderr());
    assert!(listed(&home, &id).is_empty());
    home.exec(&id, &["true"]);
});

callers!(what_is_no_port_is_refused, |caller| {
    let home = Home::new(caller);
    for bad in [
        "80",
        "80:0",
        "80:65536",
        "65536:80",
        "-1:80",
        "a:b",
        "localhost:80:80",
        "::1:80:80",
        "[::1]:80",
        "127.0.0.1:80",
        "80:80/udp",
        "",
    ] {
        let option = format!("--publish={bad}");
        let said = home.say(&["run", &option, "--", "true"]);
        let stderr = said.assert_refused().stderr();
        assert!(stderr.contains("cause: ") && stderr.contains("hint: "), "{bad}: {stderr}");
    }
    // No address of this machine's.
    let said = home.say(&["create", "--publish", "192.0.2.1:0:80"]);
    assert!(
        said.assert_refused().stderr().contains("hint: this machine has no such address"),
        "{}",
        said.stderr()
    );
    let many: Vec<String> = (0..65).map(|_| "--publish=0:80".to_owned()).collect();
    let words: Vec<&str> = std::iter::once("create").chain(many.iter().map(String::as_str)).collect();
    assert!(home.say(&words).assert_refused().stderr().contains("too many"));
    assert!(home.list().is_empty());
    // As many as may be, and one more.
    let id = home.say(&words[..65]).assert_success().stdout().trim().to_owned();
    assert!(home.say(&["port", &id, "add", "0:80"]).assert_refused().stderr().contains("close one first"));
});

callers!(other_machines_are_warned_of, |caller| {
    let home = Home::new(caller);
    let said = home.say(&["create", "--publish", "0.0.0.0:0:80"]);
    let id = said.assert_success().stdout().trim().to_owned();
    assert!(said.stderr().contains("warning: what is published on 0.0.0.0 is reachable from other machines"));
    let said = home.say(&["port", &id, "add", "[::]:0:80"]);
    assert!(said.assert_success().stderr().contains("on :: is reachable from other machines"));
    let said = home.say(&["port", &id, "add", "127.0.0.2:0:80"]);
    assert_eq!(said.assert_success().stderr(), "");
});
