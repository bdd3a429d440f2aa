//! Compiles the system call filters of the target machine while the crate is built: at run time they are
//! constants, and no sandbox waits for its filter to be put together.

// The same module as the crate's own; most of it is not needed here.
#[expect(dead_code, unreachable_pub, unused_imports, reason = "the build needs only the compiler of filters")]
#[path = "src/seccomp/mod.rs"]
mod seccomp;

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use policy::Nesting;
use seccomp::{Architecture, Filter, Program};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=src/seccomp");
    println!("cargo::rerun-if-changed=build.rs");
    let architecture = match env::var("CARGO_CFG_TARGET_ARCH")?.as_str() {
        "x86_64" => Architecture::X86_64,
        "aarch64" => Architecture::Aarch64,
        other => return Err(format!("there is no filter for {other}").into()),
    };
    let filters = [
        ("SANDBOX", Filter::for_sandbox(architecture, Nesting::Closed)),
        ("NESTED", Filter::for_sandbox(architecture, Nesting::Open)),
        ("OWN_STACK", Filter::for_own_stack(architecture)),
        ("SUPERVISOR", Filter::for_supervisor(architecture)),
    ];
    let mut text = String::new();
    for (name, program) in filters {
        write_constant(&mut text, name, &program)?;
    }
    fs::write(Path::new(&env::var("OUT_DIR")?).join("filters.rs"), text)?;
    Ok(())
}

fn write_constant(text: &mut String, name: &str, program: &Program) -> std::fmt::Result {
    writeln!(text, "static {name}: [sock_filter; {}] = [", program.instructions().len())?;
    for step in program.instructions() {
        let (code, jt, jf, k) = (step.code, step.jt, step.jf, step.k);
        writeln!(text, "    sock_filter {{ code: {code}, jt: {jt}, jf: {jf}, k: {k} }},")?;
    }
    writeln!(text, "];")
}
