//! `agentbox image`: how images come, what there is, and how they go.

mod export;
mod progress;
mod show;

use std::fs::File;
use std::io::IsTerminal as _;
use std::os::fd::AsFd as _;
use std::path::Path;
use std::process::ExitCode;

use engine::{Engine, EngineError, Worker};
use images::{Image, ImageError, Source, Store, Transport};
use serde_json::json;

use crate::arguments::{Bootstrap, Commit, ImageAction, Images, Import, Pull, RemoveImages, Tag};
use crate::failure::Failure;
use crate::output::print;
use crate::record::Form;
use crate::stay::in_runtime;

pub(crate) use progress::Telling;

/// What stdin is called.
const STDIN: [&str; 4] = ["-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"];

impl From<ImageError> for Failure {
    fn from(error: ImageError) -> Self {
        EngineError::from(error).into()
    }
}

pub(crate) fn images(images: &Images) -> Result<ExitCode, Failure> {
    let engine = Engine::open()?;
    match &images.action {
        ImageAction::Import(import) => take_in(&engine, import),
        ImageAction::Ls(list) => show::list(&engine, list),
        ImageAction::Inspect(inspect) => show::inspect(&engine, inspect),
        ImageAction::Tag(Tag { image, name }) => {
            let store = engine.images()?;
            store.tag(&store.find(image)?, name.clone())?;
            Ok(ExitCode::SUCCESS)
        }
        ImageAction::Rm(RemoveImages { images }) => {
            let store = engine.images()?;
            for image in images {
                // One whose files are damaged can still be taken off the list.
                engine.remove_image(&store.find_listed(image)?)?;
            }
            Ok(ExitCode::SUCCESS)
        }
        ImageAction::Gc(collect) => show::collected(engine.collect_images()?, Form::of(collect.json)),
        ImageAction::Export(export) => export::export(&engine, export),
        ImageAction::Pull(pull) => bring(&engine, pull),
        ImageAction::Bootstrap(bootstrap) => make(&engine, bootstrap),
    }
}

fn bring(engine: &Engine, pull: &Pull) -> Result<ExitCode, Failure> {
    let (store, worker) = (engine.images()?, Worker::new()?);
    let telling = Telling::new();
    let asked = images::Pull {
        reference: &pull.reference,
        transport: if pull.insecure { Transport::Plain } else { Transport::Secure },
        credentials: images::credential_files(),
        certificates: images::certificate_directories(),
    };
    let image = store.pull(&asked, &worker, &|step| telling.hear(&step));
    telling.finish();
    tell(&store, &image?, Form::of(pull.json))
}

fn make(engine: &Engine, bootstrap: &Bootstrap) -> Result<ExitCode, Failure> {
    let system = images::Bootstrap::new(&bootstrap.system, &bootstrap.include)?;
    let name = match &bootstrap.name {
        Some(name) => name.clone(),
        None => bootstrap.system.parse().map_err(|error| Failure::new("cannot name it").cause(error))?,
    };
    let (store, worker) = (engine.images()?, Worker::new()?);
    let _bringing = engine.bringing_image()?;
    let place = store.workshop();
    let made = system.make(&place, worker.owners()).and_then(|()| {
        let telling = Telling::new();
        let import =
            images::Import { from: Source::Path(&place), reference: Some(&name), owners: worker.owners() };
        let images = store.import(&import, &worker, &|step| telling.hear(&step));
        telling.finish();
        images
    });
    let _ = std::fs::remove_file(&place);
    match made?.first() {
        Some(image) => tell(&store, image, Form::of(bootstrap.json)),
        None => Err(Failure::new("nothing was made")),
    }
}

/// Keeps what a sandbox wrote.
pub(crate) fn commit(commit: &Commit) -> Result<ExitCode, Failure> {
    let engine = Engine::open()?;
    let id = engine.find(&commit.sandbox)?;
    let telling = Telling::new();
    let image =
        in_runtime(async { Ok(engine.commit(&id, &commit.reference, &|step| telling.hear(&step)).await?) });
    telling.finish();
    tell(&engine.images()?, &image?, Form::of(commit.json))
}

/// Says what has come.
fn tell(store: &Store, image: &Image, form: Form) -> Result<ExitCode, Failure> {
    show::say_left_out(store, std::slice::from_ref(image));
    match form {
        Form::Person => print(&line(image)),
        Form::Program => print(&format!("{}\n", named(image))),
    }
}

fn take_in(engine: &Engine, import: &Import) -> Result<ExitCode, Failure> {
    let (store, worker) = (engine.images()?, Worker::new()?);
    let telling = Telling::new();
    let stdin = stdin_of(&import.path)?;
    let from = match &stdin {
        Some(stdin) => Source::Open(stdin, Path::new("-")),
        None => Source::Path(&import.path),
    };
    let import_of = images::Import { from, reference: import.reference.as_ref(), owners: worker.owners() };
    let images = store.import(&import_of, &worker, &|step| telling.hear(&step));
    telling.finish();
    let images = images?;
    show::say_left_out(&store, &images);
    if import.json {
        let list: Vec<_> = images.iter().map(named).collect();
        return print(&format!("{}\n", serde_json::Value::from(list)));
    }
    print(&images.iter().map(line).collect::<String>())
}

/// Our stdin, where that is what a path means. It is not opened anew: a pipe of somebody else's could not be.
fn stdin_of(path: &Path) -> Result<Option<File>, Failure> {
    if !STDIN.iter().any(|name| path == Path::new(name)) {
        return Ok(None);
    }
    if std::io::stdin().is_terminal() {
        return Err(Failure::new("an archive does not come from a terminal").hint(
            "name a file, or let another program write it: `docker save app | agentbox image import -`",
        ));
    }
    let stdin = std::io::stdin().as_fd().try_clone_to_owned();
    let stdin = stdin.map_err(|error| Failure::new("cannot read stdin").cause(error))?;
    Ok(Some(File::from(stdin)))
}

fn named(image: &Image) -> serde_json::Value {
    json!({"name": image.listed.name(), "digest": image.listed.manifest.digest.to_string()})
}

fn line(image: &Image) -> String {
    format!("{} {}\n", image.listed.name(), image.listed.manifest.digest)
}
