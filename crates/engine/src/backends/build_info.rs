//! What Go's linker writes into a program about how it was built: which module its main package is of, and of which
//! version. The file is some program that the caller may execute; nothing in it is believed to be well-formed.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;

/// The section, and how it begins.
const SECTION: &[u8] = b".go.buildinfo\0";
const MAGIC: &[u8] = b"\xff Go buildinf:";
/// Where the strings begin, if they lie there themselves.
const HEADER: usize = 32;
/// The flag that says so, in the byte after the magic and the size of a pointer.
const INLINE: u8 = 2;
/// What surrounds the text about modules.
const SENTINEL: usize = 16;
/// More is not read of a section.
const MOST: u64 = 1 << 20;
/// More sections are not looked at.
const MOST_SECTIONS: u16 = 512;

/// The version of the module that the main package belongs to; none where the file does not tell.
pub(super) fn main_module(path: &Path) -> Option<String> {
    let mut file = File::open(path).ok()?;
    parse(&section(&mut file).ok()??)
}

/// The section of a 64-bit little-endian ELF file.
fn section(file: &mut File) -> io::Result<Option<Vec<u8>>> {
    let header = read_at(file, 0, 64)?;
    if header.get(..6) != Some(b"\x7fELF\x02\x01") {
        return Ok(None);
    }
    let (Some(table), Some(size), Some(count), Some(names)) =
        (number(&header, 40), short(&header, 58), short(&header, 60), short(&header, 62))
    else {
        return Ok(None);
    };
    if size != 64 || count > MOST_SECTIONS || names >= count {
        return Ok(None);
    }
    let table = read_at(file, table, u64::from(size) * u64::from(count))?;
    let place = |index: u16| {
        let entry = table.get(usize::from(index) * 64..)?;
        Some((word(entry, 0)?, number(entry, 24)?, number(entry, 32)?))
    };
    let Some((_, offset, length)) = place(names) else { return Ok(None) };
    let texts = read_at(file, offset, length)?;
    for index in 0..count {
        let Some((name, offset, length)) = place(index) else { break };
        if texts.get(name as usize..).is_some_and(|text| text.starts_with(SECTION)) {
            return read_at(file, offset, length).map(Some);
        }
    }
    Ok(None)
}

/// The version in the text about modules: `mod`, the module, its version.
fn parse(section: &[u8]) -> Option<String> {
    let flags = *section.get(15)?;
    if !section.starts_with(MAGIC) || flags & INLINE == 0 {
        return None;
    }
    let (_, rest) = text(section.get(HEADER..)?)?;
    let (modules, _) = text(rest)?;
    let modules = modules.get(SENTINEL..modules.len().checked_sub(SENTINEL)?)?;
    let modules = std::str::from_utf8(modules).ok()?;
    let mut words = modules.lines().find(|line| line.starts_with("mod\t"))?.split('\t').skip(2);
    words.next().map(str::to_owned)
}

/// A text with its length before it, and what follows.
fn text(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut length = 0_u64;
    for (index, byte) in bytes.iter().enumerate().take(9) {
        length |= u64::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return bytes.get(index + 1..)?.split_at_checked(usize::try_from(length).ok()?);
        }
    }
    None
}

fn read_at(file: &mut File, offset: u64, length: u64) -> io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(offset))?;
    let mut bytes = Vec::new();
    file.take(length.min(MOST)).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn short(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn number(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn section_of(modules: &str) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend([8, INLINE]);
        bytes.resize(HEADER, 0);
        bytes.push(8);
        bytes.extend(b"go1.26.8");
        let length = modules.len() + 2 * SENTINEL;
        bytes.extend([(length & 0x7f) as u8 | 0x80, (length >> 7) as u8]);
        bytes.extend([b'-'; SENTINEL]);
        bytes.extend(modules.as_bytes());
        bytes.extend([b'-'; SENTINEL]);
        bytes
    }

    #[test]
    fn the_version_of_the_main_module_is_found() {
        let modules = format!(
            "path\tgvisor.dev/gvisor/runsc\nmod\tgvisor.dev/gvisor\tv0.0.0-20260905035102-160fafc42237\th1:x=\ndep\ta\tv1\n{}",
            "dep\tpadding\tv1.0.0\n".repeat(8)
        );
        assert_eq!(parse(&section_of(&modules)).as_deref(), Some("v0.0.0-20260905035102-160fafc42237"));
        assert_eq!(parse(&section_of(&"dep\ta\tv1\n".repeat(20))), None);
        assert_eq!(main_module(Path::new("/proc/self/exe")), None, "this is no program of Go's");
        assert_eq!(main_module(Path::new("/dev/null")), None);
    }

    proptest! {
        #[test]
        fn nothing_is_too_odd_to_be_read(bytes in proptest::collection::vec(any::<u8>(), 0..300), cut in 0usize..400) {
            let _ = parse(&bytes);
            let mut whole = section_of(&"mod\ta\tv1\n".repeat(20));
            whole.truncate(cut);
            let _ = parse(&whole);
            let mut odd = MAGIC.to_vec();
            odd.extend([8, INLINE]);
            odd.resize(HEADER, 0);
            odd.extend(bytes);
            let _ = parse(&odd);
        }
    }
}
