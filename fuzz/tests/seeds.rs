//! Each target has seeds, and takes them: also where there is no fuzzer.

use std::fs;
use std::path::Path;

use targets::TARGETS;

#[test]
fn each_target_takes_its_seeds() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    for target in TARGETS {
        let seeds: Vec<_> = fs::read_dir(corpus.join(target.name)).unwrap().flatten().collect();
        assert!(!seeds.is_empty(), "{} has no seeds", target.name);
        for seed in seeds {
            println!("{} {}", target.name, seed.path().display());
            (target.check)(&fs::read(seed.path()).unwrap());
        }
    }
    assert_eq!(fs::read_dir(corpus).unwrap().count(), TARGETS.len(), "seeds of no target");
}
