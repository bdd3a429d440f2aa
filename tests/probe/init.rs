//! An init that turned against its supervisor. It takes the place of ours where a test starts agentbox with this
//! program beside it, and speaks to the control channel as its first and only user.

use std::fs;
use std::io::{Read as _, Write as _};
use std::time::Duration;

const OPEN: u8 = 0x10;
const DATA: u8 = 0x20;
const MESSAGES: u8 = 0;
const OUT: u8 = 2;
/// More than anybody may hold, and an end to it.
const FLOOD: usize = 1 << 30;

/// Attacks as the file says that the test has mounted.
pub(crate) fn attack() {
    let attack = fs::read_to_string("/attack/name").unwrap();
    // The exec that is asked for has been read when the channel is known.
    let mut question = [0; 4096];
    let asked = std::io::stdin().read(&mut question).unwrap();
    let channel = u32::from_le_bytes(question[..4].try_into().unwrap());
    assert!(asked > 8 && question[4] == OPEN, "no question came");
    match attack.trim() {
        // Channels that nobody asked for, each filled to its window, until the other side ends it.
        "channels" => flood(|number| {
            let id = 2 * (number as u32 / 4 + 1);
            let open = if number % 4 == 0 { frame(id, OPEN, &[]) } else { Vec::new() };
            [open, frame(id, DATA | OUT, &[0; 1 << 16])].concat()
        }),
        // Channels and nothing in them.
        "openings" => flood(|number| frame(2 * number as u32 + 2, OPEN, &[])),
        // Output without a window.
        "output" => flood(|_| frame(channel, DATA | OUT, &[b'x'; 1 << 16])),
        // A message that says it is larger than any, and comes.
        "message" => flood(|number| match number {
            0 => frame(channel, DATA | MESSAGES, &[0xff, 0xff, 0xff, 0xff, 0x0f]),
            _ => frame(channel, DATA | MESSAGES, &[0; 1 << 16]),
        }),
        // Bytes that are no frames.
        "garbage" => flood(|number| vec![number as u8 | 0xf0; 1 << 16]),
        // Part of a frame, and the end.
        "cut" => send(&frame(channel, DATA | OUT, &[0; 100])[..50]),
        // Neither a word nor an ear.
        "silence" => std::thread::sleep(Duration::from_secs(600)),
        other => panic!("unknown attack '{other}'"),
    }
}

/// Writes what `make` makes until nobody reads any more, or it has been far too much.
fn flood(make: impl Fn(usize) -> Vec<u8>) {
    let mut stdout = std::io::stdout().lock();
    let (mut written, mut number) = (0, 0);
    while written < FLOOD {
        let bytes = make(number);
        if stdout.write_all(&bytes).and_then(|()| stdout.flush()).is_err() {
            return;
        }
        written += bytes.len();
        number += 1;
    }
}

fn send(bytes: &[u8]) {
    let mut stdout = std::io::stdout().lock();
    let _ = stdout.write_all(bytes).and_then(|()| stdout.flush());
}

fn frame(channel: u32, what: u8, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_le_bytes();
    [&channel.to_le_bytes()[..], &[what], &length[..3], payload].concat()
}
