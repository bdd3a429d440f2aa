//! Random and damaged archives: none panics, and none touches anything beside the directory.

use archive::Limits;
use proptest::prelude::*;

use crate::builder::{Builder, Place};

/// Small, so that a lucky number cannot fill the disk.
const SMALL: Limits = Limits { bytes: 100_000, entries: 100, name_length: 300, depth: 10 };

/// Names that an enemy would try, and plain ones that they would lead to.
fn name() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        4 => Just("a"), 4 => Just("b"), 2 => Just("c"), 1 => Just(".."), 1 => Just("."), 1 => Just(""),
        1 => Just("outside"), 1 => Just("secret"), 1 => Just("canary")
    ];
    proptest::collection::vec(part, 1..5).prop_map(|parts| parts.join("/"))
}

/// What one step of an archive is.
#[derive(Clone, Debug)]
enum Step {
    File(String, String),
    Directory(String),
    SymbolicLink(String, String),
    HardLink(String, String),
    Extended(String, String),
    LongName(String),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (name(), "[a-z]{0,600}").prop_map(|(name, contents)| Step::File(name, contents)),
        2 => name().prop_map(Step::Directory),
        2 => (name(), name()).prop_map(|(name, target)| Step::SymbolicLink(name, format!("../{target}"))),
        2 => (name(), name()).prop_map(|(name, target)| Step::HardLink(name, target)),
        1 => ("path|linkpath|size|mtime", name()).prop_map(|(key, value)| Step::Extended(key, value)),
        1 => name().prop_map(Step::LongName),
    ]
}

fn built(steps: &[Step]) -> Vec<u8> {
    let build = |builder: Builder, step: &Step| match step {
        Step::File(name, contents) => builder.file(name, contents),
        Step::Directory(name) => builder.directory(name),
        Step::SymbolicLink(name, target) => builder.symbolic_link(name, target),
        Step::HardLink(name, target) => builder.hard_link(name, target),
        Step::Extended(key, value) => builder.extended(&[(key, value.as_bytes())]),
        Step::LongName(name) => builder.entry(b'L', b"l", format!("{name}\0").as_bytes()),
    };
    steps.iter().fold(Builder::default(), build).end()
}

/// Makes the checksums right again, so that what was damaged is read at all.
fn sign(bytes: &mut [u8]) {
    for block in bytes.as_chunks_mut::<512>().0 {
        if &block[257..262] == b"ustar" {
            block[148..156].copy_from_slice(b"        ");
            let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
            block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn any_bytes_are_refused_in_peace(bytes in proptest::collection::vec(any::<u8>(), 0..3000)) {
        let place = Place::new();
        prop_assert!(place.unpack_within(&bytes, &SMALL).is_err());
        place.assert_untouched();
    }

    #[test]
    fn no_archive_leads_out(steps in proptest::collection::vec(step(), 1..12)) {
        let place = Place::new();
        let bytes = built(&steps);
        // Twice: the second finds what the first has left.
        for _ in 0..2 {
            let _ = place.unpack_within(&bytes, &SMALL);
            place.assert_untouched();
        }
    }

    #[test]
    fn no_damaged_archive_leads_out(
        steps in proptest::collection::vec(step(), 1..8),
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
        cut in any::<prop::sample::Index>(),
        is_cut in any::<bool>(),
    ) {
        let mut bytes = built(&steps);
        for (index, byte) in &damage {
            let index = index.index(bytes.len());
            bytes[index] = *byte;
        }
        sign(&mut bytes);
        if is_cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        let place = Place::new();
        let _ = place.unpack_within(&bytes, &SMALL);
        place.assert_untouched();
    }
}
