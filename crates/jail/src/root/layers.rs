//! The layers of an image as one tree, looked at from the host before anything is mounted. Their contents are a
//! stranger's: every directory is opened beneath its layer without following a link, and what is read is bounded.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read as _;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, Stat};

use crate::error::JailError;

/// What says that a directory hides those of lower layers.
const OPAQUE: &str = "user.overlay.opaque";
/// The most names at the top of an image: each is a mount.
const MOST_AT_TOP: usize = 200;

/// Something in an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// Nothing.
    Absent,
    /// A directory, with its mode and its owner and group as they are on the host's disk.
    Directory {
        /// Its access rights.
        mode: u32,
        /// Its owner.
        uid: u32,
        /// Its group.
        gid: u32,
    },
    /// A symbolic link, and where it leads.
    Link(PathBuf),
    /// A file.
    File,
}

/// Layers, the lowest first.
#[derive(Clone, Copy, Debug)]
pub struct Layers<'a> {
    directories: &'a [PathBuf],
}

impl<'a> Layers<'a> {
    /// The layers in these directories.
    #[must_use]
    pub const fn new(directories: &'a [PathBuf]) -> Self {
        Self { directories }
    }

    /// What is at an absolute and normal path, with no link followed: one on the way is what is found.
    #[must_use]
    pub fn look(&self, path: &Path) -> Seen {
        self.find(path).map_or(Seen::Absent, |(_, _, seen)| seen)
    }

    /// The contents of a file of at most so many bytes; none where there is no such file, or only behind a link.
    #[must_use]
    pub fn read(&self, path: &Path, most: u64) -> Option<Vec<u8>> {
        let (directory, name, seen) = self.find(path)?;
        if seen != Seen::File {
            return None;
        }
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = File::from(rustix::fs::openat(&directory, &name, flags, Mode::empty()).ok()?);
        let mut bytes = Vec::new();
        file.take(most + 1).read_to_end(&mut bytes).ok()?;
        (bytes.len() as u64 <= most).then_some(bytes)
    }

    /// Those that show, the lowest first. An overlay does not see that the top of a layer hides what is below, and takes
    /// no layer twice: one that is there again higher up shows only there.
    pub(crate) fn shown(&self) -> Vec<&'a PathBuf> {
        let hides = |path: &PathBuf| open(path).is_ok_and(|directory| is_opaque(directory.as_fd()));
        let from = self.directories.iter().rposition(hides).unwrap_or(0);
        let directories = &self.directories[from..];
        let is_last = |(number, path): &(usize, &PathBuf)| !directories[number + 1..].contains(path);
        directories.iter().enumerate().filter(is_last).map(|(_, path)| path).collect()
    }

    /// What is at the top, by name.
    pub(crate) fn top(&self) -> Result<Vec<(OsString, Seen)>, JailError> {
        let mut names = BTreeMap::new();
        for layer in self.shown().iter().rev() {
            let unreadable =
                |errno: rustix::io::Errno| JailError::Source { path: (*layer).clone(), source: errno.into() };
            let directory = open(layer).map_err(unreadable)?;
            let mut listing = Dir::read_from(&directory).map_err(unreadable)?;
            while let Some(entry) = listing.read() {
                let name = entry.map_err(unreadable)?.file_name().to_bytes().to_vec();
                if matches!(name.as_slice(), b"." | b"..") || names.contains_key(&name) {
                    continue;
                }
                if names.len() >= MOST_AT_TOP {
                    return Err(JailError::TooManyMounts);
                }
                // A whiteout stays among them, so that lower layers do not bring the name back.
                let seen =
                    stat(directory.as_fd(), &name).and_then(|stat| seen(directory.as_fd(), &name, &stat));
                names.insert(name, seen.unwrap_or(Seen::Absent));
            }
        }
        let found = names.into_iter().filter(|(_, seen)| *seen != Seen::Absent);
        Ok(found.map(|(name, seen)| (OsString::from_vec(name), seen)).collect())
    }

    /// The directory in the uppermost layer that has it, the name in it, and what it is.
    fn find(&self, path: &Path) -> Option<(OwnedFd, Vec<u8>, Seen)> {
        let mut above: Vec<OwnedFd> = self.shown().iter().rev().filter_map(|path| open(path).ok()).collect();
        let names: Vec<&OsStr> = path
            .components()
            .filter_map(|part| match part {
                Component::Normal(name) => Some(name),
                _ => None,
            })
            .collect();
        let (last, way) = names.split_last()?;
        for name in way {
            let (first, seen, below) = descend(&above, name.as_bytes())?;
            if !matches!(seen, Seen::Directory { .. }) {
                let directory = above.into_iter().nth(first)?;
                return Some((directory, name.as_bytes().to_vec(), seen));
            }
            above = below;
        }
        let (first, seen, _) = descend(&above, last.as_bytes())?;
        Some((above.into_iter().nth(first)?, last.as_bytes().to_vec(), seen))
    }
}

