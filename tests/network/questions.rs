//! Questions for names: they are answered from the policy alone, whoever they are sent to and however they are put.

use harness::{Agentbox, Internet, callers};
use policy::Wall;

use crate::inside::{attempt, control};

/// Asks a server for a name by UDP or TCP, and prints the code of the answer and its addresses.
const ASK: &str = r#"
import socket, struct, sys
def ask(over, server, name, kind, question=None):
    labels = b''.join(bytes([len(part)]) + part for part in name.encode('latin-1').split(b'.') if part)
    message = question or struct.pack('!6H', 7, 256, 1, 0, 0, 0) + labels + b'\0' + struct.pack('!2H', int(kind), 1)
    family = socket.AF_INET6 if ':' in server else socket.AF_INET
    if over == 'udp':
        talk = socket.socket(family, socket.SOCK_DGRAM); talk.settimeout(3)
        talk.sendto(message, (server, 53)); got = talk.recv(4096)
    else:
        talk = socket.socket(family, socket.SOCK_STREAM); talk.settimeout(3); talk.connect((server, 53))
        talk.sendall(struct.pack('!H', len(message)) + message)
        got = talk.makefile('rb').read(struct.unpack('!H', talk.recv(2))[0])
    number, flags, questions, answers = struct.unpack_from('!4H', got)
    assert number == 7 and flags & 0x8000, got
    return f'{flags & 15} {socket.inet_ntoa(got[-4:]) if answers else ""}'.strip()
for words in sys.argv[1:]:
    try: print(ask(*words.split(' ')))
    except (OSError, struct.error, AssertionError) as error: print(type(error).__name__)
"#;

fn ask(agentbox: Agentbox, questions: &[&str]) -> Vec<String> {
    let argv = ["python3", "-c", ASK].into_iter().chain(questions.iter().copied());
    let finished = agentbox.run(argv);
    finished.assert_success();
    finished.stdout().lines().map(str::to_owned).collect()
}

callers!(every_resolver_is_the_gateway, |caller| {
    let internet = Internet::new();
    let answers = ask(
        internet.agentbox(caller).options(["--allow", "allowed.test", "--allow", "*.wild.test"]),
        &[
            "udp 10.200.200.1 allowed.test 1",
            "tcp 10.200.200.1 ALLOWED.test. 1",
            "udp 192.0.2.53 allowed.test 1",
            "tcp 198.51.100.53 allowed.test 1",
            "udp 2001:db8:0:2::53 allowed.test 1",
            "tcp 2001:db8:0:2::53 allowed.test 1",
            "udp 10.200.200.1 a.wild.test 1",
            // No other type is given, none of which could lead elsewhere.
            "udp 10.200.200.1 allowed.test 28",
            "udp 10.200.200.1 allowed.test 65",
            "udp 10.200.200.1 allowed.test 64",
            "udp 10.200.200.1 allowed.test 255",
            "udp 10.200.200.1 allowed.test 16",
            // Nobody has these.
            "udp 10.200.200.1 wild.test 1",
            "udp 10.200.200.1 other.test 1",
            "udp 192.0.2.53 other.test 28",
            "tcp 192.0.2.53 1.18.198.in-addr.arpa 12",
            "udp 10.200.200.1 allowed.test\u{1}.other.test 1",
            "udp 10.200.200.1 b\u{fc}cher.test 1",
        ],
    );
    let address = "0 198.18.0.1";
    let nothing = "0";
    let expected = [
        address,
        address,
        address,
        address,
        address,
        address,
        "0 198.18.0.2",
        nothing,
        nothing,
        nothing,
        nothing,
        nothing,
        "3",
        "3",
        "3",
        "3",
        "3",
        "3",
    ];
    assert_eq!(answers, expected);
    assert!(internet.seen().is_nothing(), "{:?}", internet.seen());
});

fn no_label_leaves(internet: &Internet, agentbox: Agentbox) -> Result<(), String> {
    let attempts = [
        "name the-secret-is-42.other.test",
        "name the-secret-is-42.allowed.test",
        "tcp 192.0.2.53 853 x",
        "tcp 198.51.100.10 443 x",
        "udp 192.0.2.53 853 x",
    ];
    let outcome = attempt(agentbox.clone(), &attempts);
    // Whichever resolver is asked, and by UDP as by TCP.
    let servers = ["192.0.2.53", "2001:db8:0:2::53"];
    let questions = servers
        .map(|server| ["udp", "tcp"].map(|over| format!("{over} {server} the-secret-is-42.other.test 16")));
    ask(agentbox, &questions.as_flattened().iter().map(String::as_str).collect::<Vec<_>>());
    let seen = internet.seen();
    if let [question, ..] = seen.questions() {
        return Err(format!("a resolver was asked for {}", question.name));
    }
    match outcome.successes().as_slice() {
        [] if seen.is_nothing() => Ok(()),
        successes => Err(format!("{successes:?} {:?}", seen.packets())),
    }
}

callers!(no_data_leaves_in_labels, |caller| {
    let internet = Internet::new();
    let allow = ["--allow", "allowed.test"];
    no_label_leaves(&internet, internet.agentbox(caller).options(allow)).unwrap();
    let weakened =
        |walls: &[Wall]| Agentbox::weakened(caller, walls).behind(internet.prefix()).options(allow);
    no_label_leaves(&internet, weakened(&[])).unwrap();
    let breach = no_label_leaves(&internet, weakened(&[Wall::NetNamespace])).unwrap_err();
    control("net-namespace", caller, &breach);
});

// Each new name below an allowed one can carry something to whoever answers for it, so there are not many at once.
callers!(names_below_an_allowed_one_come_slowly, |caller| {
    let internet = Internet::new();
    let questions: Vec<String> =
        (0..200).map(|number| format!("udp 10.200.200.1 n{number}.wild.test 1")).collect();
    let questions: Vec<&str> = questions.iter().map(String::as_str).collect();
    let allow = ["--allow", "*.wild.test", "--allow", "allowed.test"];
    let argv = ["python3", "-c", ASK].into_iter().chain(questions.iter().copied());
    let finished =
        internet.agentbox(caller).options(allow).run(argv.chain(["udp 10.200.200.1 allowed.test 1"]));
    let said = finished.assert_success().stdout();
    let mut answers: Vec<&str> = said.lines().collect();
    // What a rule names has its address all the same.
    assert!(answers.pop().unwrap().starts_with("0 198.18."), "{said}");
    let blocked = |line: &&str| line.starts_with("blocked: n") && line.contains("too many new names");
    assert!(finished.stderr().lines().any(|line| blocked(&line)), "{}", finished.stderr());
    let found = answers.iter().filter(|answer| answer.starts_with("0 198.18.")).count();
    let later = answers.iter().filter(|answer| **answer == "2").count();
    assert_eq!(found + later, 200, "{answers:?}");
    assert!((128..150).contains(&found), "{found} of 200");
    // Nothing of it has left: a name is asked for by us when somebody connects to it.
    assert!(internet.seen().is_nothing(), "{:?}", internet.seen());
});
