//! One target under libFuzzer, which brings the `main`. Which one is said by `FUZZ_TARGET`, as all arguments are
//! libFuzzer's.

#![no_main]

use std::process::exit;
use std::sync::LazyLock;

use targets::Target;

static TARGET: LazyLock<Target> = LazyLock::new(|| {
    let name = std::env::var("FUZZ_TARGET").unwrap_or_default();
    Target::find(&name).unwrap_or_else(|| {
        eprintln!("error: '{name}' is no fuzz target\nhint: set FUZZ_TARGET to a name of fuzz/src/lib.rs");
        exit(2)
    })
});

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| (TARGET.check)(bytes));
