//! What fuzzing sees of the gateway: one function for each kind of bytes that come from inside or from a server. Each
//! reads them as the gateway does and ends the process where something that must always hold does not.
//!
//! It is there only with the feature `fuzz`, which nothing that ships has.

#![expect(clippy::unwrap_used, reason = "what fails here has been found")]

use std::net::Ipv4Addr;

use hickory_resolver::proto::op::{Message, MessageType, ResponseCode};
use hickory_resolver::proto::rr::RData;

use crate::dns::message::{NotAsked, Question, Reply};
use crate::hello::{self, Hello};
use crate::http::fuzz::is_request;
pub use crate::http::fuzz::{authority, chunks, request, response};
use crate::proxy::authorization;
use crate::speech::{Speech, recognise};
pub use crate::token::fuzz::jwt;

/// The most that is answered to a question: what everybody takes by UDP.
const LARGEST_ANSWER: usize = 512;

/// A message of DNS. What is answered is read by another's reader as an answer to the same question.
pub fn dns(bytes: &[u8]) {
    let address = Ipv4Addr::new(198, 18, 0, 1);
    let question = match Question::read(bytes) {
        Ok(question) => question,
        Err(NotAsked(None)) => return,
        Err(NotAsked(Some(error))) => {
            let message = answered(&error, bytes);
            assert!(message.metadata.response_code != ResponseCode::NoError && message.queries.is_empty());
            return;
        }
    };
    for reply in [Reply::Address(address, 60), Reply::Nothing, Reply::NoName, Reply::Failure] {
        let mut answer = question.answer(reply);
        let message = answered(&answer, bytes);
        assert_eq!(message.queries.len(), 1);
        let query = &message.queries[0];
        assert_eq!(u16::from(query.query_type), question.kind);
        if let Some(name) = &question.name {
            assert_eq!(query.name.to_ascii().to_ascii_lowercase(), format!("{name}."));
        }
        let records: Vec<_> = message.answers.iter().map(|record| (&record.name, &record.data)).collect();
        let expected = RData::A(address.into());
        let has_address = matches!(reply, Reply::Address(..));
        assert_eq!(records, if has_address { vec![(&query.name, &expected)] } else { vec![] });
        // But for the mark of an answer it is the question again.
        answer[2] &= 0x7f;
        let again = Question::read(&answer).unwrap();
        assert_eq!((again.name, again.kind), (question.name.clone(), question.kind));
    }
}

/// An answer as another's reader has it.
fn answered(answer: &[u8], asked: &[u8]) -> Message {
    assert!(answer.len() <= LARGEST_ANSWER);
    let message = Message::from_vec(answer).unwrap();
    assert_eq!(message.metadata.message_type, MessageType::Response);
    assert_eq!(message.metadata.id.to_be_bytes(), asked[..2]);
    message
}

/// The first message of a TLS client. What is decided stays so, whatever comes behind, and a host that is meant was named.
pub fn hello(bytes: &[u8]) {
    let bytes = &bytes[..bytes.len().min(hello::LONGEST)];
    let whole = hello::read(bytes);
    let cuts = (1..8).map(|eighth| bytes.len() * eighth / 8).chain([bytes.len().saturating_sub(1)]);
    for cut in cuts {
        let part = hello::read(&bytes[..cut]);
        assert!(part == Hello::More || part == whole, "{part:?} of {cut} bytes became {whole:?}");
    }
    if let Hello::Host(name) = whole {
        assert_eq!(recognise(bytes), Some(Speech::Tls));
        let name = name.as_str().as_bytes();
        assert!(payloads(bytes).to_ascii_lowercase().windows(name.len()).any(|part| part == name));
    }
}

/// What the records hold, one behind the other.
fn payloads(mut bytes: &[u8]) -> Vec<u8> {
    let mut held = Vec::new();
    while let [_, _, _, high, low, rest @ ..] = bytes {
        let length = usize::from(u16::from_be_bytes([*high, *low])).min(rest.len());
        held.extend(&rest[..length]);
        bytes = &rest[length..];
    }
    held
}

/// What a proxy is asked for, and how a token is shown with it. A token that is found has been said, by itself or in the
/// letters of a password.
pub fn errand(bytes: &[u8]) {
    let Some(shown) = crate::http::fuzz::errand(bytes) else { return };
    if let Ok(token) = authorization::token(shown) {
        assert!(token.len() < shown.len());
        let said = shown.windows(token.len().max(1)).any(|part| part == token.as_bytes());
        assert!(token.is_empty() || said || shown.to_ascii_lowercase().starts_with(b"basic "));
    }
}

/// The first bytes of a client. What is recognised stays so, whatever comes behind, and a request that we or a lenient
/// server would take is never passed on unread.
pub fn speech(bytes: &[u8]) {
    const LONGEST_CUT: usize = 64;
    let whole = recognise(bytes);
    for cut in 0..bytes.len().min(LONGEST_CUT) {
        let part = recognise(&bytes[..cut]);
        assert!(part.is_none() || part == whole, "{part:?} of {cut} bytes became {whole:?}");
    }
    if is_request(bytes) {
        assert_eq!(whole, Some(Speech::Http));
    }
    if is_taken_by_a_lenient_server(bytes) {
        assert!(matches!(whole, Some(Speech::Http | Speech::Tls)), "{whole:?}");
    }
}

/// Whether the first line is three words of which the last names HTTP, whatever is between them. Python's library reads
/// requests so.
fn is_taken_by_a_lenient_server(bytes: &[u8]) -> bool {
    const LONGEST_METHOD: usize = 32;
    let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else { return false };
    let line: String = bytes[..end].iter().map(|byte| char::from(*byte)).collect();
    // What is white space in Unicode is not all of what Python splits at.
    let words = line.split(|letter: char| letter.is_whitespace() || ('\x1c'..='\x1f').contains(&letter));
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    let is_method =
        |word: &str| word.len() <= LONGEST_METHOD && word.bytes().all(|byte| byte.is_ascii_uppercase());
    matches!(words[..], [method, _, version] if is_method(method) && version.starts_with("HTTP/"))
}
