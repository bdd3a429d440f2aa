//! What goes through.

use super::*;

#[tokio::test]
async fn a_connection_is_kept_for_the_next_request() {
    let mut stage = Stage::set().await;
    for number in 0..3 {
        let request = format!("GET /{number} HTTP/1.1\r\nHost: a.test\r\n\r\n");
        stage.ask(&request, &request).await;
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nbody-{number}");
        stage.answer(&answer, &answer).await;
    }
    assert_eq!(stage.traffic.sent.get(), 3 * (GET.len() + 1) as u64);
    assert!(stage.traffic.received.get() > 0);
    assert_eq!(stage.ended().await, Ok(Ended::Closed));
}

#[tokio::test]
async fn a_request_for_the_host_by_its_whole_address_goes_on_without_it() {
    let mut stage = Stage::set().await;
    stage
        .ask(
            "GET http://a.test/x HTTP/1.1\r\nHost: a.test\r\nProxy-Connection: keep-alive\r\nProxy-Authorization: x\r\n\r\n",
            "GET /x HTTP/1.1\r\nHost: a.test\r\n\r\n",
        )
        .await;
}

#[tokio::test]
async fn chunks_go_both_ways() {
    let mut stage = Stage::set().await;
    let head = "POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n";
    stage.ask(head, head).await;
    stage.ask("005\r\nhello\r\n", "5\r\nhello\r\n").await;
    stage.ask("3\r\nab", "3\r\nab").await;
    stage.ask("c\r\n0\r\nX: y\r\n\r\n", "c\r\n0\r\n\r\n").await;
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    stage.answer(head, head).await;
    stage.answer("A\r\n0123456789\r\n", "a\r\n0123456789\r\n").await;
    stage.answer("0\r\n\r\n", "0\r\n\r\n").await;
    stage.ask(GET, GET).await;
    stage.answer(EMPTY, EMPTY).await;
    assert_eq!(stage.ended().await, Ok(Ended::Closed));
}

#[tokio::test]
async fn some_answers_have_no_body() {
    let mut stage = Stage::set().await;
    let head = "HEAD / HTTP/1.1\r\nHost: a.test\r\n\r\n";
    stage.ask(head, head).await;
    let long = "HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n";
    stage.answer(long, long).await;
    for status in ["204 No Content", "304 Not Modified"] {
        stage.ask(GET, GET).await;
        let answer = format!("HTTP/1.1 {status}\r\nETag: x\r\n\r\n");
        stage.answer(&answer, &answer).await;
    }
    stage.ask(GET, GET).await;
    assert_eq!(stage.ended().await, Ok(Ended::Closed));
}

#[tokio::test]
async fn a_body_can_wait_until_it_is_asked_for() {
    let mut stage = Stage::set().await;
    let head = "POST / HTTP/1.1\r\nHost: a.test\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n";
    stage.ask(head, head).await;
    stage.answer("HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 100 Continue\r\n\r\n").await;
    stage.ask("hello", "hello").await;
    stage.answer("HTTP/1.1 103 Hints\r\nLink: x\r\n\r\n", "HTTP/1.1 103 Hints\r\nLink: x\r\n\r\n").await;
    stage.answer(EMPTY, EMPTY).await;
    stage.ask(GET, GET).await;
}

#[tokio::test]
async fn an_answer_can_come_before_the_end_of_its_request() {
    let mut stage = Stage::set().await;
    let head = "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 10\r\n\r\n";
    stage.ask(head, head).await;
    stage.ask("01234", "01234").await;
    stage.answer(EMPTY, EMPTY).await;
    stage.ask("56789", "56789").await;
    stage.ask(GET, GET).await;
    // One that ends the connection does not wait for the rest.
    stage.answer(EMPTY, EMPTY).await;
    stage.ask(head, head).await;
    let close = "HTTP/1.1 413 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    say(&mut stage.server, close).await;
    assert_eq!(rest(&mut stage.client).await, close);
    assert_eq!(stage.ended().await, Ok(Ended::Closed));
}

