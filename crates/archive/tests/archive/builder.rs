//! Writes archives byte by byte, right and wrong ones, and looks at directories from the outside.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use archive::{Limits, Top, UnpackError, Unpacked, unpack};
use tempfile::TempDir;

/// More than any test here needs.
pub(crate) const LIMITS: Limits = Limits { bytes: 1 << 30, entries: 100_000, name_length: 4095, depth: 256 };

/// An archive in the making.
#[derive(Clone, Default)]
pub(crate) struct Builder {
    bytes: Vec<u8>,
}

impl Builder {
    /// A header with the right checksum, whatever else is wrong with it.
    pub(crate) fn header(mut self, kind: u8, name: &[u8], link: &[u8], size: &[u8]) -> Self {
        let mut block = [0_u8; 512];
        block[..name.len()].copy_from_slice(name);
        block[100..107].copy_from_slice(b"0000644");
        block[124..124 + size.len()].copy_from_slice(size);
        block[136..147].copy_from_slice(b"00000000001");
        block[148..156].copy_from_slice(b"        ");
        block[156] = kind;
        block[157..157 + link.len()].copy_from_slice(link);
        block[257..265].copy_from_slice(b"ustar\x0000");
        let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
        block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        self.bytes.extend_from_slice(&block);
        self
    }

    /// Bytes, filled up to a whole block.
    pub(crate) fn body(mut self, bytes: &[u8]) -> Self {
        self.bytes.extend_from_slice(bytes);
        self.bytes.resize(self.bytes.len().next_multiple_of(512), 0);
        self
    }

    pub(crate) fn entry(self, kind: u8, name: &[u8], contents: &[u8]) -> Self {
        self.header(kind, name, b"", format!("{:011o}", contents.len()).as_bytes()).body(contents)
    }

    pub(crate) fn file(self, name: &str, contents: &str) -> Self {
        self.entry(b'0', name.as_bytes(), contents.as_bytes())
    }

    pub(crate) fn directory(self, name: &str) -> Self {
        self.entry(b'5', name.as_bytes(), b"")
    }

    pub(crate) fn symbolic_link(self, name: &str, target: &str) -> Self {
        self.header(b'2', name.as_bytes(), target.as_bytes(), b"0")
    }

    pub(crate) fn hard_link(self, name: &str, target: &str) -> Self {
        self.header(b'1', name.as_bytes(), target.as_bytes(), b"0")
    }

    /// An extended header of these records.
    pub(crate) fn extended(self, records: &[(&str, &[u8])]) -> Self {
        let mut body = Vec::new();
        for (key, value) in records {
            let rest = key.len() + value.len() + 3;
            let length = (rest..).find(|length| rest + length.to_string().len() == *length).unwrap();
            body.extend_from_slice(format!("{length} {key}=").as_bytes());
            body.extend_from_slice(value);
            body.push(b'\n');
        }
        self.entry(b'x', b"x", &body)
    }

    /// With what ends an archive.
    pub(crate) fn end(mut self) -> Vec<u8> {
        self.bytes.extend_from_slice(&[0; 1024]);
        self.bytes
    }

    pub(crate) fn cut(self) -> Vec<u8> {
        self.bytes
    }
}

/// A directory to unpack into, with others beside it that nobody may touch.
pub(crate) struct Place {
    whole: TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self::within(&std::env::temp_dir())
    }

    /// On the file system of that directory.
    pub(crate) fn within(directory: &Path) -> Self {
        let whole = tempfile::tempdir_in(directory).unwrap();
        fs::create_dir(whole.path().join("root")).unwrap();
        fs::create_dir(whole.path().join("outside")).unwrap();
        fs::write(whole.path().join("outside/secret"), "secret").unwrap();
        fs::write(whole.path().join("canary"), "canary").unwrap();
        Self { whole }
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.whole.path().join("root")
    }

    pub(crate) fn outside(&self) -> PathBuf {
        self.whole.path().join("outside")
    }

    pub(crate) fn unpack(&self, bytes: &[u8]) -> Result<Unpacked, UnpackError> {
        self.unpack_within(bytes, &LIMITS)
    }

    pub(crate) fn unpack_within(&self, bytes: &[u8], limits: &Limits) -> Result<Unpacked, UnpackError> {
        unpack(bytes, File::open(self.root()).unwrap(), Top::Kept, limits)
    }

    /// What is beside the directory, which must stay as it was.
    pub(crate) fn assert_untouched(&self) {
        let mut seen = look(self.whole.path());
        seen.retain(|path, _| !path.starts_with("root"));
        let expected = ["canary", "outside", "outside/secret"].map(PathBuf::from);
        assert_eq!(seen.keys().cloned().collect::<Vec<_>>(), expected);
        assert_eq!(fs::read(self.outside().join("secret")).unwrap(), b"secret");
        assert_eq!(fs::read(self.whole.path().join("canary")).unwrap(), b"canary");
        assert_eq!(fs::metadata(self.outside().join("secret")).unwrap().nlink(), 1);
    }

    /// The names in the directory.
    pub(crate) fn names(&self) -> Vec<String> {
        look(&self.root()).keys().map(|path| path.display().to_string()).collect()
    }
}

/// What can be seen of a file without following it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) mode: u32,
    pub(crate) modified: (i64, i64),
    /// What it holds, or where it leads.
    pub(crate) contents: Vec<u8>,
    pub(crate) names: u64,
}

/// Everything beneath a directory.
pub(crate) fn look(root: &Path) -> BTreeMap<PathBuf, Seen> {
    let mut seen = BTreeMap::new();
    let mut waiting = vec![root.to_owned()];
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let data = fs::symlink_metadata(&path).unwrap();
            let contents = if data.is_symlink() {
                fs::read_link(&path).unwrap().as_os_str().as_bytes().to_vec()
            } else if data.is_file() {
                fs::read(&path).unwrap()
            } else {
                Vec::new()
            };
            let names = if data.is_dir() { 1 } else { data.nlink() };
            let modified = (data.mtime(), data.mtime_nsec());
            let mode = data.permissions().mode();
            seen.insert(
                path.strip_prefix(root).unwrap().to_owned(),
                Seen { mode, modified, contents, names },
            );
            if data.is_dir() {
                waiting.push(path);
            }
        }
    }
    seen
}
