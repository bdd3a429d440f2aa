//! What an owner's program may pass into a sandbox beside bytes: a pipe, and nothing through which one could get out.

use std::fs::File;
use std::io::Read as _;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use harness::callers;
use tokio::time::timeout;
use wire::{
    Ask, Event, ExecEvent, FileAsk, FileMoved, FileOrder, FileRequest, PackTree, Request, Side, VERSION,
};

use crate::home::Home;

/// Asks for an archive of the workspace through something, and gives what became of it.
fn ask(home: &Home, id: &str, through: OwnedFd) -> Event {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let socket = UnixStream::connect(home.socket(id, "control.sock")).unwrap();
        let (connection, _) = wire::over_socket(socket, Side::Asking).unwrap();
        let mut channel = connection.open().unwrap();
        channel.handle.pass(through).unwrap();
        let pack = FileAsk::Pack(PackTree { path: "/workspace/file".into() });
        let request = Some(FileRequest { ask: Some(pack) });
        let order = FileOrder { request, uid: 1000, gid: 1000, workdir: "/workspace".into() };
        let request = Request { version: VERSION, ask: Some(Ask::File(order)) };
        channel.messages.sender.send_message(&request).await.unwrap();
        let event = channel.messages.receiver.next_message::<ExecEvent>();
        let event = timeout(Duration::from_secs(30), event).await.unwrap().unwrap().unwrap().event.unwrap();
        let _ = channel.messages.sender.send_message(&FileMoved { bytes: 4711 }).await;
        timeout(Duration::from_secs(30), channel.handle.closed()).await.unwrap();
        event
    })
}

callers!(nothing_but_a_pipe_is_passed_into_a_sandbox, |caller| {
    let home = Home::new(caller);
    let id = home.create(&[]);
    home.exec(&id, &["sh", "-c", "echo inside > file"]);
    // The connection of the command before may not be gone yet, and is not waited for: it only makes for more.
    let before = home.held(&id);
    let directory = caller.directory();
    let others: [(&str, OwnedFd); 6] = [
        ("a directory", File::open("/").unwrap().into()),
        ("a file", File::open("/etc/passwd").unwrap().into()),
        ("a file to write to", File::create(directory.path().join("new")).unwrap().into()),
        ("a device", File::open("/dev/null").unwrap().into()),
        ("a socket", UnixStream::pair().unwrap().0.into()),
        ("a listener", TcpListener::bind("127.0.0.1:0").unwrap().into()),
    ];
    for (what, other) in others {
        match ask(&home, &id, other) {
            Event::Failed(failed) => assert_eq!(failed.errno, 22, "{what}"),
            event => panic!("{what} was passed on: {event:?}"),
        }
    }
    assert_eq!(std::fs::read(directory.path().join("new")).unwrap(), b"");
    let (mut reading, pipe) = std::io::pipe().unwrap();
    match ask(&home, &id, pipe.into()) {
        Event::Exited(exited) => assert_eq!(exited.code, 0),
        event => panic!("a pipe was not: {event:?}"),
    }
    let mut archive = String::new();
    reading.read_to_string(&mut archive).unwrap();
    assert!(archive.contains("inside"));
    // What was refused is on no record, and is held by nobody.
    let record = home.say(&["audit", "--json", &id]).assert_success().stdout();
    assert_eq!(record.matches(r#""kind":"file""#).count(), 1, "{record}");
    assert!(record.contains("4711"), "{record}");
    let deadline = Instant::now() + Duration::from_secs(20);
    while home.held(&id) > before {
        assert!(Instant::now() < deadline, "{} are held, {before} before", home.held(&id));
    }
});

// How much it was nobody knows then; that it was, everybody does.
callers!(a_copy_that_is_cut_short_is_on_record, |caller| {
    let home = Home::new(caller);
    let id = home.create(&[]);
    let copying = home.begin(&["cp", "-", &format!("{id}:/workspace")]);
    let deadline = Instant::now() + Duration::from_secs(20);
    while !home.listed(&id).contains("files") {
        assert!(Instant::now() < deadline, "nobody unpacks");
    }
    home.say(&["stop", &id]).assert_success();
    copying.finish().assert_refused();
    let record = home.say(&["audit", "--json", &id]).assert_success().stdout();
    assert!(record.contains(r#""direction":"in","bytes":null,"ok":false"#), "{record}");
});
