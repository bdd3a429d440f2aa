//! The programs of other backends: where they are, which version they are, and what they can do here. What was found out
//! about a file is kept until the file or the kernel is another one, as it takes a hundred times as long as a start may.
//!
//! A backend that was named is never replaced by another: what is missing is an error.

mod build_info;

use std::env;
use std::fs;
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use policy::{Backend, Build, OciRuntime, Platform, User, judge};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use serde::{Deserialize, Serialize};

use crate::error::EngineError;
use crate::kept;
use crate::start::Engine;
use crate::trial;

/// Where programs are beside the caller's own PATH, which may not have those of the administrator.
const USUAL: [&str; 6] = ["/usr/local/bin", "/usr/local/sbin", "/usr/bin", "/usr/sbin", "/bin", "/sbin"];
/// How long a program may take to say its version.
const PATIENCE: Duration = Duration::from_secs(20);
/// How much of it is read.
const MOST: u64 = 4096;

/// What is known of programs, on file.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Known {
    programs: Vec<Entry>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Entry {
    backend: Backend,
    file: Identity,
    kernel: String,
    runtime: OciRuntime,
}

/// By what a file is known to be the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Identity {
    path: PathBuf,
    device: u64,
    inode: u64,
    size: u64,
    changed: (i64, i64),
}

impl Identity {
    fn of(path: &Path) -> io::Result<Self> {
        let metadata = fs::metadata(path)?;
        Ok(Self {
            path: path.to_owned(),
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        })
    }
}

impl Engine {
    /// The program of a backend, where it has one. The first time that a file is met it is asked for its version, and
    /// runsc is tried out with one platform after the other.
    pub(crate) fn program(&self, backend: Backend) -> Result<Option<OciRuntime>, EngineError> {
        let Some(name) = backend.program() else { return Ok(None) };
        let path = find(name).ok_or(EngineError::NoProgram { backend, program: name })?;
        let unusable = |source| EngineError::Program { path: path.clone(), source };
        let (file, kernel) = (Identity::of(&path).map_err(unusable)?, kernel());
        let place = self.directories.backends();
        let mut known: Known = kept::read_json(&place).unwrap_or_default();
        let is_same =
            |entry: &&Entry| entry.backend == backend && entry.file == file && entry.kernel == kernel;
        if let Some(entry) = known.programs.iter().find(is_same) {
            return Ok(Some(entry.runtime.clone()));
        }
        let _told = self.trials.map(|tell| tell(backend));
        // A state that cannot be used is the matter itself, and no failure of a runtime that is tried with it.
        self.directories.make_state()?;
        let mut runtime = look_at(backend, &path).map_err(unusable)?;
        if backend == Backend::Gvisor {
            runtime.platform = Some(self.find_platform(&runtime)?);
        }
        known.programs.retain(|entry| entry.backend != backend || entry.file.path != file.path);
        known.programs.push(Entry { backend, file, kernel, runtime: runtime.clone() });
        // It is found out again where it cannot be kept.
        let _ = save(&place, &known);
        Ok(Some(runtime))
    }

    /// The first platform with which a complete sandbox starts. With one on which it hangs the search is over: whoever
    /// waits has waited long enough, and it is no sign that another would do.
    fn find_platform(&self, runtime: &OciRuntime) -> Result<Platform, EngineError> {
        let mut said = Vec::new();
        for platform in Platform::ALL {
            let tried = OciRuntime { platform: Some(platform), ..runtime.clone() };
            match trial::run_beside(self, Backend::Gvisor, Some(tried)) {
                Ok(_) => return Ok(platform),
                Err(problem) => {
                    let why = problem.causes.first().unwrap_or(&problem.error);
                    said.push(format!("{platform}: {why}"));
                    if trial::is_hang(&problem) {
                        break;
                    }
                }
            }
        }
        Err(EngineError::NoPlatform {
            path: runtime.program.clone(),
            source: io::Error::other(said.join("; ")),
        })
    }
}

/// Refuses root where what runs inside asks the host's own kernel.
pub fn check_user(backend: Backend, user: User) -> Result<(), EngineError> {
    if user.is_root() && !backend.has_own_kernel() {
        return Err(EngineError::NoRoot(backend));
    }
    Ok(())
}

/// Puts the file into its place, whole. Of two who write at once the last one stays, which is as good.
fn save(place: &Path, known: &Known) -> io::Result<()> {
    let beside = place.with_extension(format!("new-{}", std::process::id()));
    let saved =
        fs::write(&beside, serde_json::to_vec_pretty(known)?).and_then(|()| fs::rename(&beside, place));
    if saved.is_err() {
        let _ = fs::remove_file(beside);
    }
    saved
}

