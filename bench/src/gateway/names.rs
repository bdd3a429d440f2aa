//! The resolver of the measurement's network: every name there has the address of the one site, and no other record.

use std::net::UdpSocket;

use anyhow::Result;

use super::network::SITE;

/// How long an answer holds: longer than any measurement.
const SECONDS: u32 = 3600;

const HEAD: usize = 12;
const ADDRESS: [u8; 2] = [0, 1];
const START_OF_AUTHORITY: u8 = 6;

/// Answers until the process ends.
pub(super) fn answer(socket: &UdpSocket) -> Result<()> {
    let mut buffer = [0; 512];
    loop {
        let (length, asker) = socket.recv_from(&mut buffer)?;
        if let Some(reply) = reply(&buffer[..length]) {
            // Whoever is gone needs no answer.
            let _ = socket.send_to(&reply, asker);
        }
    }
}

/// The answer to a message with one question; none to what is none.
fn reply(message: &[u8]) -> Option<Vec<u8>> {
    let name = message.get(HEAD..)?.iter().position(|byte| *byte == 0)?;
    let end = HEAD + name + 1 + 4;
    let question = message.get(HEAD..end)?;
    let has_address = question[question.len() - 4..][..2] == ADDRESS;
    let mut reply = message[..2].to_vec();
    // An answer with authority, recursion available, one question, and the address or who says that there is none.
    let (answers, authorities) = if has_address { (1, 0) } else { (0, 1) };
    reply.extend([0x85, 0x80, 0, 1, 0, answers, 0, authorities, 0, 0]);
    reply.extend(question);
    // The name is the one at the end of the head.
    reply.extend([0xc0, 0x0c, 0, if has_address { 1 } else { START_OF_AUTHORITY }, 0, 1]);
    reply.extend(SECONDS.to_be_bytes());
    if has_address {
        reply.extend([0, 4]);
        reply.extend(SITE.octets());
    } else {
        // Two names that are empty and five times: without them nobody may remember that there is nothing.
        reply.extend([0, 22, 0, 0]);
        (0..5).for_each(|_| reply.extend(SECONDS.to_be_bytes()));
    }
    Some(reply)
}
