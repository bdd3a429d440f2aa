//! Compilers and what they build: C with make, Go, Rust.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use harness::{Agentbox, Caller, callers};

use crate::{has, script};

callers!(gcc_and_make, |caller| {
    let text = r#"
mkdir source; cd source
cat > greet.c <<'C'
#include <pthread.h>
#include <stdio.h>
#include <math.h>
static void *run(void *n) { printf("thread %d\n", *(int *)n); return NULL; }
void greet(void) { int n = 3; pthread_t t; pthread_create(&t, NULL, run, &n); pthread_join(t, NULL); printf("%.0f\n", sqrt(1764)); }
C
echo 'void greet(void); int main(void) { greet(); return 0; }' > main.c
printf 'program: main.o greet.o\n\t$(CC) -o $@ $^ -lm -pthread\n%%.o: %%.c\n\t$(CC) -O2 -c $<\n' > Makefile
make -s -j4
./program
echo 'int main(void) { return __builtin_puts("static") < 0; }' > static.c; gcc -O2 -static static.c -o static; ./static
"#;
    let finished = script(Agentbox::shipped(caller), text);
    assert_eq!(finished.stdout(), "thread 3\n42\nstatic\n");
});

/// Where Go is: distributions and its own installer differ.
fn go() -> Option<&'static str> {
    ["/usr/local/go/bin/go", "/usr/bin/go"].into_iter().find(|path| Path::new(path).exists())
}

callers!(go_build_and_test, |caller| {
    let Some(go) = go() else {
        assert!(!has("/usr/bin/go"));
        return;
    };
    let text = format!(
        r#"
mkdir m; cd m
cat > go.mod <<'M'
module example.invalid/m

go 1.19
M
cat > main.go <<'G'
package main

import (
	"fmt"
	"net"
	"sync"
)

func Double(n int) int {{ return n * 2 }}

func main() {{
	var group sync.WaitGroup
	sums := make(chan int, 100)
	for n := 0; n < 100; n++ {{
		group.Add(1)
		go func(n int) {{ defer group.Done(); sums <- n }}(n)
	}}
	group.Wait()
	close(sums)
	sum := 0
	for n := range sums {{ sum += n }}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	fmt.Println("sum", Double(sum), listener != nil, err)
}}
G
cat > main_test.go <<'G'
package main

import "testing"

func TestDouble(t *testing.T) {{ if Double(2) != 4 {{ t.Fatal() }} }}
G
export GOFLAGS=-mod=mod GOTOOLCHAIN=local CGO_ENABLED=0
{go} build -o program .
./program
{go} test ./... | sed 's/\t[0-9.]*s$//'
"#
    );
    let finished = script(Agentbox::shipped(caller), &text);
    assert_eq!(finished.stdout(), "sum 9900 true <nil>\nok  \texample.invalid/m\n");
});

#[test]
fn cargo_build_and_test() {
    harness::as_caller(Caller::Root, harness::Company::Anybody, |caller| {
        let home = PathBuf::from(std::env::var_os("HOME").unwrap_or_default());
        let programs = home.join(".cargo/bin");
        if !programs.join("cargo").exists() || !home.join(".rustup").exists() {
            let _ = writeln!(std::io::stderr(), "skipped: no rustup in '{}'", home.display());
            return;
        }
        let text = r#"
cargo init --quiet --vcs none --name example .
cat > src/main.rs <<'R'
fn main() {
    let handle = std::thread::spawn(|| 6 * 7);
    println!("answer {}", handle.join().unwrap());
}

#[test]
fn it_works() {
    assert_eq!(6 * 7, 42);
}
R
cargo build --quiet --offline
./target/debug/example
cargo test --quiet --offline | grep -o 'test result: ok'
"#;
        let path = format!("{}:{}", programs.display(), harness::path());
        let agentbox = Agentbox::shipped(caller).env("PATH", &path).option("--tools");
        assert_eq!(script(agentbox, text).stdout(), "answer 42\ntest result: ok\n");
    });
}
