//! Languages that bring a runtime: node, python, the JVM.

use std::io::Write as _;
use std::path::Path;

use harness::{Agentbox, Caller, callers};

use crate::{has, script};

callers!(node, |caller| {
    if !has("/usr/bin/node") {
        return;
    }
    let program = r#"
        const { Worker } = require('worker_threads');
        const { execFileSync } = require('child_process');
        const fs = require('fs'), http = require('http'), os = require('os'), crypto = require('crypto');
        const server = http.createServer((request, response) => response.end('served ' + request.url));
        server.listen(0, '127.0.0.1', async () => {
            const answer = await fetch(`http://127.0.0.1:${server.address().port}/inside`);
            console.log(await answer.text());
            server.close();
            const worker = new Worker("require('worker_threads').parentPort.postMessage(6 * 7)", { eval: true });
            worker.on('message', value => console.log('worker', value));
            worker.on('exit', () => {
                console.log(execFileSync('id', ['-un']).toString().trim(), os.userInfo().username);
                fs.watch('.', () => {}).close();
                fs.writeFileSync('file', crypto.randomBytes(1 << 20));
                console.log(fs.statSync('file').size, WebAssembly.validate(new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0])));
            });
        });"#;
    let finished = Agentbox::shipped(caller).run(["node", "-e", program]);
    assert_eq!(finished.assert_success().stdout(), "served /inside\nworker 42\nagent agent\n1048576 true\n");
});

callers!(python, |caller| {
    let program = r#"
import asyncio, ctypes, multiprocessing, mmap, os, sqlite3, socket, ssl, subprocess, tempfile, threading
found = []
threads = [threading.Thread(target=found.append, args=(n,)) for n in range(50)]
[t.start() for t in threads]; [t.join() for t in threads]
print('threads', len(found))
with multiprocessing.Pool(4) as pool:
    print('processes', sum(pool.map(abs, range(-100, 0))))
database = sqlite3.connect('/workspace/data.db')
database.execute('pragma journal_mode=wal')
database.execute('create table t (n integer)')
database.executemany('insert into t values (?)', ((n,) for n in range(1000)))
database.commit()
print('sqlite', database.execute('select sum(n) from t').fetchone()[0])
async def conversation():
    async def echo(reader, writer):
        writer.write(await reader.readline()); await writer.drain(); writer.close()
    server = await asyncio.start_server(echo, '127.0.0.1', 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    writer.write(b'hello\n')
    print('asyncio', (await reader.readline()).decode().strip())
    server.close()
asyncio.run(conversation())
print('subprocess', subprocess.run(['sh', '-c', 'cat'], input=b'piped', capture_output=True).stdout.decode())
left, right = socket.socketpair()
left.send(b'x'); print('socketpair', right.recv(1).decode())
print('certificates', len(ssl.create_default_context().get_ca_certs()) > 0)
with tempfile.TemporaryFile() as file:
    file.truncate(4096); mmap.mmap(file.fileno(), 4096).close()
print('memfd', os.memfd_create('x') > 2)
"#;
    let finished = Agentbox::shipped(caller).run(["/usr/bin/python3", "-c", program]);
    let expected = "threads 50\nprocesses 5050\nsqlite 499500\nasyncio hello\nsubprocess piped\nsocketpair x\n\
                    certificates True\nmemfd True\n";
    assert_eq!(finished.assert_success().stdout(), expected);
});

callers!(python_with_an_environment_of_its_own, |caller| {
    script(
        Agentbox::shipped(caller),
        "/usr/bin/python3 -m venv --without-pip v; v/bin/python -c 'import json'",
    );
});

const JAVA: &str = r#"
import java.util.concurrent.*;
public class Main {
    public static void main(String[] words) throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(8);
        Future<Integer> answer = pool.submit(() -> 6 * 7);
        System.out.println("answer " + answer.get());
        pool.shutdown();
        System.out.println("child " + new ProcessBuilder("id", "-un").start().inputReader().readLine());
        System.out.println("memory " + (Runtime.getRuntime().maxMemory() >> 20));
        System.out.println("processors " + Runtime.getRuntime().availableProcessors());
    }
}"#;

/// What the program above says behind a word.
fn line<'text>(stdout: &'text str, word: &str) -> &'text str {
    let prefix = format!("{word} ");
    let line = stdout.lines().find_map(|line| line.strip_prefix(prefix.as_str()));
    line.unwrap_or_else(|| panic!("no '{word}' in {stdout}"))
}

callers!(java, |caller| {
    if !has("/usr/bin/javac") {
        return;
    }
    let finished =
        script(Agentbox::shipped(caller).stdin(JAVA), "cat > Main.java; javac Main.java; java Main");
    let stdout = finished.stdout();
    assert_eq!((line(&stdout, "answer"), line(&stdout, "child")), ("42", "agent"));
});

// What a runtime takes for the size of the machine is the sandbox's, where its limits can be seen.
#[test]
fn java_sizes_itself_by_the_limits() {
    harness::as_caller(Caller::Root, harness::Company::Anybody, |caller| {
        if !has("/usr/bin/javac") {
            return;
        }
        if !Path::new("/sys/fs/cgroup/cgroup.controllers").exists() {
            let reason = "the JVM reads limits of cgroup v1 only beside cpuset and cpuacct, which set none";
            let _ = writeln!(std::io::stderr(), "skipped: {reason}");
            return;
        }
        let agentbox = Agentbox::shipped(caller).options(["--memory=1G", "--cpus=1"]).stdin(JAVA);
        let stdout = script(agentbox, "cat > Main.java; javac Main.java; java Main").stdout();
        // A quarter of what it takes for the machine's memory.
        let memory: u64 = line(&stdout, "memory").parse().unwrap();
        assert!((128..=512).contains(&memory), "{stdout}");
        assert_eq!(line(&stdout, "processors"), "1");
    });
}

#[test]
fn node_sizes_itself_by_the_limits() {
    harness::as_caller(Caller::Root, harness::Company::Anybody, |caller| {
        if !has("/usr/bin/node") {
            return;
        }
        let program = "console.log(process.constrainedMemory())";
        let finished = Agentbox::shipped(caller).option("--memory=1G").run(["node", "-e", program]);
        // A kernel of the sandbox's own shows nothing of the host's limits.
        let expected = if harness::backend().has_own_kernel() { "0\n" } else { "1073741824\n" };
        assert_eq!(finished.assert_success().stdout(), expected);
    });
}
