//! init by itself, as the tests start it and as its size is measured.

use std::process::ExitCode;

fn main() -> ExitCode {
    init::run_from_arguments(std::env::args_os().skip(1))
}
