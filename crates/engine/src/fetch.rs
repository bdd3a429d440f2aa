//! Brings the agent's commits out. Its repository is an enemy's, so that no git of ours ever reads it on the host: it goes
//! into a sandbox of its own, without a network, as an archive that is packed beneath a descriptor; the git in there
//! writes a pack, which is checked before it is believed.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::process::{Command, Stdio};

use archive::Output;
use policy::SandboxId;
use workspace::Files;

use crate::error::EngineError;
use crate::spawn::own_program;
use crate::start::Engine;

/// What runs in there: the archive on stdin, the pack on stdout. The commit and what is known already are its arguments.
const SCRIPT: &str = "mkdir /tmp/r && tar -xf - -C /tmp/r && \
    { echo \"$1\"; [ -z \"$2\" ] || echo \"^$2\"; } | \
    git --git-dir=/tmp/r/.git -c core.fsmonitor=false pack-objects -q --revs --thin --stdout --delta-base-offset";

/// Where the owner's objects show in there.
const OBJECTS: &str = "/mnt/objects";

impl Engine {
    /// Takes the commits that the agent has made since the last time, if there are any.
    pub(crate) fn fetch_commits(&self, id: &SandboxId, files: &Files) -> Result<(), EngineError> {
        let Some(tip) = workspace::waiting_tip(files)? else { return Ok(()) };
        let failed = |source: io::Error| EngineError::Fetch { id: id.to_string(), source };
        let upper = File::open(files.upper()).map_err(failed)?;
        let mut child = self.packing(files, &tip)?.spawn().map_err(failed)?;
        let (Some(stdin), Some(mut stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(failed(io::ErrorKind::BrokenPipe.into()));
        };
        // Written by another thread, so that neither waits for the other.
        let writer = std::thread::spawn(move || {
            let stdin = OwnedFd::from(stdin);
            archive::pack(&upper, b".git", Output::Pipe(stdin.as_fd()), &mut |_| {}).map(drop)
        });
        let taken = workspace::accept_pack(files, &mut stdout, &tip);
        drop(stdout);
        let ended = child.wait().map_err(failed)?;
        let written = writer.join();
        match taken {
            Ok(()) => Ok(()),
            // What was said about the pack is nobody's fault where there was none.
            Err(_) if !ended.success() => {
                Err(failed(io::Error::other("git in a sandbox of its own gave no pack")))
            }
            Err(_) if !matches!(written, Ok(Ok(()))) => {
                Err(failed(io::Error::other("its repository cannot be read")))
            }
            Err(error) => Err(error.into()),
        }
    }

    fn packing(&self, files: &Files, tip: &str) -> Result<Command, EngineError> {
        let (stores, base) = workspace::objects(files)?;
        let mut command = Command::new(own_program()?);
        command.args(["run", "--no-tty", "--network", "none", "--timeout", "10m", "--workdir", "/tmp"]);
        let mut inside = Vec::new();
        for (number, store) in stores.iter().enumerate() {
            let mut mount = store.clone().into_os_string();
            mount.push(format!(":{OBJECTS}/{number}"));
            command.arg("--mount").arg(mount);
            inside.push(format!("{OBJECTS}/{number}"));
        }
        command.arg("--env").arg(format!("GIT_ALTERNATE_OBJECT_DIRECTORIES={}", inside.join(":")));
        command.args(["--", "sh", "-c", SCRIPT, "sh", tip, base.as_deref().unwrap_or("")]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        Ok(command)
    }
}
