//! `agentbox image`: how images come, what there is, and how they go.

mod progress;
mod show;

use std::fs::File;
use std::io::{IsTerminal as _, Write as _};
use std::path::Path;
use std::process::ExitCode;

use engine::{Engine, EngineError, Worker};
use images::{Image, ImageError, Store, Transport};
use serde_json::json;

use crate::arguments::{Bootstrap, Commit, Export, ImageAction, Images, Import, Pull, RemoveImages, Tag};
use crate::failure::Failure;
use crate::output::print;
use crate::record::Form;
use crate::stay::in_runtime;

pub(crate) use progress::Telling;

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
        ImageAction::Export(export) => export_image(&engine, export),
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
        let import = images::Import { path: &place, reference: Some(&name), owners: worker.owners() };
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
    let import_of =
        images::Import { path: &import.path, reference: import.reference.as_ref(), owners: worker.owners() };
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

fn named(image: &Image) -> serde_json::Value {
    json!({"name": image.listed.name(), "digest": image.listed.manifest.digest.to_string()})
}

fn line(image: &Image) -> String {
    format!("{} {}\n", image.listed.name(), image.listed.manifest.digest)
}

fn export_image(engine: &Engine, export: &Export) -> Result<ExitCode, Failure> {
    let store = engine.images()?;
    let image = store.find(&export.image)?;
    let Some(path) = &export.output else {
        if std::io::stdout().is_terminal() {
            return Err(Failure::new("an archive is nothing for a terminal")
                .hint("write it into a file with --output, or into a pipe"));
        }
        let mut stdout = std::io::stdout().lock();
        store.export(&image, &mut stdout, Path::new("stdout"))?;
        let _ = stdout.flush();
        return Ok(ExitCode::SUCCESS);
    };
    let unusable = |error| Failure::new(format!("cannot write '{}'", path.display())).cause(error);
    let file = File::create(path).map_err(unusable)?;
    let exported = store.export(&image, &file, path);
    if exported.is_err() {
        // Half an archive is none.
        let _ = std::fs::remove_file(path);
    }
    exported?;
    Ok(ExitCode::SUCCESS)
}
