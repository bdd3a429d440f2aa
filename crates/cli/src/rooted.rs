//! What an image says of how it is run, put together with what the owner says, who has the last word.

use std::ffi::OsString;

use engine::{Engine, ImageUser, ReadyImage};
use policy::{SandboxPath, User, Variable};

use crate::failure::{Failure, escape};
use crate::images::Telling;

/// Where processes start without a word from anybody.
const WORKDIR: &str = "/workspace";

/// A root file system from an image, and what it asks for.
pub(crate) struct Rooted {
    pub(crate) image: ReadyImage,
    /// Variables that the owner's come after.
    pub(crate) environment: Vec<Variable>,
}

impl Rooted {
    /// Gets the image ready.
    pub(crate) fn new(engine: &Engine, name: &str) -> Result<Self, Failure> {
        let telling = Telling::new();
        let image = engine.ready_image(name, &|step| telling.hear(&step));
        telling.finish();
        let image = image?;
        let mut environment = Vec::new();
        if let ImageUser::Own { name, home, .. } = &image.user {
            let own = [("USER", name), ("HOME", home)];
            environment.extend(
                own.into_iter().filter_map(|(name, value)| Variable::new(name, value.as_ref()?).ok()),
            );
        }
        // A name that no shell knows is left out, as it is in an environment of the owner's.
        let parts = image.settings.environment.iter().filter_map(|text| text.split_once('='));
        environment.extend(parts.filter_map(|(name, value)| Variable::new(name, value).ok()));
        if let ImageUser::OutOfReach(user) = image.user {
            eprintln!(
                "note: the image runs as {user}, whom you cannot be with one id: it runs as agent (`agentbox doctor` \
                 tells how to get more)"
            );
        }
        Ok(Self { image, environment })
    }

    /// The command: what is always run, and after it what the owner gives, or else what the image has.
    pub(crate) fn command(
        &self,
        given: Vec<OsString>,
        entrypoint: Option<&str>,
    ) -> Result<Vec<OsString>, Failure> {
        let settings = &self.image.settings;
        let words = |words: &[String]| words.iter().map(OsString::from).collect::<Vec<_>>();
        let mut command = match entrypoint {
            None => words(&settings.entrypoint),
            Some("") => Vec::new(),
            Some(program) => vec![OsString::from(program)],
        };
        // Another entrypoint does not mean what was meant for the image's.
        let own = if entrypoint.is_none() { words(&settings.command) } else { Vec::new() };
        command.extend(if given.is_empty() { own } else { given });
        if command.is_empty() && entrypoint.is_none() {
            let name = &self.image.root.name;
            return Err(Failure::new(format!("the image '{name}' names no command to run"))
                .hint(format!("put one after `--`: agentbox run --image {name} -- /bin/sh")));
        }
        Ok(command)
    }

    pub(crate) fn user(&self) -> User {
        match &self.image.user {
            ImageUser::Own { user, .. } => *user,
            ImageUser::Agent | ImageUser::OutOfReach(_) => User::AGENT,
        }
    }

    pub(crate) fn workdir(&self) -> Result<Option<SandboxPath>, Failure> {
        let Some(workdir) = self.image.settings.workdir.as_deref().filter(|path| *path != "/") else {
            return Ok(None);
        };
        workdir.parse().map(Some).map_err(|error| {
            Failure::new(format!("the image starts in '{}'", escape(workdir)))
                .cause(error)
                .hint("choose where to start with --workdir")
        })
    }
}

/// Where processes start: where the owner says, or the image, or else in the workspace.
pub(crate) fn workdir(given: Option<SandboxPath>, rooted: Option<&Rooted>) -> Result<SandboxPath, Failure> {
    if let Some(given) = given {
        return Ok(given);
    }
    let of_image = rooted.map(Rooted::workdir).transpose()?.flatten();
    match of_image {
        Some(workdir) => Ok(workdir),
        None => WORKDIR.parse().map_err(|error| Failure::new("cannot start in the workspace").cause(error)),
    }
}
