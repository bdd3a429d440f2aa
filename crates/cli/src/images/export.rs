//! Where an exported image goes: into a file that is whole or as it was, or to what is no file, which is written to as it
//! is. What somebody else has put at the path is never removed.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, IsTerminal as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use engine::Engine;
use rustix::fs::{AtFlags, CWD, Mode, OFlags};

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

/// What a path leads to.
enum Goal {
    /// A file, or nothing yet: where it is, behind every link.
    File(PathBuf),
    /// Something that is written to as it is.
    Other,
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
    let unusable = |error| Failure::new(format!("cannot write '{}'", path.display())).cause(error);
    match goal(path).map_err(unusable)? {
        Goal::Other => {
            // Appended to, as what is behind a descriptor of ours may be a file that others write to as well.
            let file = File::options().append(true).custom_flags(NO_TERMINAL).open(path).map_err(unusable)?;
            store.export(&image, &file, path)?;
        }
        Goal::File(goal) => {
            let draft = Draft::begin(&goal).map_err(|error| match error.kind() {
                io::ErrorKind::PermissionDenied => unusable(error).hint(
                    "it is written beside and then put into its place: choose a directory that you may write to",
                ),
                _ => unusable(error),
            })?;
            store.export(&image, &draft.file, path)?;
            draft.finish().map_err(unusable)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn goal(path: &Path) -> io::Result<Goal> {
    let mut place = path.to_owned();
    for _ in 0..MOST_LINKS {
        let metadata = match fs::symlink_metadata(&place) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Goal::File(place)),
            metadata => metadata?,
        };
        if metadata.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        if metadata.is_file() {
            return Ok(Goal::File(place));
        }
        if !metadata.is_symlink() || is_of_kernel(&place)? {
            return Ok(Goal::Other);
        }
        let target = fs::read_link(&place)?;
        place = directory(&place).join(target);
    }
    Err(rustix::io::Errno::LOOP.into())
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
    fn begin(goal: &Path) -> io::Result<Self> {
        let goal = goal.to_owned();
        // What may not be written to is not replaced either, although its directory would let us.
        match File::options().write(true).open(&goal) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
        let unnamed = rustix::fs::open(directory(&goal), flags, Mode::from_raw_mode(NEW));
        let (file, named) = match unnamed {
            Ok(file) => (File::from(file), None),
            Err(_) => {
                let name = beside(&goal);
                let file = File::options().write(true).create_new(true).mode(NEW).open(&name)?;
                (file, Some(name))
            }
        };
        let draft = Self { file, named, goal };
        // One that takes the place of another is as that was: it may hold what is nobody else's business.
        if let Ok(old) = fs::metadata(&draft.goal) {
            let _ = std::os::unix::fs::fchown(&draft.file, Some(old.uid()), Some(old.gid()));
            draft.file.set_permissions(fs::Permissions::from_mode(old.mode() & 0o777))?;
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
