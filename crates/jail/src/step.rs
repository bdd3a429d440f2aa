//! The steps by which a root file system is put together: planned with allocation before clone, carried out
//! with raw system calls after it. Paths are relative to the new root, which is the working directory then.

use std::ffi::{CStr, CString, OsStr};
use std::os::fd::{OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::error::JailError;
use crate::sys::{self, Errno, MountAttributes, Outcome};

const READ_ONLY: u64 = libc::MOUNT_ATTR_RDONLY;
const NO_SETUID: u64 = libc::MOUNT_ATTR_NOSUID;
const NO_DEVICES: u64 = libc::MOUNT_ATTR_NODEV;
const NO_EXECUTION: u64 = libc::MOUNT_ATTR_NOEXEC;

/// How the step is described that lays a layer over a tree.
pub(crate) const OVERLAY: &str = "mount the overlay at";

/// What a bound tree allows; setuid never counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bound {
    /// Programs and data of the owner's, to read and run.
    ReadOnly,
    /// A directory of the owner's, to change.
    ReadWrite,
    /// A device node.
    Device,
    /// The same without a wall, for the negative controls.
    #[cfg(feature = "weaken")]
    Unsealed,
}

impl Bound {
    /// All of them, in their order.
    pub(crate) const ALL: &[Self] = &[
        Self::ReadOnly,
        Self::ReadWrite,
        Self::Device,
        #[cfg(feature = "weaken")]
        Self::Unsealed,
    ];

    pub(crate) fn attributes(self) -> MountAttributes {
        let set = match self {
            Self::ReadOnly => READ_ONLY | NO_SETUID | NO_DEVICES,
            Self::ReadWrite => NO_SETUID | NO_DEVICES,
            Self::Device => NO_SETUID | NO_EXECUTION,
            #[cfg(feature = "weaken")]
            Self::Unsealed => 0,
        };
        MountAttributes { set, propagation: libc::MS_PRIVATE, ..Default::default() }
    }
}

/// Who a new file or directory belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// Whoever builds the walls: root inside, or the agent where there is no other user.
    Builder,
    /// The user that processes run as.
    Agent { uid: u32, gid: u32 },
}

/// What a mount stands on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Directory,
    File,
}

impl Place {
    /// Both, in their order.
    pub(crate) const ALL: &[Self] = &[Self::Directory, Self::File];
}

/// One step. As it is planned it owns what it names; as the builder reads it ([`Laid`]) it only points there.
#[derive(Debug)]
#[cfg_attr(test, derive(PartialEq))]
pub(crate) enum Step<Text = CString, Bytes = Vec<u8>, Tree = OwnedFd> {
    Directory {
        path: Text,
        mode: u32,
        owner: Owner,
    },
    Symlink {
        target: Text,
        path: Text,
    },
    File {
        path: Text,
        contents: Bytes,
    },
    /// Something to mount on, unless it is there. Below a workspace it is made by the agent's ids, as nobody else's are
    /// known to the layer.
    Place {
        path: Text,
        kind: Place,
        owner: Owner,
    },
    /// A tree of the host's, with everything mounted below it.
    Bind {
        source: Text,
        path: Text,
        bound: Bound,
    },
    /// A detached tree that the keeper prepared with more authority.
    Attach {
        tree: Tree,
        path: Text,
    },
    /// Something already inside, at a second place.
    Again {
        source: Text,
        path: Text,
        flags: u64,
    },
    /// Something that nobody is to reach, behind something else; where it is not there, nothing is to be hidden.
    Cover {
        with: Text,
        path: Text,
    },
    /// A file system of the kernel's.
    FileSystem {
        kind: Text,
        path: Text,
        flags: u64,
        options: Option<Text>,
    },
    /// One tree over another. What the kernel writes for it belongs to the agent, whoever builds the walls.
    Overlay {
        path: Text,
        options: Text,
        uid: u32,
        gid: u32,
    },
    /// A place that was mounted on for a while.
    Unmount {
        path: Text,
    },
    /// A setting of the namespace's own, written through the fresh /proc.
    Setting {
        path: Text,
        value: Bytes,
    },
    /// Where the paths of all later steps begin.
    Enter {
        path: Text,
    },
    /// A mount that is complete, to be read only; what is mounted on it stays as it is.
    Seal {
        path: Text,
    },
}

