//! What is allowed goes through the owner's own proxy, where there is one, and what is not does not.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};

use harness::{Caller, Internet, callers};

use crate::inside::{attempt, get};

/// A proxy on 3128 that knows CONNECT and prints what it is asked; it refuses what is called so.
const PROXY: &str = r#"
import asyncio, sys
async def carry(read, write):
    while data := await read.read(65536): write.write(data); await write.drain()
    write.close()
async def serve(read, write):
    head = (await read.readuntil(b'\r\n\r\n')).decode()
    print(head.split('\r\n')[0], *[line for line in head.split('\r\n') if line.startswith('Proxy-')], sep=' | ', flush=True)
    host, port = head.split(' ')[1].rsplit(':', 1)
    if host.startswith('refused'):
        write.write(b'HTTP/1.1 403 Forbidden\r\n\r\n'); write.close(); return
    out_read, out_write = await asyncio.open_connection('203.0.113.20' if port == '22' else '203.0.113.10', int(port))
    write.write(b'HTTP/1.1 200 Connection established\r\n\r\n')
    await asyncio.gather(carry(read, out_write), carry(out_read, write), return_exceptions=True)
async def main():
    server = await asyncio.start_server(serve, '127.0.0.1', 3128)
    print('ready', flush=True)
    asyncio.get_event_loop().call_later(60, sys.exit)
    await server.serve_forever()
asyncio.run(main())
"#;

/// The proxy as a process; it ends when dropped.
pub(crate) struct Proxy {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Proxy {
    pub(crate) fn start(internet: &Internet) -> Self {
        let python = std::path::Path::new("/usr/bin/python3");
        let mut command = Caller::Root.command_behind(&internet.prefix(), python, &[]);
        let mut child =
            command.args(["-c", PROXY]).stdout(Stdio::piped()).stdin(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert_eq!(lines.next().unwrap().unwrap(), "ready");
        Self { child, lines }
    }

    pub(crate) fn asked(&mut self, count: usize) -> Vec<String> {
        self.lines.by_ref().take(count).map(Result::unwrap).collect()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

callers!(what_is_allowed_goes_through_the_owners_proxy, |caller| {
    let internet = Internet::new();
    let mut proxy = Proxy::start(&internet);
    let web = format!("tcp allowed.test 80 {}", get("allowed.test"));
    let outcome = attempt(
        internet.agentbox(caller).options([
            "--upstream-proxy",
            "http://me:pass@127.0.0.1:3128",
            "--allow",
            "allowed.test",
            "--allow",
            "raw.test:22",
            "--allow",
            "refused.test",
            "--allow",
            "203.0.113.10:80",
        ]),
        &[
            &web,
            "tcp raw.test 22 ",
            "tcp refused.test 443 x",
            "tcp other.test 80 x",
            "tcp 203.0.113.10 80 GET / HTTP/1.0\r\n\r\n",
            "tcp 10.7.0.9 80 x",
        ],
    );
    assert!(outcome.of(&web).starts_with("answered HTTP/1.1 200"), "{}", outcome.of(&web));
    assert!(
        outcome.of("tcp raw.test 22 ").starts_with("answered SSH-"),
        "{}",
        outcome.of("tcp raw.test 22 ")
    );
    assert_eq!(outcome.successes().len(), 3, "{:?}", outcome.successes());
    let who = "Proxy-Authorization: Basic bWU6cGFzcw==";
    let mut asked = proxy.asked(4);
    asked.sort();
    let expected = ["203.0.113.10:80", "allowed.test:80", "raw.test:22", "refused.test:443"];
    assert_eq!(asked, expected.map(|authority| format!("CONNECT {authority} HTTP/1.1 | {who}")));
    let stderr = outcome.finished.stderr();
    assert!(stderr.contains("blocked: refused.test:443 (the upstream proxy refuses it)\n"), "{stderr}");
    assert!(stderr.contains("weaker    egress-addresses   http://…@127.0.0.1:3128 finds out"), "{stderr}");
    assert!(!stderr.contains("pass"), "{stderr}");
    // Nobody else was asked for a name.
    assert_eq!(internet.seen().questions(), []);
});
