//! What does not go through.

use proptest::prelude::*;

use super::*;
use crate::http::fields::{LONGEST_HEAD, find_end};

#[tokio::test]
async fn another_host_on_the_same_connection_ends_refused() {
    let mut stage = Stage::set().await;
    stage.ask(GET, GET).await;
    stage.answer(EMPTY, EMPTY).await;
    say(&mut stage.client, "POST / HTTP/1.1\r\nHost: evil.test\r\nContent-Length: 6\r\n\r\nsecret").await;
    stage.ends_refused("403", Refusal::HostDiffers).await;
}

#[tokio::test]
async fn what_the_judge_refuses_is_not_seen() {
    for host in ["b.test", "a.test:81", "203.0.113.7", "[::1]"] {
        let mut stage = Stage::set().await;
        say(&mut stage.client, &format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n")).await;
        stage.ends_refused("403", Refusal::HostDiffers).await;
    }
}

#[tokio::test]
async fn a_refusal_is_heard_over_a_long_body() {
    let stage = Stage::set().await;
    let Stage { client, relay, mut server, .. } = stage;
    let (mut client_in, mut client_out) = client.into_split();
    let sending = tokio::spawn(async move {
        let head = b"POST / HTTP/1.1\r\nHost: evil.test\r\nContent-Length: 8000000\r\n\r\n";
        client_out.write_all(head).await.unwrap();
        client_out.write_all(&vec![0; 8_000_000]).await
    });
    let mut told = String::new();
    timeout(LONG, client_in.read_to_string(&mut told)).await.unwrap().unwrap();
    assert!(told.starts_with("HTTP/1.1 403 "), "{told}");
    sending.await.unwrap().unwrap();
    drop(client_in);
    assert_eq!(timeout(LONG, relay).await.unwrap().unwrap(), Err(Refusal::HostDiffers));
    assert_eq!(rest(&mut server).await, "");
}

#[tokio::test]
async fn a_request_with_two_meanings_ends_refused_before_the_server_sees_it() {
    let long = format!("GET / HTTP/1.1\r\nHost: a.test\r\nX: {}\r\n\r\n", "x".repeat(LONGEST_HEAD));
    for said in [
        "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        "POST / HTTP/1.0\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: xchunked\r\n\r\n",
        // These have no end, and are not waited for.
        "GET / HTTP/1.1\nHost: a.test\n\n",
        "GET / HTTP/1.1\r\nHost: a.test\r\n\n",
        "GET / HTTP/1.1\r\nHost: a.test\rX",
        "\r\nGET / HTTP/1.1\r\nHost: a.test\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a.test\r\nX: \0",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "CONNECT a.test:80 HTTP/1.1\r\nHost: a.test\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: user@a.test\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close, Host\r\n\r\n",
        long.as_str(),
    ] {
        let mut stage = Stage::set().await;
        say(&mut stage.client, said).await;
        stage.ends_refused("400", Refusal::MalformedRequest).await;
    }
}

#[tokio::test]
async fn a_head_can_be_long_but_not_longer() {
    let request = |length: usize| {
        let start = "GET / HTTP/1.1\r\nHost: a.test\r\nX: ";
        format!("{start}{}\r\n\r\n", "x".repeat(length - start.len() - 4))
    };
    let mut stage = Stage::set().await;
    stage.ask(&request(LONGEST_HEAD), &request(LONGEST_HEAD)).await;
    let mut stage = Stage::set().await;
    say(&mut stage.client, &request(LONGEST_HEAD + 1)).await;
    stage.ends_refused("400", Refusal::MalformedRequest).await;
}

#[tokio::test]
async fn a_bad_chunk_ends_both_connections() {
    let mut stage = Stage::set().await;
    let head = "POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n";
    stage.ask(head, head).await;
    stage.ask("5\r\nhello\r\n", "5\r\nhello\r\n").await;
    say(&mut stage.client, "5;x=y\r\nhello\r\n0\r\n\r\n").await;
    stage.ends_refused("400", Refusal::MalformedRequest).await;
}

#[tokio::test]
async fn a_response_with_two_meanings_is_not_passed_on() {
    for said in [
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        "HTTP/1.1 200 OK\nContent-Length: 5\n\nhello",
        "HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
        "SSH-2.0-OpenSSH_9.2\r\n\r\n",
        "HTTP/1.1 103 Hints\r\nContent-Length: 1\r\n\r\nx",
    ] {
        let mut stage = Stage::set().await;
        stage.ask(GET, GET).await;
        say(&mut stage.server, said).await;
        stage.ends_refused("502", Refusal::MalformedResponse).await;
    }
}

#[tokio::test]
async fn there_is_an_end_to_answers_that_promise_another() {
    let mut stage = Stage::set().await;
    stage.ask(GET, GET).await;
    say(&mut stage.server, &"HTTP/1.1 102 Wait\r\n\r\n".repeat(100)).await;
    let told = rest(&mut stage.client).await;
    assert_eq!(told.matches("HTTP/1.1 102 Wait").count(), 64);
    assert!(told.contains("HTTP/1.1 502 "), "{told}");
    assert_eq!(stage.ended().await, Err(Refusal::MalformedResponse));
}

#[tokio::test]
async fn a_bad_chunk_in_an_answer_cuts_it_off() {
    let mut stage = Stage::set().await;
    stage.ask(GET, GET).await;
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n";
    stage.answer(head, head).await;
    say(&mut stage.server, "1 \r\nx\r\n0\r\n\r\n").await;
    assert_eq!(rest(&mut stage.client).await, "");
    assert_eq!(stage.ended().await, Err(Refusal::MalformedResponse));
}

#[tokio::test]
async fn an_answer_that_nobody_asked_for_is_nobodys() {
    // Behind another, or alone; the client hears nothing of it.
    for (said, heard) in [(&[EMPTY, EMPTY].concat()[..], EMPTY), (EMPTY, "")] {
        let mut stage = Stage::set().await;
        if !heard.is_empty() {
            stage.ask(GET, GET).await;
        }
        stage.answer(said, heard).await;
        assert_eq!(rest(&mut stage.client).await, "");
        assert_eq!(stage.ended().await, Err(Refusal::MalformedResponse));
    }
    // A body where there should be none is the same.
    let mut stage = Stage::set().await;
    let head = "HEAD / HTTP/1.1\r\nHost: a.test\r\n\r\n";
    stage.ask(head, head).await;
    stage
        .answer(
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno",
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n",
        )
        .await;
    assert_eq!(rest(&mut stage.client).await, "");
    assert_eq!(stage.ended().await, Err(Refusal::MalformedResponse));
}

#[tokio::test]
async fn an_answer_is_not_older_than_its_request() {
    let mut stage = Stage::set().await;
    say(&mut stage.client, "GET / HTTP").await;
    tokio::time::sleep(SHORT).await;
    say(&mut stage.server, EMPTY).await;
    tokio::time::sleep(SHORT).await;
    say(&mut stage.client, "/1.1\r\nHost: a.test\r\n\r\n").await;
    stage.ends_refused("502", Refusal::MalformedResponse).await;
}

/// Requests that the server has seen, read by somebody who trusts them; the last one may be cut off.
fn hosts_seen(mut bytes: &[u8]) -> usize {
    let mut seen = 0;
    while let Ok(Some(end)) = find_end(bytes, 0) {
        let head = std::str::from_utf8(&bytes[..end]).unwrap();
        assert!(
            head.contains(" HTTP/1.1\r\nHost: a.test\r\n") && head.matches("ost:").count() == 1,
            "{head:?}"
        );
        let length = head.split("Content-Length: ").nth(1).and_then(|rest| rest.split('\r').next());
        let length = length.map_or(0, |length| length.parse::<usize>().unwrap());
        bytes = bytes.get(end + length..).unwrap_or_default();
        seen += 1;
    }
    seen
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn the_server_sees_requests_for_its_host_alone(
        parts in proptest::collection::vec(prop_oneof![
            Just(GET.to_owned()),
            Just("POST /x HTTP/1.1\r\nhost: A.test\r\nContent-Length: 4\r\n\r\nGET ".to_owned()),
            Just("GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n".to_owned()),
            Just("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 40\r\n\r\n".to_owned()),
            "[ -~\r\n\0]{0,20}",
        ], 0..6),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let Stage { mut client, mut server, relay, .. } = Stage::set().await;
            say(&mut client, &parts.concat()).await;
            client.shutdown().await.unwrap();
            let (mut heard, mut answers) = (Vec::new(), 0);
            let (mut server_in, mut server_out) = server.split();
            let mut buffer = vec![0; 4096];
            loop {
                let count = timeout(LONG, server_in.read(&mut buffer)).await.unwrap().unwrap_or(0);
                if count == 0 {
                    break;
                }
                heard.extend(&buffer[..count]);
                let seen = hosts_seen(&heard);
                assert!(seen <= answers + 1, "a request came before its turn");
                while answers < seen {
                    answers += 1;
                    let _ = server_out.write_all(EMPTY.as_bytes()).await;
                }
            }
            let told = rest(&mut client).await;
            assert!(told.is_empty() || told.starts_with("HTTP/1.1 "), "{told}");
            drop(client);
            let _ = timeout(LONG, relay).await.unwrap().unwrap();
        });
    }
}
