//! The probe: a static program that tests bring into sandboxes. Each command does one thing that a shell
//! cannot, and prints what came of it. It runs on the hostile side and proves nothing by itself: what counts is
//! what the test sees on the host.

use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["hello"] => println!("hello"),
        _ => {
            eprintln!("probe: unknown command {words:?}");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}