/// The first program of that name.
pub(crate) fn find(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let own = env::split_paths(&path).filter(|directory| directory.is_absolute());
    let candidates = own.chain(USUAL.iter().map(PathBuf::from)).map(|directory| directory.join(name));
    let is_program = |path: &PathBuf| {
        fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    // By where it really is: what it brings along lies there.
    candidates.into_iter().find(is_program).and_then(|path| fs::canonicalize(path).ok())
}

/// Asks a program for its version, and its file where it has none.
pub(crate) fn look_at(backend: Backend, path: &Path) -> io::Result<OciRuntime> {
    let said = ask_version(path, PATIENCE)?;
    let said = said.as_deref().and_then(|text| version_in(text, backend));
    let module = build_info::main_module(path);
    let standing = judge(backend, Build { said, module: module.as_deref() });
    let version = match (said, module) {
        // What was built without a stamp says so, and means nothing by it.
        (Some("VERSION_MISSING") | None, Some(module)) => module,
        (Some(said), _) => said.to_owned(),
        (None, None) => "of an unknown version".to_owned(),
    };
    let version =
        version.chars().filter(|letter| letter.is_ascii_graphic() || *letter == ' ').take(80).collect();
    Ok(OciRuntime { program: path.to_owned(), version, standing, platform: None })
}

/// The word after `runc version` and the like.
fn version_in(text: &str, backend: Backend) -> Option<&str> {
    let line = text.lines().next()?;
    let rest = line.strip_prefix(backend.program()?)?.trim_start().strip_prefix("version")?;
    rest.split_whitespace().next()
}

/// What a program says to `--version`; nothing where it says nothing in time. Whatever it has started ends with it.
fn ask_version(path: &Path, patience: Duration) -> io::Result<Option<String>> {
    let mut child = Command::new(path)
        .arg("--version")
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()?;
    let pid = Pid::from_child(&child);
    let deadline = Instant::now() + patience;
    // Only looked at: until its status is taken, the number of its group is nobody else's.
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    // A few lines fit into its pipe, so that it need not be read meanwhile.
    let mut has_ended = false;
    while !has_ended && Instant::now() <= deadline {
        std::thread::sleep(Duration::from_millis(2));
        has_ended = waitid(WaitId::Pid(pid), look)?.is_some();
    }
    let _ = kill_process_group(pid, Signal::KILL);
    child.wait()?;
    if !has_ended {
        return Ok(None);
    }
    let mut text = String::new();
    let Some(output) = child.stdout.take() else { return Ok(None) };
    let read = output.take(MOST).read_to_string(&mut text);
    Ok(read.is_ok().then_some(text))
}

fn kernel() -> String {
    rustix::system::uname().release().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a script says to `--version`, and whether what it has started is there afterwards.
    fn ask(script: &str, patience: Duration) -> (Option<String>, bool) {
        let directory = tempfile::tempdir().unwrap();
        let (program, note) = (directory.path().join("runsc"), directory.path().join("note"));
        let script = format!("#!/bin/sh\n{}\n", script.replace("NOTE", &note.display().to_string()));
        fs::write(&program, script).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        // Another test's process may hold the script open for a moment before it becomes its own program.
        let said = loop {
            match ask_version(&program, patience) {
                Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy => {}
                said => break said.unwrap(),
            }
        };
        let child: u32 = fs::read_to_string(note).unwrap().trim().parse().unwrap();
        // One that was killed may be a zombie of somebody else's.
        let stat = fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
        (said, stat.contains("(sleep) S"))
    }

    #[test]
    fn what_a_program_has_started_ends_with_it() {
        assert_eq!(
            ask("sleep 100 & echo $! > NOTE; wait", Duration::from_secs(5)),
            (None, false),
            "it says nothing"
        );
        let told = ask("sleep 100 & echo $! > NOTE; echo runsc version 1", Duration::from_secs(60));
        assert_eq!(told, (Some("runsc version 1\n".to_owned()), false), "what it leaves holds nobody up");
    }

    #[test]
    fn versions_are_read_as_programs_say_them() {
        assert_eq!(version_in("runc version 1.1.5+ds1\ncommit: x\n", Backend::Runc), Some("1.1.5+ds1"));
        assert_eq!(version_in("crun version 1.8.1\n", Backend::Crun), Some("1.8.1"));
        let runsc = "runsc version release-20260907.0\nspec: 1.2.0\n";
        assert_eq!(version_in(runsc, Backend::Gvisor), Some("release-20260907.0"));
        for nonsense in ["", "runc", "runc version", "docker version 1", "version 1.3.3"] {
            assert_eq!(version_in(nonsense, Backend::Runc), None, "{nonsense}");
        }
    }
}