/// A step that the builder carries out.
pub(crate) type Laid<'plan> = Step<&'plan CStr, &'plan [u8], RawFd>;

impl Laid<'_> {
    /// Carries the step out. After clone: nothing here allocates.
    pub(crate) fn run(&self) -> Outcome {
        match *self {
            Self::Directory { path, mode, owner } => {
                sys::make_directory(path, mode)?;
                match owner {
                    Owner::Builder => Ok(()),
                    Owner::Agent { uid, gid } => sys::change_owner(path, uid, gid),
                }
            }
            Self::Symlink { target, path } => sys::symlink(target, path),
            Self::File { path, contents: [] } => sys::make_file(path),
            Self::File { path, contents } => write_new(path, contents),
            Self::Place { path, kind, owner } => {
                let made = match owner {
                    Owner::Builder => make_place(path, kind),
                    Owner::Agent { uid, gid } => sys::with_file_ids(uid, gid, || make_place(path, kind)),
                };
                match made {
                    Err(Errno(libc::EEXIST)) => Ok(()),
                    made => made,
                }
            }
            Self::Bind { source, path, bound } => {
                // Nothing runs inside yet, so the moment between the two calls is nobody's.
                sys::mount(source, path, None, libc::MS_BIND | libc::MS_REC, None)?;
                sys::set_mount_attributes(path, &bound.attributes())
            }
            Self::Attach { tree, path } => sys::attach_tree(tree, path),
            Self::Again { source, path, flags } => {
                sys::mount(source, path, None, libc::MS_BIND, None)?;
                if flags == 0 {
                    return Ok(());
                }
                sys::mount(c"none", path, None, libc::MS_BIND | libc::MS_REMOUNT | flags, None)
            }
            Self::Cover { with, path } => match sys::mount(with, path, None, libc::MS_BIND, None) {
                // Which of the two is not there?
                Err(Errno(libc::ENOENT)) => match sys::open(path, libc::O_PATH, 0) {
                    Err(Errno(libc::ENOENT)) => Ok(()),
                    Err(errno) => Err(errno),
                    Ok(there) => sys::close(there).and(Err(Errno(libc::ENOENT))),
                },
                covered => covered,
            },
            Self::FileSystem { kind, path, flags, options } => {
                sys::mount(kind, path, Some(kind), flags, options)
            }
            Self::Overlay { path, options, uid, gid } => {
                let flags = libc::MS_NOSUID | libc::MS_NODEV;
                sys::with_file_ids(uid, gid, || {
                    sys::mount(c"overlay", path, Some(c"overlay"), flags, Some(options))
                })
            }
            Self::Unmount { path } => sys::unmount_detached(path),
            Self::Setting { path, value } => {
                let file = sys::open(path, libc::O_WRONLY, 0)?;
                let written = sys::write(file, value).map(drop);
                sys::close(file)?;
                written
            }
            Self::Enter { path } => sys::change_directory(path),
            Self::Seal { path } => {
                let sealed =
                    libc::MS_REMOUNT | libc::MS_BIND | libc::MS_RDONLY | libc::MS_NOSUID | libc::MS_NODEV;
                sys::mount(c"none", path, None, sealed, None)
            }
        }
    }
}

#[cfg(test)]
impl Step {
    /// The step as the builder is to read it.
    pub(crate) fn laid(&self) -> Laid<'_> {
        use std::os::fd::AsRawFd as _;
        match self {
            Self::Directory { path, mode, owner } => Step::Directory { path, mode: *mode, owner: *owner },
            Self::Symlink { target, path } => Step::Symlink { target, path },
            Self::File { path, contents } => Step::File { path, contents },
            Self::Place { path, kind, owner } => Step::Place { path, kind: *kind, owner: *owner },
            Self::Bind { source, path, bound } => Step::Bind { source, path, bound: *bound },
            Self::Attach { tree, path } => Step::Attach { tree: tree.as_raw_fd(), path },
            Self::Again { source, path, flags } => Step::Again { source, path, flags: *flags },
            Self::Cover { with, path } => Step::Cover { with, path },
            Self::FileSystem { kind, path, flags, options } => {
                Step::FileSystem { kind, path, flags: *flags, options: options.as_deref() }
            }
            Self::Overlay { path, options, uid, gid } => {
                Step::Overlay { path, options, uid: *uid, gid: *gid }
            }
            Self::Unmount { path } => Step::Unmount { path },
            Self::Setting { path, value } => Step::Setting { path, value },
            Self::Enter { path } => Step::Enter { path },
            Self::Seal { path } => Step::Seal { path },
        }
    }
}

