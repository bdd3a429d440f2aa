//! Programs as people use them, none of which knows of a gateway.

use std::net::ToSocketAddrs as _;
use std::time::Duration;

use harness::{Agentbox, Internet, callers};

callers!(python_and_node_reach_what_is_allowed, |caller| {
    let internet = Internet::new();
    let ca = format!("{}:/ca.pem", internet.ca().display());
    let agentbox = || internet.agentbox(caller).options(["--allow", "allowed.test", "--mount", &ca]);
    let python = "
import ssl, urllib.request
context = ssl.create_default_context(cafile='/ca.pem')
print(urllib.request.urlopen('https://allowed.test/py', context=context).status, urllib.request.urlopen('http://allowed.test/py').status)
";
    let finished = agentbox().run(["python3", "-c", python]);
    assert_eq!(finished.assert_success().stdout(), "200 200\n");
    let node = "Promise.all(['https://allowed.test/node', 'http://allowed.test/node'].map(url => fetch(url)))
        .then(all => console.log(all.map(one => one.status).join(' ')))";
    let finished = agentbox().options(["--env", "NODE_EXTRA_CA_CERTS=/ca.pem"]).run(["node", "-e", node]);
    assert_eq!(finished.assert_success().stdout(), "200 200\n");
    let refused = "fetch('https://other.test/').catch(error => console.log(error.cause.code))";
    let finished = agentbox().run(["node", "-e", refused]);
    assert_eq!(finished.assert_success().stdout(), "ENOTFOUND\n");
    assert!(
        internet
            .seen()
            .connections()
            .iter()
            .all(|connection| connection.to.ip().to_string() == "203.0.113.10")
    );
});

/// Whether packages can be had from here at all.
fn is_reachable(host: &str) -> bool {
    let addresses = (host, 443).to_socket_addrs().into_iter().flatten();
    let reach = |address| std::net::TcpStream::connect_timeout(&address, Duration::from_secs(3)).is_ok();
    let reachable = addresses.into_iter().any(reach);
    if !reachable {
        eprintln!("skipped: {host} cannot be reached from this machine");
    }
    reachable
}

// On the machine's own network, from the real sources.
callers!(packages_are_installed_with_a_preset_and_not_without, |caller| {
    let pip = [
        "python3",
        "-m",
        "pip",
        "install",
        "--break-system-packages",
        "--no-cache-dir",
        "--target",
        "/tmp/x",
        "six",
    ];
    if is_reachable("pypi.org") && std::path::Path::new("/usr/bin/pip3").exists() {
        let agentbox = || Agentbox::shipped(caller).options(["--env", "PIP_RETRIES=0"]);
        agentbox().options(["--preset", "pypi"]).run(pip).assert_success();
        let refused = agentbox().options(["--preset", "npm"]).run(pip);
        assert_ne!(refused.code, 0);
        let line = "blocked: pypi.org (not in allowlist); to allow: --allow pypi.org";
        assert!(refused.stderr().contains(line), "{}", refused.stderr());
    }
    if is_reachable("registry.npmjs.org") && std::path::Path::new("/usr/bin/npm").exists() {
        let npm =
            "cd /tmp && npm install --no-audit --no-fund --no-update-notifier is-number && ls node_modules";
        let finished = Agentbox::shipped(caller).options(["--preset", "npm"]).run(["sh", "-c", npm]);
        assert!(finished.assert_success().stdout().contains("is-number\n"), "{}", finished.stdout());
    }
});
