//! Messages to the resolver that are no questions, or whose names have more than one reading: each gets an error or
//! nothing, and the next question is answered.

use harness::{Internet, callers};

/// Sends each of the messages by UDP and by TCP, and prints what came back up to the answer to a good question that
/// follows it: codes, or nothing.
const SPOIL: &str = r#"
import socket, struct, sys
good = bytes.fromhex('000701000001000000000000') + b'\7allowed\4test\0\0\1\0\1'
def code(got):
    return 'good' if got[:2] == b'\0\7' and got[-4:] == b'\xc6\x12\0\1' else got[3] & 15
talk = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); talk.settimeout(5)
for bad in map(bytes.fromhex, sys.argv[1:]):
    for message in (bad, good): talk.sendto(message, ('10.200.200.1', 53))
    codes = [code(talk.recv(4096))]
    while codes[-1] != 'good': codes.append(code(talk.recv(4096)))
    codes.append('/')
    with socket.create_connection(('10.200.200.1', 53), 5) as stream:
        try:
            for message in (bad, good): stream.sendall(struct.pack('!H', len(message)) + message)
            stream.shutdown(socket.SHUT_WR)
            answers = stream.makefile('rb')
            while head := answers.read(2): codes.append(code(answers.read(struct.unpack('!H', head)[0])))
        # It was closed before the good one was read.
        except OSError: pass
    print(*codes)
with socket.create_connection(('10.200.200.1', 53), 5) as stream:
    stream.sendall(struct.pack('!H', len(good) + 9) + good); stream.shutdown(socket.SHUT_WR); print(stream.recv(9))
"#;

/// What is asked of a good question: recursion, of one question.
const ASKED: [u8; 2] = [1, 0];
const ONE: u16 = 1;
const NAME: &[u8] = b"\x07allowed\x04test\0";
/// An address, of the internet.
const END: &[u8] = b"\0\x01\0\x01";

fn message(flags: [u8; 2], questions: u16, rest: &[&[u8]]) -> String {
    let head = [&[0, 9][..], &flags, &questions.to_be_bytes(), &[0; 6]].concat();
    let bytes = [head, rest.concat()].concat();
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

callers!(messages_that_are_no_questions_do_no_harm, |caller| {
    let internet = Internet::new();
    let named = |name: &[u8]| message(ASKED, ONE, &[name, END]);
    let nothing = "good /";
    let malformed = "1 good / 1 good";
    let nobody = "3 good / 3 good";
    let long = [&[64][..], &[b'a'; 64], &[0]].concat();
    let deep = [b"\x01a".repeat(128), vec![0]].concat();
    let cases = [
        // Cut off: in the head, behind it, in the name, in the end.
        ("0009".to_owned(), nothing),
        (message(ASKED, ONE, &[]), malformed),
        (message(ASKED, ONE, &[b"\x07allow"]), malformed),
        (message(ASKED, ONE, &[NAME, b"\0"]), malformed),
        // An answer, an update, and one that says that it is cut off.
        (message([0x81, 0], ONE, &[NAME, END]), nothing),
        (message([0x29, 0], ONE, &[NAME, END]), "4 good / 4 good"),
        (message([3, 0], ONE, &[NAME, END]), malformed),
        // No question, two, and one of another class.
        (message(ASKED, 0, &[NAME, END]), malformed),
        (message(ASKED, 2, &[NAME, END, NAME, END]), malformed),
        (message(ASKED, ONE, &[NAME, b"\0\x01\0\x03"]), "5 good / 5 good"),
        // Names that go on elsewhere or in themselves, and too long ones.
        (named(b"\xc0\x0c"), malformed),
        (named(b"\x07allowed\xc0\x0c"), malformed),
        (named(&long), malformed),
        (named(&deep), malformed),
        // Names of no host: a dot, a zero or a letter of another script in a label, and the root.
        (named(b"\x0callowed.test\0"), nobody),
        (named(b"\x08allowed\0\x04test\0"), nobody),
        (named(b"\x08\xc3\xa4llowed\x04test\0"), nobody),
        (named(b"\0"), nobody),
    ];
    let argv = ["python3", "-c", SPOIL].into_iter().chain(cases.iter().map(|(hex, _)| hex.as_str()));
    let finished = internet.agentbox(caller).options(["--allow", "allowed.test"]).run(argv);
    let said = finished.assert_success().stdout();
    let expected: Vec<&str> = cases.iter().map(|(_, codes)| *codes).chain(["b''"]).collect();
    assert_eq!(said.lines().collect::<Vec<_>>(), expected);
    assert!(internet.seen().is_nothing(), "{:?}", internet.seen());
});
