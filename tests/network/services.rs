//! Services of the host: those that are named are reached, by each of their names, and nothing else of the host is.

use harness::{Internet, callers};

use crate::inside::{attempt, get};

callers!(a_service_is_reached_by_each_of_its_names, |caller| {
    let internet = Internet::new();
    let request = |host: &str| format!("tcp {host} 11434 {}", get(host));
    let hosts = ["model", "model.agentbox.internal", "host.docker.internal", "10.200.200.1"].map(request);
    let others =
        ["tcp model 9999 x", "tcp 10.200.200.1 9999 x", "tcp 10.200.200.1 9998 x", "tcp 127.0.0.1 11434 x"];
    let attempts: Vec<&str> = hosts.iter().map(String::as_str).chain(others).collect();
    let options = ["--service", "model=127.0.0.1:11434"];
    let outcome = attempt(internet.agentbox(caller).options(options), &attempts);
    for host in &hosts {
        assert!(outcome.of(host).starts_with("answered HTTP/1.1 200"), "{host}: {}", outcome.of(host));
    }
    assert_eq!(outcome.successes().len(), hosts.len(), "{:?}", outcome.successes());
    let seen = internet.seen();
    assert_eq!(seen.connections().len(), hosts.len());
    assert_eq!(seen.connections_to("127.0.0.1:11434").len(), hosts.len());
    assert_eq!(seen.questions(), []);
});

callers!(a_service_has_another_port_inside_where_that_is_said, |caller| {
    let internet = Internet::new();
    let options = ["--service", "model=127.0.0.1:11434@80", "--service", "lan=10.7.0.9:80@8080"];
    let requests = [("model", 80), ("lan", 8080), ("model", 11434)];
    let requests = requests.map(|(host, port)| format!("tcp {host} {port} {}", get(host)));
    let outcome =
        attempt(internet.agentbox(caller).options(options), &requests.each_ref().map(String::as_str));
    let answers: Vec<bool> =
        requests.iter().map(|r| outcome.of(r).starts_with("answered HTTP/1.1 200")).collect();
    assert_eq!(answers, [true, true, false], "{:?}", outcome.outcomes);
});

callers!(two_services_on_one_port_are_refused, |caller| {
    let options = ["--service", "a=127.0.0.1:1000", "--service", "b=127.0.0.1:2000@1000"];
    let refused = harness::Agentbox::shipped(caller).options(options).run(["true"]);
    refused.assert_refused();
    assert!(refused.stderr().contains("'a' and 'b' are both on port 1000 inside"), "{}", refused.stderr());
});
