//! What takes too long.

use std::time::Instant;

use super::*;

fn short_head() -> Times {
    Times { head: SHORT, idle: LONG }
}

fn short_idle() -> Times {
    Times { head: LONG, idle: SHORT }
}

#[tokio::test]
async fn a_head_that_comes_byte_by_byte_is_not_waited_for() {
    let stage = Stage::set_with(short_head()).await;
    let Stage { client, relay, server, traffic } = stage;
    let (mut client_in, mut client_out) = client.into_split();
    let dripping = tokio::spawn(async move {
        let mut bytes = b"GET /".iter().chain(std::iter::repeat(&b'x'));
        while let Some(byte) = bytes.next()
            && client_out.write_all(&[*byte]).await.is_ok()
        {
            tokio::time::sleep(SHORT / 10).await;
        }
    });
    let start = Instant::now();
    let mut told = String::new();
    timeout(LONG, client_in.read_to_string(&mut told)).await.unwrap().unwrap();
    assert!(told.starts_with("HTTP/1.1 408 ") && told.contains("\"stalled\""), "{told}");
    assert!(start.elapsed() >= SHORT && start.elapsed() < LONG / 2, "{:?}", start.elapsed());
    drop(client_in);
    assert_eq!(timeout(LONG, relay).await.unwrap().unwrap(), Err(Refusal::Stalled));
    dripping.abort();
    assert_eq!(traffic.sent.get(), 0);
    drop(server);
}

#[tokio::test]
async fn the_second_head_is_not_waited_for_either() {
    let mut stage = Stage::set_with(short_head()).await;
    stage.ask(&[GET, "GET "].concat(), GET).await;
    stage.answer(EMPTY, EMPTY).await;
    stage.ends_refused("408", Refusal::Stalled).await;
}

#[tokio::test]
async fn whoever_asks_nothing_is_let_go() {
    let mut stage = Stage::set_with(short_idle()).await;
    stage.ask(GET, GET).await;
    stage.answer(EMPTY, EMPTY).await;
    assert_eq!(rest(&mut stage.client).await, "");
    assert_eq!(rest(&mut stage.server).await, "");
    assert_eq!(timeout(LONG, stage.relay).await.unwrap().unwrap(), Ok(Ended::Closed));
}

#[tokio::test]
async fn a_body_that_does_not_come_is_not_waited_for() {
    let mut stage = Stage::set_with(short_idle()).await;
    let head = "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5\r\n\r\nab";
    stage.ask(head, head).await;
    stage.ends_refused("408", Refusal::Stalled).await;
}

#[tokio::test]
async fn an_answer_that_does_not_come_is_not_waited_for() {
    let mut stage = Stage::set_with(short_idle()).await;
    stage.ask(GET, GET).await;
    stage.ends_refused("502", Refusal::Unreachable).await;
    // Nor one that does not go on.
    let mut stage = Stage::set_with(short_head()).await;
    stage.ask(GET, GET).await;
    say(&mut stage.server, "HTTP/1.1 ").await;
    stage.ends_refused("502", Refusal::Unreachable).await;
    let mut stage = Stage::set_with(short_idle()).await;
    stage.ask(GET, GET).await;
    let cut = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab";
    stage.answer(cut, cut).await;
    assert_eq!(rest(&mut stage.client).await, "");
    assert_eq!(stage.ended().await, Ok(Ended::Closed));
}

#[tokio::test]
async fn a_client_that_does_not_listen_is_let_go() {
    let mut stage = Stage::set_with(short_idle()).await;
    stage.ask(GET, GET).await;
    say(&mut stage.server, "HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n").await;
    let body = vec![0; 1_000_000];
    while stage.server.write_all(&body).await.is_ok() {}
    assert_eq!(timeout(LONG, stage.relay).await.unwrap().unwrap(), Ok(Ended::Closed));
}

#[tokio::test]
async fn what_moves_slowly_goes_on() {
    let mut stage = Stage::set_with(Times { head: LONG, idle: 4 * SHORT }).await;
    let head = "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 6\r\n\r\n";
    stage.ask(head, head).await;
    for byte in ["a", "b", "c", "d", "e", "f"] {
        tokio::time::sleep(SHORT).await;
        stage.ask(byte, byte).await;
    }
    // While an answer moves, the request may rest.
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n";
    stage.answer(head, head).await;
    for byte in ["a", "b", "c", "d", "e", "f"] {
        tokio::time::sleep(SHORT).await;
        stage.answer(byte, byte).await;
    }
    stage.ask(GET, GET).await;
}
