//! The explicit proxy: what its clients reach by a token, seen from the other side, and what it is itself.

mod clients;
mod hostile;
mod itself;
mod packages;
mod tokens;
mod upstream;

use std::path::Path;

use harness::{Agentbox, Finished, Internet, Running};
use serde_json::Value;

use crate::speech::TALK;

/// Where it listens.
const PLACE: &str = "127.0.0.1:15004";
const KEY: &str = "0123456789abcdef0123456789abcdef";

/// A proxy on the host of a network, and the program that makes tokens for it.
struct Proxy<'test> {
    internet: &'test Internet,
    agentbox: Agentbox,
    running: Running,
}

impl<'test> Proxy<'test> {
    /// Starts one with a key of ours.
    #[track_caller]
    fn start(internet: &'test Internet, agentbox: Agentbox) -> Self {
        Self::start_as_is(internet, agentbox.env("SIGNING_KEY", KEY))
    }

    #[track_caller]
    fn start_as_is(internet: &'test Internet, agentbox: Agentbox) -> Self {
        let agentbox = agentbox.behind(internet.prefix());
        Self::start_with(internet, agentbox, &[])
    }

    #[track_caller]
    fn start_with(internet: &'test Internet, agentbox: Agentbox, options: &[&str]) -> Self {
        let running = agentbox.clone().start_words(&[&["proxy"], options].concat());
        running.wait_for(&format!("{PLACE}\n"));
        Self { internet, agentbox, running }
    }

    /// A token with these options, as the value of HTTPS_PROXY.
    #[track_caller]
    fn url(&self, options: &[&str]) -> String {
        url(&self.agentbox, options)
    }

    /// A line of a request that shows a token with these options.
    #[track_caller]
    fn field(&self, options: &[&str]) -> String {
        format!("Proxy-Authorization: Bearer {}\\r\\n", token(&self.url(options)))
    }

    /// Says each of these to the proxy, with `|` for a pause, and tells all that it answers.
    #[track_caller]
    fn talk(&self, words: &[String]) -> Vec<String> {
        let words = words.iter().map(|words| format!("127.0.0.1 15004 {words}"));
        let argv = ["/usr/bin/python3", "-c", TALK].map(str::to_owned).into_iter().chain(words);
        let finished = self.internet.run_in_host(argv);
        finished.assert_success();
        finished.stdout().lines().map(str::to_owned).collect()
    }

    /// Runs a client with these variables.
    fn client(&self, variables: &[String], argv: &[&str]) -> Finished {
        let words = ["/usr/bin/env".to_owned()].into_iter().chain(variables.iter().cloned());
        self.internet.run_in_host(words.chain(argv.iter().map(ToString::to_string)))
    }

    /// Fetches something with curl.
    fn curl(&self, url: &str, argv: &[&str]) -> Finished {
        let ca = self.internet.ca().display().to_string();
        let words = ["curl", "-sS", "--max-time", "10", "--cacert", &ca, "--proxy", url];
        self.client(&[], &[&words, argv].concat())
    }

    /// Its records so far of one kind.
    fn records(&self, event: &str) -> Vec<Value> {
        let lines = self.running.stderr();
        let records = lines.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        records.filter(|record| record["event"] == event).collect()
    }
}

#[track_caller]
fn url(agentbox: &Agentbox, options: &[&str]) -> String {
    let finished = agentbox.clone().start_words(&[&["proxy", "token"], options].concat()).finish();
    finished.assert_success();
    finished.stdout().trim_end().to_owned()
}

/// The token in the value of HTTPS_PROXY.
fn token(url: &str) -> &str {
    let token = url.strip_prefix("http://agentbox:").and_then(|rest| rest.split_once('@'));
    token.unwrap().0
}

/// A request for a tunnel.
fn connect(authority: &str, fields: &str) -> String {
    format!("CONNECT {authority} HTTP/1.1\\r\\nHost: {authority}\\r\\n{fields}\\r\\n")
}

/// Everything that was asked for by HTTP, in the order it came.
fn requests(internet: &Internet) -> Vec<harness::Request> {
    internet.seen().connections().iter().flat_map(|connection| connection.requests.clone()).collect()
}

fn text(path: &Path) -> String {
    path.display().to_string()
}
