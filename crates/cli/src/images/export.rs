//! Where an exported image goes: into a file that is whole or as it was, or to what is no file, which is written to as it
//! is. What somebody else has put at the path is never removed, and in a directory that others may write to it is not
//! followed or written to either: the kernel refuses that only where it follows a link, or makes a file, itself.

use std::ffi::OsString;
use std::fs::{self, File, Metadata};
use std::io::{self, IsTerminal as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use engine::Engine;
use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::process::geteuid;

use crate::arguments::Export;
use crate::failure::Failure;

/// What stdout is called.
const STDOUT: [&str; 4] = ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"];
/// As many links as the kernel follows.
const MOST_LINKS: usize = 40;
/// What a new file may be, before the caller's own mask.
const NEW: u32 = 0o666;
/// A terminal does not become ours by being written to.
const NO_TERMINAL: i32 = OFlags::NOCTTY.bits().cast_signed();
/// Nor is a pipe waited for where a file was.
const NO_LINK: i32 = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).bits().cast_signed();

/// What a path leads to.
enum Goal {
    /// A file, or nothing yet: where it is, behind every link.
    File(PathBuf),
    /// Something that is written to as it is, below this directory.
    Other(PathBuf),
}

/// Why nothing is written.
enum Refusal {
    /// Nothing can be made beside it.
    Beside(io::Error),
    /// Somebody else has put it there.
    Foreign(PathBuf),
    /// Anything else.
    Unusable(io::Error),
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Self {
        Self::Unusable(error)
    }
}

impl Refusal {
    fn of(self, path: &Path) -> Failure {
        let failure = Failure::new(format!("cannot write '{}'", path.display()));
        match self {
            Self::Beside(error) if error.kind() == io::ErrorKind::PermissionDenied => failure.cause(error).hint(
                "it is written beside and then put into its place: choose a directory that you may write to",
            ),
            Self::Unusable(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                failure.cause(error).hint("choose another name, or what you may write to")
            }
            Self::Beside(error) | Self::Unusable(error) => failure.cause(error),
            Self::Foreign(place) => failure
                .cause(format!("somebody else has put '{}' into a directory that others may write to", place.display()))
                .hint("choose another name, or a directory of your own"),
        }
    }
}

/// A file that is being written and has not its name yet.
struct Draft {
    file: File,
    /// What it is called meanwhile; nothing, where it can do without.
    named: Option<PathBuf>,
    goal: PathBuf,
}

