//! Packs to stdout or unpacks from stdin, to be measured beside tar and cp:
//! `stream pack DIRECTORY NAME | stream unpack DIRECTORY`.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::process::ExitCode;

use archive::{Limits, Output, Top, pack, unpack};

const LIMITS: Limits = Limits { bytes: 1 << 40, entries: 1 << 30, name_length: 4095, depth: 256 };

fn stream(arguments: &[OsString]) -> Result<(), Box<dyn std::error::Error>> {
    let file = |descriptor: io::Result<OwnedFd>| descriptor.map(File::from);
    match arguments {
        [word, directory, name] if word == "pack" => {
            let remark = &mut |remark: archive::Remark<'_>| {
                eprintln!("{}: {:?}", remark.path.escape_ascii(), remark.why)
            };
            let packed =
                pack(File::open(directory)?, name.as_bytes(), Output::Pipe(io::stdout().as_fd()), remark)?;
            eprintln!("{packed:?}");
        }
        [word, directory] if word == "unpack" => {
            let input = file(io::stdin().as_fd().try_clone_to_owned())?;
            let unpacked = unpack(input, File::open(directory)?, Top::Kept, &LIMITS)?;
            eprintln!("{unpacked:?}");
        }
        _ => return Err("stream pack DIRECTORY NAME | stream unpack DIRECTORY".into()),
    }
    Ok(())
}

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    match stream(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
