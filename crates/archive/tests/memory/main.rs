//! Memory stays bounded whatever an archive claims. In a process of its own, whose memory nothing else fills.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs::{self, File};
use std::io::Read;

use archive::{Limit, Limits, Top, UnpackError, unpack};

/// No bound but those that are built in.
const NONE: Limits = Limits { bytes: u64::MAX, entries: u64::MAX, name_length: 4095, depth: 256 };

/// The same block for ever.
struct Endless {
    block: [u8; 512],
    read: usize,
}

impl Read for Endless {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let whole = buffer.len() / 512 * 512;
        buffer[..whole].as_chunks_mut().0.fill(self.block);
        self.read += whole;
        Ok(whole)
    }
}

fn header(kind: u8, name: &[u8], size: &[u8]) -> [u8; 512] {
    let mut block = [0_u8; 512];
    block[..name.len()].copy_from_slice(name);
    block[124..124 + size.len()].copy_from_slice(size);
    block[148..156].copy_from_slice(b"        ");
    block[156] = kind;
    block[257..265].copy_from_slice(b"ustar\x0000");
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    block
}

/// The most memory that this process ever had, in KiB.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn no_archive_makes_memory_grow() {
    let root = tempfile::tempdir().unwrap();
    let directory = File::open(root.path()).unwrap();
    let before = peak();
    for kind in [b'x', b'g', b'L', b'K'] {
        let mut input = Endless { block: header(kind, b"a", b"77777777777"), read: 0 };
        let error = unpack(&mut input, &directory, Top::Kept, &NONE).unwrap_err();
        assert!(matches!(error, UnpackError::Limit { limit: Limit::ExtendedHeader, .. }), "{error:?}");
    }
    assert!(peak() - before < 4 * 1024, "{} KiB", peak() - before);
    // Each is remembered until the end, though it is always the same.
    let mut input = Endless { block: header(b'5', &[b'a'; 100], b"0"), read: 0 };
    let error = unpack(&mut input, &directory, Top::Kept, &NONE).unwrap_err();
    assert!(matches!(error, UnpackError::Limit { limit: Limit::Directories, .. }), "{error:?}");
    assert!(peak() - before < 150 * 1024, "{} KiB", peak() - before);
}
