//! A process of our own that makes and removes the files of layers. It reads what strangers packed, so it is started
//! anew with nothing of the caller's, and it is the one that has the ids of the files: for a user with subuids in a user
//! namespace of its own.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitCode};

use failpoint::Point;
use handover::Problem;
use images::{Digest, Guard, Hands, ImageError, Over, Own, Owners, Said, Unpacked, Whose};
use jail::Subordinates;
use rustix::process::geteuid;
use serde::{Deserialize, Serialize};

use crate::error::EngineError;
use crate::spawn::own_command;

/// The word that our own program is started with for it.
pub const IMAGE_WORKER: &str = "image-worker";

/// What it is to do.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Order {
    /// Unpack a layer.
    Unpack {
        /// Out of a file.
        blob: PathBuf,
        /// Into a directory that is empty.
        directory: PathBuf,
        /// What it has to be.
        layer: Digest,
    },
    /// Remove a directory.
    Remove(PathBuf),
    /// Pack what the first descriptor leads to, into the second.
    Pack {
        /// The id of root in it.
        first: u32,
    },
}

/// How it went.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Answer {
    /// A layer is unpacked.
    Unpacked(Unpacked),
    /// It is done.
    Done,
    /// It is not.
    Failed(Problem),
}

/// Starts such processes, one for each thing that is to be done.
#[derive(Clone, Debug)]
pub struct Worker {
    owners: Owners,
    ids: String,
}

impl Worker {
    /// For the caller, as it is.
    pub fn new() -> Result<Self, EngineError> {
        let (owners, ids) = match Subordinates::find() {
            _ if geteuid().is_root() => (Owners::Kept, "image".to_owned()),
            Subordinates::Given { uids, gids } => {
                let text = format!("subuid {}+{} {}+{}", uids.first, uids.count, gids.first, gids.count);
                (Owners::Kept, text)
            }
            Subordinates::NoHelper | Subordinates::NoRange => (Owners::Dropped, "one".to_owned()),
        };
        Ok(Self { owners, ids })
    }

    /// Whether the files of an image keep their owners here.
    #[must_use]
    pub const fn owners(&self) -> Owners {
        self.owners
    }

    /// Packs what a directory holds that lies over an image's layers, into a file.
    pub(super) fn pack(&self, upper: &OwnedFd, into: &File, first: u32) -> Result<(), ImageError> {
        use std::os::fd::AsFd as _;
        self.ask(&Order::Pack { first }, &[upper.as_fd(), into.as_fd()]).map(drop)
    }

    fn ask(
        &self,
        order: &Order,
        descriptors: &[std::os::fd::BorrowedFd<'_>],
    ) -> Result<Option<Unpacked>, ImageError> {
        let lost = |source: std::io::Error| ImageError::Worker {
            error: "the process that works on the layer was lost".to_owned(),
            source: Said::chain(&[source.to_string()]),
            hint: None,
        };
        let (socket, inner) = UnixStream::pair().map_err(lost)?;
        let mut child = start(inner).map_err(lost)?;
        let answer = (|| {
            let mut byte = [0];
            (&socket).read_exact(&mut byte)?;
            let pid = i32::try_from(child.id()).map_err(std::io::Error::other)?;
            jail::map_child(pid).map_err(|error| std::io::Error::other(error.to_string()))?;
            (&socket).write_all(&byte)?;
            handover::send(&socket, &(self.owners, order), descriptors).map_err(std::io::Error::other)?;
            handover::receive::<Answer>(&socket).map_err(std::io::Error::other)
        })();
        if answer.is_err() {
            let _ = child.kill();
        }
        let _ = child.wait();
        match answer.map_err(lost)?.0 {
            Answer::Unpacked(unpacked) => Ok(Some(unpacked)),
            Answer::Done => Ok(None),
            Answer::Failed(Problem { error, causes, hint }) => {
                Err(ImageError::Worker { error, source: Said::chain(&causes), hint })
            }
        }
    }
}

fn start(inner: UnixStream) -> std::io::Result<Child> {
    let mut command = own_command(IMAGE_WORKER).map_err(|error| std::io::Error::other(error.to_string()))?;
    command.envs(failpoint::variable());
    command.stdin(OwnedFd::from(inner)).spawn()
}

impl Hands for Worker {
    fn unpack(&self, blob: &Path, directory: &Path, layer: &Digest) -> Result<Unpacked, ImageError> {
        let (blob, directory, layer) = (blob.to_owned(), directory.to_owned(), layer.clone());
        Ok(self.ask(&Order::Unpack { blob, directory, layer }, &[])?.unwrap_or_default())
    }

    fn remove(&self, directory: &Path) -> Result<(), ImageError> {
        if !directory.exists() {
            return Ok(());
        }
        self.ask(&Order::Remove(directory.to_owned()), &[]).map(drop)
    }

    fn ids(&self) -> String {
        self.ids.clone()
    }
}

/// The whole life of such a process: ids, an order, an answer.
#[must_use]
pub fn image_worker() -> ExitCode {
    jail::reset_signals();
    jail::drop_inherited_descriptors();
    let Ok(socket) = rustix::io::dup(rustix::stdio::stdin()).map(UnixStream::from) else {
        return ExitCode::FAILURE;
    };
    // It ends with whoever asked: nobody else waits for what it makes.
    let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
    let mapped = jail::become_mapped(|| {
        (&socket).write_all(b"?")?;
        (&socket).read_exact(&mut [0])
    });
    if mapped.is_err() {
        return ExitCode::FAILURE;
    }
    // A change of ids clears it.
    let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
    // The modes of files are those of the image.
    let _ = rustix::process::umask(rustix::fs::Mode::empty());
    let Ok(((owners, order), descriptors)) = handover::receive::<(Owners, Order)>(&socket) else {
        return ExitCode::FAILURE;
    };
    let answer = match carry_out(owners, &order, descriptors) {
        Ok(Some(unpacked)) => Answer::Unpacked(unpacked),
        Ok(None) => Answer::Done,
        Err(error) => Answer::Failed(Problem::new(&error, error.hint())),
    };
    match handover::send(&socket, &answer, &[]) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn carry_out(
    owners: Owners,
    order: &Order,
    descriptors: Vec<OwnedFd>,
) -> Result<Option<Unpacked>, ImageError> {
    let hands = Own { owners };
    match order {
        Order::Unpack { blob, directory, layer } => {
            failpoint::pass(Point::ImageWorkerOrdered);
            if Guard::Confined.stands() {
                jail::confine_to(directory, blob).map_err(|error| ImageError::Worker {
                    error: "cannot confine the process that unpacks the layer".to_owned(),
                    source: Said::chain(&[error.to_string()]),
                    hint: None,
                })?;
            }
            hands.unpack(blob, directory, layer).map(Some)
        }
        Order::Remove(directory) => hands.remove(directory).map(|()| None),
        Order::Pack { first } => {
            let mut descriptors = descriptors.into_iter();
            let whose = Whose { owners, first: *first, over: Over::Layers };
            let packed = match (descriptors.next(), descriptors.next()) {
                (Some(upper), Some(into)) => images::pack(upper, &whose, File::from(into)),
                _ => Err(std::io::ErrorKind::InvalidInput.into()),
            };
            let failed = |source| ImageError::File { path: "the sandbox's files".into(), source };
            packed.map(|()| None).map_err(failed)
        }
    }
}