impl Step {
    /// The tree of the host's that this step binds, and where it shows inside.
    pub(crate) fn bound_tree(&self) -> Option<(PathBuf, PathBuf)> {
        let Self::Bind { source, path, .. } = self else { return None };
        let path_of = |text: &CString| PathBuf::from(OsStr::from_bytes(text.as_bytes()));
        Some((path_of(source), Path::new("/").join(path_of(path))))
    }

    /// What the file has in it that the step makes, if it makes one.
    pub(crate) fn contents(&self) -> &[u8] {
        if let Self::File { contents, .. } = self { contents } else { &[] }
    }

    /// What the step makes or changes, where it is one place.
    pub(crate) fn place(&self) -> Option<&CStr> {
        match self {
            Self::Directory { path, .. }
            | Self::Symlink { path, .. }
            | Self::File { path, .. }
            | Self::Place { path, .. }
            | Self::Bind { path, .. }
            | Self::Attach { path, .. }
            | Self::Again { path, .. }
            | Self::Cover { path, .. }
            | Self::FileSystem { path, .. }
            | Self::Overlay { path, .. }
            | Self::Unmount { path }
            | Self::Setting { path, .. }
            | Self::Seal { path } => Some(path),
            Self::Enter { .. } => None,
        }
    }

    /// What the step does, for an error message.
    pub(crate) fn describe(&self) -> String {
        let shown = |path: &CString| format!("/{}", path.to_string_lossy());
        match self {
            Self::Directory { path, .. } => format!("make the directory {}", shown(path)),
            Self::Symlink { path, .. } => format!("make the link {}", shown(path)),
            Self::File { path, .. } => format!("write {}", shown(path)),
            Self::Place { path, .. } => format!("make {} to mount on", shown(path)),
            Self::Bind { source, path, .. } => {
                format!("mount {} at {}", source.to_string_lossy(), shown(path))
            }
            Self::Attach { path, .. } => format!("attach the mount at {}", shown(path)),
            Self::Again { source, path, .. } => format!("bind {} at {}", shown(source), shown(path)),
            Self::Cover { with, path } => format!("bind {} at {}", shown(with), shown(path)),
            Self::FileSystem { kind, path, .. } => {
                format!("mount {} at {}", kind.to_string_lossy(), shown(path))
            }
            Self::Overlay { path, .. } => format!("{OVERLAY} {}", shown(path)),
            Self::Unmount { path } => format!("unmount {}", shown(path)),
            Self::Setting { path, .. } => format!("set {}", shown(path)),
            Self::Enter { path } => format!("enter {}", shown(path)),
            Self::Seal { path } => format!("make {} read-only", shown(path)),
        }
    }
}

fn make_place(path: &CStr, kind: Place) -> Outcome {
    match kind {
        Place::Directory => sys::make_directory(path, 0o755),
        Place::File => sys::make_file(path),
    }
}

fn write_new(path: &CStr, contents: &[u8]) -> Outcome {
    let file = sys::open(path, libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL, 0o644)?;
    let mut rest = contents;
    while !rest.is_empty() {
        match sys::write(file, rest) {
            Ok(count) => rest = &rest[count..],
            Err(errno) => {
                let _ = sys::close(file);
                return Err(errno);
            }
        }
    }
    sys::close(file)
}

/// A path of the host's for the kernel.
pub(crate) fn host_path(path: &Path) -> Result<CString, JailError> {
    CString::new(path.as_os_str().as_bytes()).map_err(|_| JailError::Nul(path.to_owned()))
}

/// An absolute path inside, as the steps take it: relative to the new root.
pub(crate) fn inside(path: &Path) -> Result<CString, JailError> {
    host_path(path.strip_prefix("/").unwrap_or(path))
}