#[tokio::test]
async fn the_next_request_waits_for_the_answer_to_the_one_before() {
    let mut stage = Stage::set().await;
    let post = "POST /1 HTTP/1.1\r\nHost: a.test\r\nContent-Length: 3\r\n\r\nabc";
    let chunked = "POST /2 HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n";
    stage.ask(&[post, chunked, GET, "DELETE / HTTP/1.1\r\nHost: a.test\r\n\r\n"].concat(), post).await;
    hear_nothing(&mut stage.server).await;
    for next in [chunked, GET] {
        stage.answer(EMPTY, EMPTY).await;
        hear(&mut stage.server, next).await;
        hear_nothing(&mut stage.server).await;
    }
    stage.answer(EMPTY, EMPTY).await;
    stage.ends_refused("403", Refusal::RequestNotAllowed).await;
}

#[tokio::test]
async fn an_answer_can_last_until_its_end() {
    let mut stage = Stage::set().await;
    stage.ask(GET, GET).await;
    stage.answer("HTTP/1.1 200 OK\r\n\r\nhello", "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello").await;
    stage.answer(" world", " world").await;
    stage.server.shutdown().await.unwrap();
    assert_eq!(rest(&mut stage.client).await, "");
    assert_eq!(stage.ended().await, Ok(Ended::Closed));
}

