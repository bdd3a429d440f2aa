//! init by itself, as the tests start it and as its size is measured.

use std::process::ExitCode;

fn main() -> ExitCode {
    init::main(std::env::args_os().skip(1)).into()
}
