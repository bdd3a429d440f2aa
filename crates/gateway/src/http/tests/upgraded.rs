//! What speaks something else after a while.

use super::*;

const REQUEST: &str = "GET /ws HTTP/1.1\r\nHost: a.test\r\nSec-WebSocket-Key: k\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
const SWITCHING: &str = "HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Accept: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";

#[tokio::test]
async fn a_websocket_is_a_tunnel() {
    let mut stage = Stage::set().await;
    stage.ask(REQUEST, REQUEST).await;
    // What the server says at once is not held back.
    let greeting = [SWITCHING, "\u{1}hello"].concat();
    stage.answer(&greeting, &greeting).await;
    stage.ask("\u{2}GET / HTTP/1.1\r\nHost: evil.test\n", "\u{2}GET / HTTP/1.1\r\nHost: evil.test\n").await;
    stage.answer("\u{3}any\n", "\u{3}any\n").await;
    assert_eq!(stage.ended().await, Ok(Ended::Upgraded));
}

#[tokio::test]
async fn bytes_that_come_with_the_request_are_too_early() {
    let mut stage = Stage::set().await;
    say(&mut stage.client, &[REQUEST, "GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n"].concat()).await;
    stage.ends_refused("400", Refusal::MalformedRequest).await;
}

#[tokio::test]
async fn bytes_that_come_before_the_answer_are_too_early() {
    let mut stage = Stage::set().await;
    stage.ask(REQUEST, REQUEST).await;
    say(&mut stage.client, "x").await;
    stage.ends_refused("400", Refusal::MalformedRequest).await;
    // Also together with it.
    for _ in 0..20 {
        let mut stage = Stage::set().await;
        stage.ask(REQUEST, REQUEST).await;
        assert_eq!(stage.server.try_write(SWITCHING.as_bytes()).unwrap(), SWITCHING.len());
        assert_eq!(stage.client.try_write(b"x").unwrap(), 1);
        stage.ends_refused("400", Refusal::MalformedRequest).await;
    }
    // Also between two answers.
    let mut stage = Stage::set().await;
    stage.ask(REQUEST, REQUEST).await;
    let interim = "HTTP/1.1 103 Hints\r\n\r\n";
    stage.answer(interim, interim).await;
    say(&mut stage.client, "x").await;
    stage.client.flush().await.unwrap();
    tokio::time::sleep(SHORT).await;
    let _ = stage.server.write_all(SWITCHING.as_bytes()).await;
    stage.ends_refused("400", Refusal::MalformedRequest).await;
}

#[tokio::test]
async fn another_answer_is_an_ordinary_one() {
    let mut stage = Stage::set().await;
    stage.ask(REQUEST, REQUEST).await;
    stage
        .answer(
            "HTTP/1.1 426 No\r\nContent-Length: 4\r\n\r\nno",
            "HTTP/1.1 426 No\r\nContent-Length: 4\r\n\r\nno",
        )
        .await;
    // The next request may come while the answer is on its way, and waits.
    say(&mut stage.client, GET).await;
    hear_nothing(&mut stage.server).await;
    stage.answer("no", "no").await;
    hear(&mut stage.server, GET).await;
    stage.answer(EMPTY, EMPTY).await;
    say(&mut stage.client, "GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n").await;
    stage.ends_refused("403", Refusal::HostDiffers).await;
}

#[tokio::test]
async fn a_client_that_goes_before_the_answer_is_gone() {
    let mut stage = Stage::set().await;
    stage.ask(REQUEST, REQUEST).await;
    drop(stage.client);
    assert_eq!(rest(&mut stage.server).await, "");
    assert_eq!(timeout(LONG, stage.relay).await.unwrap().unwrap(), Ok(Ended::Closed));
}