#[tokio::test]
async fn an_old_client_gets_one_answer() {
    let mut stage = Stage::set().await;
    stage
        .ask(
            "GET / HTTP/1.0\r\nHost: a.test\r\nConnection: keep-alive\r\n\r\n",
            "GET / HTTP/1.0\r\nHost: a.test\r\nConnection: close\r\n\r\n",
        )
        .await;
    say(&mut stage.server, "HTTP/1.1 103 Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
    assert_eq!(
        rest(&mut stage.client).await,
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"
    );
    assert_eq!(stage.ended().await, Ok(Ended::Closed));
}

#[tokio::test]
async fn long_bodies_arrive_whole() {
    let body: Vec<u8> = (0..1_048_576u32).map(|number| (number % 251) as u8).collect();
    for size in [body.len(), 100_000, 5000] {
        let mut stage = Stage::set().await;
        let head = format!("PUT / HTTP/1.1\r\nHost: a.test\r\nContent-Length: {}\r\n\r\n", body.len());
        stage.ask(&head, &head).await;
        let mut answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
        for part in body.chunks(size) {
            answer.extend(format!("{:x}\r\n", part.len()).as_bytes());
            answer.extend(part);
            answer.extend(b"\r\n");
        }
        answer.extend(b"0\r\n\r\n");
        let (mut forth, mut back) = (vec![0; body.len()], vec![0; answer.len()]);
        let (mut client_in, mut client_out) = stage.client.split();
        let (mut server_in, mut server_out) = stage.server.split();
        // All at once: the server answers while it still reads.
        let done = tokio::try_join!(
            client_out.write_all(&body),
            server_in.read_exact(&mut forth),
            server_out.write_all(&answer),
            client_in.read_exact(&mut back),
        );
        done.unwrap();
        assert!(forth == body && back == answer);
        assert_eq!(stage.traffic.sent.get(), (head.len() + body.len()) as u64);
        assert_eq!(stage.traffic.received.get(), answer.len() as u64);
        stage.ask(GET, GET).await;
    }
}

#[tokio::test]
async fn either_side_may_go() {
    // The client, at once, within a head, within a body, and within an answer.
    for said in ["", "GET / HT", "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5\r\n\r\nab", GET] {
        let mut stage = Stage::set().await;
        say(&mut stage.client, said).await;
        if said == GET {
            hear(&mut stage.server, GET).await;
            say(&mut stage.server, "HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n").await;
        }
        drop(stage.client);
        if said == GET {
            let body = vec![0; 1_000_000];
            while stage.server.write_all(&body).await.is_ok() {}
        }
        assert_eq!(timeout(LONG, stage.relay).await.unwrap().unwrap(), Ok(Ended::Closed), "{said:?}");
    }
    // The server, between two requests, and within an answer.
    let mut stage = Stage::set().await;
    stage.ask(GET, GET).await;
    stage.answer(EMPTY, EMPTY).await;
    drop(stage.server);
    assert_eq!(rest(&mut stage.client).await, "");
    assert_eq!(timeout(LONG, stage.relay).await.unwrap().unwrap(), Ok(Ended::Closed));
    let mut stage = Stage::set().await;
    stage.ask(GET, GET).await;
    let cut = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab";
    stage.answer(cut, cut).await;
    drop(stage.server);
    assert_eq!(rest(&mut stage.client).await, "");
    assert_eq!(timeout(LONG, stage.relay).await.unwrap().unwrap(), Ok(Ended::Closed));
}

#[tokio::test]
async fn a_server_that_goes_without_an_answer_is_at_fault() {
    let mut stage = Stage::set().await;
    stage.ask(GET, GET).await;
    drop(stage.server);
    let told = rest(&mut stage.client).await;
    assert!(told.starts_with("HTTP/1.1 502 ") && told.contains("\"host\":\"a.test\""), "{told}");
    drop(stage.client);
    assert_eq!(timeout(LONG, stage.relay).await.unwrap().unwrap(), Err(Refusal::Unreachable));
    // On a connection that was kept, the client asks again by itself.
    let mut stage = Stage::set().await;
    stage.ask(GET, GET).await;
    stage.answer(EMPTY, EMPTY).await;
    stage.ask(GET, GET).await;
    drop(stage.server);
    assert_eq!(rest(&mut stage.client).await, "");
    assert_eq!(timeout(LONG, stage.relay).await.unwrap().unwrap(), Ok(Ended::Closed));
}

#[tokio::test]
async fn a_server_that_stops_reading_can_still_answer() {
    let mut stage = Stage::set().await;
    let head = "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 100000000\r\n\r\n";
    stage.ask(head, head).await;
    let answer = "HTTP/1.1 413 No\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno";
    say(&mut stage.server, answer).await;
    let Stage { client, relay, .. } = stage;
    let (mut client_in, mut client_out) = client.into_split();
    let sending = tokio::spawn(async move {
        let body = vec![0; 1_000_000];
        for _ in 0..100 {
            if client_out.write_all(&body).await.is_err() {
                break;
            }
        }
    });
    let mut told = vec![0; answer.len()];
    timeout(LONG, client_in.read_exact(&mut told)).await.unwrap().unwrap();
    assert_eq!(String::from_utf8_lossy(&told), answer);
    drop(client_in);
    assert_eq!(timeout(LONG, relay).await.unwrap().unwrap(), Ok(Ended::Closed));
    sending.await.unwrap();
}

#[tokio::test]
async fn a_server_that_breaks_off_has_still_answered() {
    let answer = "HTTP/1.1 413 No\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno";
    // What is seen first, the answer or that it broke off, is chance.
    for _ in 0..20 {
        let mut stage = Stage::set().await;
        let head = "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 10\r\n\r\n";
        stage.ask(&[head, "0123"].concat(), head).await;
        // There is no pause in which the relay could see one without the other.
        assert_eq!(stage.client.try_write(b"4567").unwrap(), 4);
        assert_eq!(stage.server.try_write(answer.as_bytes()).unwrap(), answer.len());
        drop(stage.server);
        assert_eq!(rest(&mut stage.client).await, answer);
        drop(stage.client);
        assert_eq!(timeout(LONG, stage.relay).await.unwrap().unwrap(), Ok(Ended::Closed));
    }
}

#[tokio::test]
async fn a_silent_connection_is_small() {
    let ((_client, inner), (outer, _server)) = (pair().await, pair().await);
    let (times, traffic) = (Times { head: LONG, idle: LONG }, Traffic::default());
    let between = Between { client: &inner, held: Vec::new(), server: &outer, traffic: &traffic };
    let relaying = relay(between, &OnlyHere, &times);
    assert!(size_of_val(&relaying) <= 3072, "{}", size_of_val(&relaying));
}

#[tokio::test]
async fn a_request_for_elsewhere_is_left_with_all_behind_it() {
    let mut stage = Stage::set().await;
    let other = "POST / HTTP/1.1\r\nHost: elsewhere.test\r\nContent-Length: 3\r\n\r\nabcGET ";
    say(&mut stage.client, &format!("{GET}{other}")).await;
    hear(&mut stage.server, GET).await;
    stage.answer(EMPTY, EMPTY).await;
    let ended = timeout(LONG, stage.relay).await.unwrap().unwrap();
    assert_eq!(ended, Ok(Ended::Elsewhere(other.as_bytes().to_vec())));
    assert_eq!(rest(&mut stage.server).await, "");
}
