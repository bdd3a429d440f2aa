//! Repositories in a layer, read as data: no git ever runs in one.

use std::io::Read as _;

use crate::layer::Directory;
use crate::walk::joined;

/// A file that names a commit or a ref is no longer.
const SHORT: u64 = 1024;
/// A list of refs is not read further.
const LIST: u64 = 16 << 20;

/// The commit that the workspace's own repository stands at inside.
pub(crate) fn tip(top: &Directory, length: usize) -> Option<String> {
    resolve(top, b".git", length)
}

/// The commit that a repository below the workspace stands at; none where the layer does not say.
pub(crate) fn head(top: &Directory, path: &[u8], length: usize) -> Option<String> {
    let dot_git = joined(path, b".git");
    resolve(top, &dot_git, length).or_else(|| {
        let text = read(top, &dot_git, SHORT)?;
        let target = text.strip_prefix(b"gitdir: ")?.trim_ascii();
        resolve(top, &plain(path, target)?, length)
    })
}

/// What HEAD is in a directory of git's.
fn resolve(top: &Directory, directory: &[u8], length: usize) -> Option<String> {
    let name = match read_head(&read(top, &joined(directory, b"HEAD"), SHORT)?, length)? {
        Head::Commit(commit) => return Some(commit),
        Head::Ref(name) => name,
    };
    if let Some(text) = read(top, &joined(directory, &name), SHORT) {
        return commit(&text, length);
    }
    in_list(&read(top, &joined(directory, b"packed-refs"), LIST)?, &name, length)
}

/// What a HEAD says.
pub(crate) enum Head {
    Commit(String),
    Ref(Vec<u8>),
}

/// Reads a HEAD; none where it says something else, or leads away.
pub(crate) fn read_head(text: &[u8], length: usize) -> Option<Head> {
    let Some(name) = text.strip_prefix(b"ref: ") else { return commit(text, length).map(Head::Commit) };
    let name = name.trim_ascii();
    let is_plain = |part: &[u8]| !part.is_empty() && !part.starts_with(b".");
    let is_ref = name.starts_with(b"refs/") && name.split(|byte| *byte == b'/').all(is_plain);
    is_ref.then(|| Head::Ref(name.to_vec()))
}

/// The commit of a ref in a list of refs.
pub(crate) fn in_list(packed: &[u8], name: &[u8], length: usize) -> Option<String> {
    let mut lines = packed.split(|byte| *byte == b'\n');
    lines.find_map(|line| {
        let (object, rest) = line.split_at_checked(length)?;
        (rest.strip_prefix(b" ")? == name).then(|| commit(object, length))?
    })
}

fn commit(text: &[u8], length: usize) -> Option<String> {
    let text = std::str::from_utf8(text.trim_ascii()).ok()?;
    let is_commit = text.len() == length && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_commit.then(|| text.to_ascii_lowercase())
}

/// A whole small file beneath the top.
fn read(top: &Directory, path: &[u8], most: u64) -> Option<Vec<u8>> {
    let (file, _) = top.file(path).ok()?;
    let mut text = Vec::new();
    file.take(most + 1).read_to_end(&mut text).ok()?;
    Some(text).filter(|text| text.len() as u64 <= most)
}

/// Where a relative path leads from a directory, by its text alone; none where that is outside.
pub(crate) fn plain(directory: &[u8], path: &[u8]) -> Option<Vec<u8>> {
    if path.starts_with(b"/") {
        return None;
    }
    let mut parts: Vec<&[u8]> = directory.split(|byte| *byte == b'/').collect();
    for part in path.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join(&b'/')).filter(|path| !path.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_inside() {
        assert_eq!(plain(b"a/b", b"../../.git/modules/b").unwrap(), b".git/modules/b");
        assert_eq!(plain(b"a", b"../../x"), None);
        assert_eq!(plain(b"a", b"/x"), None);
    }
}