pub(super) fn export(engine: &Engine, export: &Export) -> Result<ExitCode, Failure> {
    let store = engine.images()?;
    let image = store.find(&export.image)?;
    let is_stdout = |path: &&PathBuf| STDOUT.iter().any(|name| path.as_path() == Path::new(name));
    // Our own stdout is not opened anew: a pipe of somebody else's could not be.
    let Some(path) = export.output.as_ref().filter(|path| !is_stdout(path)) else {
        if io::stdout().is_terminal() {
            return Err(Failure::new("an archive is nothing for a terminal")
                .hint("write it into a file with --output, or into a pipe"));
        }
        let mut stdout = io::stdout().lock();
        store.export(&image, &mut stdout, Path::new("stdout"))?;
        let _ = stdout.flush();
        return Ok(ExitCode::SUCCESS);
    };
    let refused = |refusal: Refusal| refusal.of(path);
    match goal(path).map_err(refused)? {
        Goal::Other(directory) => {
            let file = open_other(path, &directory).map_err(refused)?;
            store.export(&image, &file, path)?;
        }
        Goal::File(goal) => {
            let draft = Draft::begin(&goal).map_err(refused)?;
            store.export(&image, &draft.file, path)?;
            draft.finish().map_err(|error| Refusal::from(error).of(path))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn goal(path: &Path) -> Result<Goal, Refusal> {
    let mut place = path.to_owned();
    for _ in 0..MOST_LINKS {
        let metadata = match fs::symlink_metadata(&place) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Goal::File(place)),
            metadata => metadata?,
        };
        trust(&place, &metadata)?;
        if metadata.is_dir() {
            return Err(io::Error::from(io::ErrorKind::IsADirectory).into());
        }
        if metadata.is_file() {
            return Ok(Goal::File(place));
        }
        if !metadata.is_symlink() || is_of_kernel(&place)? {
            return Ok(Goal::Other(directory(&place).to_owned()));
        }
        let target = fs::read_link(&place)?;
        place = directory(&place).join(target);
    }
    Err(io::Error::from(rustix::io::Errno::LOOP).into())
}

/// Refuses what somebody else has put into a directory in which everybody has files of their own.
fn trust(place: &Path, found: &Metadata) -> Result<(), Refusal> {
    const STICKY: u32 = 0o1000;
    const WRITTEN_BY_OTHERS: u32 = 0o022;
    let around = fs::metadata(directory(place))?;
    let is_shared = around.mode() & STICKY != 0 && around.mode() & WRITTEN_BY_OTHERS != 0;
    let is_known = [geteuid().as_raw(), around.uid()].contains(&found.uid());
    if is_shared && !is_known { Err(Refusal::Foreign(place.to_owned())) } else { Ok(()) }
}

/// Opens what is no file. It is looked at once more when it is open, as it may be another one by then.
fn open_other(path: &Path, directory: &Path) -> Result<File, Refusal> {
    // Appended to, as what is behind a descriptor of ours may be a file that others write to as well.
    let file = File::options().append(true).custom_flags(NO_TERMINAL).open(path)?;
    trust(&directory.join(path.file_name().unwrap_or_default()), &file.metadata()?)?;
    Ok(file)
}

/// Whether a link is one of /proc's, which leads to what is open and not to a name, as /dev/stdout does.
fn is_of_kernel(link: &Path) -> io::Result<bool> {
    Ok(rustix::fs::statfs(directory(link))?.f_type == rustix::fs::PROC_SUPER_MAGIC)
}

fn directory(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

impl Draft {
    /// Begins one beside its goal. Where the file system can, it has no name, so that a killed process leaves nothing.
    fn begin(goal: &Path) -> Result<Self, Refusal> {
        let goal = goal.to_owned();
        // What may not be written to is not replaced either, although its directory would let us. A link that is there by now
        // was not when it was looked for.
        let old = match File::options().write(true).custom_flags(NO_LINK).open(&goal) {
            Ok(old) => Some(old.metadata()?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error.into()),
        };
        old.as_ref().map_or(Ok(()), |old| trust(&goal, old))?;
        let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
        let unnamed = rustix::fs::open(directory(&goal), flags, Mode::from_raw_mode(NEW));
        let (file, named) = match unnamed {
            Ok(file) => (File::from(file), None),
            Err(_) => {
                let name = beside(&goal);
                let made = File::options().write(true).create_new(true).mode(NEW).open(&name);
                (made.map_err(Refusal::Beside)?, Some(name))
            }
        };
        let draft = Self { file, named, goal };
        // One that takes the place of another is as that was: it may hold what is nobody else's business.
        if let Some(old) = old {
            let _ = std::os::unix::fs::fchown(&draft.file, Some(old.uid()), Some(old.gid()));
            let mode = fs::Permissions::from_mode(old.mode() & 0o777);
            draft.file.set_permissions(mode)?;
        }
        Ok(draft)
    }

    /// Puts it into its place, whole.
    fn finish(mut self) -> io::Result<()> {
        self.file.sync_all()?;
        let name = match self.named.take() {
            Some(name) => name,
            None => {
                let name = beside(&self.goal);
                let open = format!("/proc/self/fd/{}", self.file.as_raw_fd());
                rustix::fs::linkat(CWD, open, CWD, &name, AtFlags::SYMLINK_FOLLOW)?;
                name
            }
        };
        let renamed = fs::rename(&name, &self.goal);
        self.named = renamed.is_err().then_some(name);
        renamed
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // Half an archive is none.
        if let Some(name) = &self.named {
            let _ = fs::remove_file(name);
        }
    }
}

fn beside(goal: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(goal.file_name().unwrap_or_default());
    name.push(format!(".agentbox-{}", std::process::id()));
    goal.with_file_name(name)
}