/// What a name stands for in merged directories, the uppermost first: which of them has it, what it is, and the
/// directories that are merged under it.
fn descend(above: &[OwnedFd], name: &[u8]) -> Option<(usize, Seen, Vec<OwnedFd>)> {
    let mut found: Option<(usize, Seen)> = None;
    let mut below = Vec::new();
    for (number, directory) in above.iter().enumerate() {
        let Some(stat) = stat(directory.as_fd(), name) else { continue };
        let Some(here) = seen(directory.as_fd(), name, &stat) else { break };
        let is_directory = matches!(here, Seen::Directory { .. });
        match &found {
            None => found = Some((number, here)),
            // A file below a directory is hidden by it, with all that is lower.
            Some(_) if !is_directory => break,
            Some(_) => {}
        }
        if !is_directory {
            break;
        }
        let Ok(directory) = open_beneath(directory.as_fd(), name) else { break };
        let hides = is_opaque(directory.as_fd());
        below.push(directory);
        if hides {
            break;
        }
    }
    found.map(|(number, seen)| (number, seen, below))
}

/// What a file is; none where it takes away what is below.
fn seen(directory: BorrowedFd<'_>, name: &[u8], stat: &Stat) -> Option<Seen> {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::CharacterDevice if stat.st_rdev == 0 => None,
        FileType::Directory => {
            Some(Seen::Directory { mode: stat.st_mode & 0o7777, uid: stat.st_uid, gid: stat.st_gid })
        }
        FileType::Symlink => {
            let target = rustix::fs::readlinkat(directory, name, Vec::new()).ok()?;
            Some(Seen::Link(PathBuf::from(OsString::from_vec(target.into_bytes()))))
        }
        _ => Some(Seen::File),
    }
}

fn open(path: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty())
}

fn open_beneath(directory: BorrowedFd<'_>, name: &[u8]) -> rustix::io::Result<OwnedFd> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::openat2(directory, name, flags, Mode::empty(), resolve)
}

fn stat(directory: BorrowedFd<'_>, name: &[u8]) -> Option<Stat> {
    rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).ok()
}

fn is_opaque(directory: BorrowedFd<'_>) -> bool {
    let mut value = [0; 4];
    rustix::fs::fgetxattr(directory, OPAQUE, &mut value).is_ok_and(|length| value[..length] == *b"y")
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use rustix::fs::XattrFlags;

    use super::*;

    fn kind(seen: &Seen) -> &str {
        match seen {
            Seen::Absent => "absent",
            Seen::Directory { .. } => "directory",
            Seen::Link(_) => "link",
            Seen::File => "file",
        }
    }

    #[test]
    fn layers_are_looked_at_as_one_tree() {
        let place = tempfile::tempdir().unwrap();
        let layers: Vec<PathBuf> = ["low", "high"].iter().map(|name| place.path().join(name)).collect();
        let [low, high] = [&layers[0], &layers[1]];
        for directory in
            ["low/etc", "low/gone", "low/hidden/x", "low/usr/bin", "high/etc", "high/hidden", "high/usr"]
        {
            fs::create_dir_all(place.path().join(directory)).unwrap();
        }
        fs::write(low.join("etc/passwd"), "low").unwrap();
        fs::write(low.join("etc/group"), "low").unwrap();
        fs::write(high.join("etc/passwd"), "high").unwrap();
        fs::write(low.join("usr/bin/sh"), "").unwrap();
        symlink("/outside", low.join("link")).unwrap();
        let device = FileType::CharacterDevice;
        rustix::fs::mknodat(rustix::fs::CWD, high.join("gone"), device, Mode::empty(), 0).unwrap();
        rustix::fs::setxattr(high.join("hidden"), OPAQUE, b"y", XattrFlags::empty()).unwrap();

        let found = Layers::new(&layers);
        for (path, expected) in [
            ("/etc", "directory"),
            ("/etc/passwd", "file"),
            ("/etc/group", "file"),
            ("/gone", "absent"),
            ("/gone/x", "absent"),
            ("/hidden", "directory"),
            ("/hidden/x", "absent"),
            ("/usr/bin/sh", "file"),
            ("/link", "link"),
            ("/link/x", "link"),
            ("/nothing", "absent"),
            ("/etc/passwd/x", "file"),
        ] {
            assert_eq!(kind(&found.look(Path::new(path))), expected, "{path}");
        }
        assert_eq!(found.read(Path::new("/etc/passwd"), 100).as_deref(), Some(&b"high"[..]));
        assert_eq!(found.read(Path::new("/etc/group"), 100).as_deref(), Some(&b"low"[..]));
        assert_eq!(found.read(Path::new("/etc/group"), 2), None, "too large");
        assert_eq!(found.read(Path::new("/link"), 100), None);
        let names: Vec<OsString> = found.top().unwrap().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["etc", "hidden", "link", "usr"]);
        rustix::fs::setxattr(high, OPAQUE, b"y", XattrFlags::empty()).unwrap();
        assert_eq!(found.shown(), [high]);
        let twice = [high.clone(), low.clone(), high.clone()];
        assert_eq!(Layers::new(&twice).shown(), [high], "the upper one hides all");
        let twice = [low.clone(), high.with_file_name("other"), low.clone()];
        assert_eq!(Layers::new(&twice).shown(), [&twice[1], low]);
        assert_eq!(kind(&found.look(Path::new("/usr/bin"))), "absent");
    }
}
