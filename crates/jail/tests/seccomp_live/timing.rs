//! How long it takes to build a filter, and to put it on a fresh process.

use std::time::Instant;

use jail::seccomp::{Architecture, Filter};
use policy::Nesting;

use crate::sys::time_to_install;

#[test]
#[ignore = "measures"]
fn installing_takes_microseconds() {
    const NATIVE: Architecture = Architecture::NATIVE;
    type Build = fn() -> jail::seccomp::Program;
    let filters: [(&str, Build); 3] = [
        ("sandbox", || Filter::for_sandbox(NATIVE, Nesting::Closed)),
        ("nested", || Filter::for_sandbox(NATIVE, Nesting::Open)),
        ("supervisor", || Filter::for_supervisor(NATIVE)),
    ];
    for (name, build) in filters {
        let program = build();
        let begun = Instant::now();
        for _ in 0..100 {
            std::hint::black_box(build());
        }
        let built = begun.elapsed().as_micros() / 100;
        let mut times: Vec<u32> = (0..1001).map(|_| time_to_install(&program)).collect();
        times.sort_unstable();
        let [median, ninetieth] = [500, 900].map(|index: usize| f64::from(times[index]) / 1000.0);
        let length = program.instructions().len();
        println!(
            "{name}: {length} instructions, built in {built} µs, put on in {median} µs (p90 {ninetieth})"
        );
        assert!(median < 1000.0, "{name}: {median}");
    }
}
