//! Programs that fetch packages and sources take the value of HTTPS_PROXY as it is printed, and get all that they came for.

use std::path::Path;

use harness::{Internet, callers};

use super::{Proxy, text};

/// Lays down a repository, an index of Python packages and one of npm's, each with something small in it.
const LAY_DOWN: &str = r#"
import base64, hashlib, io, json, os, subprocess, sys, tarfile, zipfile
os.umask(0o022); os.makedirs(sys.argv[1] + '/npm'); os.chdir(sys.argv[1])
def git(*words): subprocess.run(['git', '-c', 'user.name=t', '-c', 'user.email=t@test', *words], check=True)
git('init', '-q', 'tiny')
open('tiny/said', 'w').write('by git\n')
git('-C', 'tiny', 'add', '.'); git('-C', 'tiny', 'commit', '-qm', 'one')
git('clone', '-q', '--bare', 'tiny', 'tiny.git'); git('-C', 'tiny.git', 'update-server-info')
with zipfile.ZipFile('tiny-1.0-py3-none-any.whl', 'w') as wheel:
    wheel.writestr('tiny.py', 'said = "by pip"\n')
    wheel.writestr('tiny-1.0.dist-info/METADATA', 'Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n')
    wheel.writestr('tiny-1.0.dist-info/WHEEL', 'Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n')
    wheel.writestr('tiny-1.0.dist-info/RECORD', '')
os.makedirs('simple/tiny')
open('simple/tiny/index.html', 'w').write(
    '<!DOCTYPE html><a href="/files/tiny-1.0-py3-none-any.whl">tiny-1.0-py3-none-any.whl</a>')
with tarfile.open('npm/tiny.tgz', 'w:gz') as package:
    for name, said in {'package.json': '{"name":"tiny","version":"1.0.0"}', 'said': 'by npm\n'}.items():
        info = tarfile.TarInfo('package/' + name); info.size = len(said)
        package.addfile(info, io.BytesIO(said.encode()))
digest = base64.b64encode(hashlib.sha512(open('npm/tiny.tgz', 'rb').read()).digest()).decode()
dist = {'tarball': 'https://allowed.test/files/npm/tiny.tgz', 'integrity': 'sha512-' + digest}
versions = {'1.0.0': {'name': 'tiny', 'version': '1.0.0', 'dist': dist}}
open('npm/tiny', 'w').write(json.dumps({'name': 'tiny', 'dist-tags': {'latest': '1.0.0'}, 'versions': versions}))
"#;

/// A program, what it is told, and the file that shows that it got what it wanted.
struct Client {
    program: &'static str,
    script: &'static str,
    got: &'static str,
}

/// Each with nothing but the variable, in a directory of its own.
const CLIENTS: [Client; 4] = [
    Client {
        program: "/usr/bin/curl",
        script: "curl -sSf --cacert $CA -o said https://allowed.test/files/tiny/said",
        got: "said",
    },
    Client {
        program: "/usr/bin/git",
        script: "GIT_SSL_CAINFO=$CA git clone -q https://allowed.test/files/tiny.git out",
        got: "out/said",
    },
    Client {
        program: "/usr/bin/pip3",
        script: "/usr/bin/pip3 --isolated --no-cache-dir --retries 0 install -q --no-deps --cert $CA --target out \
                 --disable-pip-version-check --index-url https://allowed.test/files/simple/ tiny",
        got: "out/tiny.py",
    },
    Client {
        program: "/usr/bin/npm",
        script: "npm install --silent --fetch-retries 0 --no-audit --no-fund --no-update-notifier --cafile $CA --cache cache \
                 --registry https://allowed.test/files/npm/ tiny",
        got: "node_modules/tiny/said",
    },
];

callers!(packages_come_by_the_value_as_it_is_printed, |caller| {
    let internet = Internet::new();
    let proxy = Proxy::start(&internet, internet.agentbox(caller));
    let files = text(&internet.directory().join("files"));
    proxy.client(&[], &["/usr/bin/python3", "-c", LAY_DOWN, &files]).assert_success();
    let allowed = proxy.url(&["--allow", "allowed.test"]);
    let other = proxy.url(&["--allow", "other.test"]);
    for Client { program, script, got } in CLIENTS {
        if !Path::new(program).exists() {
            eprintln!("skipped: there is no {program} here");
            continue;
        }
        let home = internet.directory().join(Path::new(program).file_name().unwrap());
        std::fs::create_dir(&home).unwrap();
        let run = |url: &str| {
            let variables = [
                format!("HOME={}", home.display()),
                format!("CA={}", internet.ca().display()),
                format!("HTTPS_PROXY={url}"),
            ];
            let script = format!("cd $HOME && {script}");
            proxy.client(&variables, &["/bin/sh", "-c", &script])
        };
        let before = internet.seen().connections().len();
        assert_ne!(run(&other).code, 0, "{program}");
        assert_eq!(internet.seen().connections().len(), before, "{program}");
        assert_eq!(proxy.records("refused").last().unwrap()["host"], "allowed.test", "{program}");
        run(&allowed).assert_success();
        let said = std::fs::read_to_string(home.join(got)).unwrap();
        assert!(said.contains("by "), "{program}: {said}");
    }
});
