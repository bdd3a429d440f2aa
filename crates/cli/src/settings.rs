//! What the arguments of `run` mean: a spec and a command, or a failure with a hint. Everything about the
//! caller's machine that the arguments refer to is looked up here and nowhere later.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::PathBuf;

use engine::{Command, Engine};
use policy::{
    Backend, Isolation, Life, Limits, Mount, Nesting, Root, SandboxSpec, Tools, User, Variable,
    parse_environment_file,
};

use crate::arguments::{self, Run, SandboxOptions, TerminalOptions};
use crate::failure::Failure;
use crate::network;
use crate::ports;
use crate::rooted::{self, Rooted};
use crate::terminal;

/// What the words of a command and its variables may take together.
const LARGEST_COMMAND: usize = 2 << 20;

/// The size of a terminal that nobody looks at yet.
const UNSEEN: wire::WindowSize = wire::WindowSize { rows: 24, columns: 80 };

/// A command and the sandbox for it.
pub(crate) struct Settings {
    pub(crate) spec: SandboxSpec,
    pub(crate) command: Command,
    pub(crate) report: Reporting,
    /// The image that it is made from.
    pub(crate) rooted: Option<Rooted>,
}

/// When the isolation report is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reporting {
    /// Whole.
    Always,
    /// What is missing, if anything.
    Gaps,
}

pub(crate) fn resolve(run: Run, engine: &Engine) -> Result<Settings, Failure> {
    refuse_agent(&run)?;
    let given = run.command;
    if run.sandbox.image.is_none() {
        check_command(&given)?;
    }
    let terminal = terminal(&run.terminal, run.detach)?;
    let (spec, rooted) = spec(run.sandbox, engine)?;
    let argv = match &rooted {
        Some(rooted) => rooted.command(given, run.entrypoint.as_deref())?,
        None => given,
    };
    check_command(&argv)?;
    check_size(&argv, &spec.environment)?;
    let report = if run.report { Reporting::Always } else { Reporting::Gaps };
    Ok(Settings { spec, command: Command { argv, terminal, timeout: run.timeout }, report, rooted })
}

/// What a sandbox shall be, and the image that it is made from, which is held as long as that is.
pub(crate) fn spec(
    options: SandboxOptions,
    engine: &Engine,
) -> Result<(SandboxSpec, Option<Rooted>), Failure> {
    let rooted = options.image.as_deref().map(|name| Rooted::new(engine, name)).transpose()?;
    let mut variables = rooted.as_ref().map(|rooted| rooted.environment.clone()).unwrap_or_default();
    variables.extend(environment(&options.env, &options.env_file)?);
    ports::check(&options.publish)?;
    refuse_two_at_one_place(&options.mount)?;
    let backend = match options.backend {
        arguments::Backend::Native => Backend::Native,
        arguments::Backend::Gvisor => Backend::Gvisor,
        arguments::Backend::Crun => Backend::Crun,
        arguments::Backend::Runc => Backend::Runc,
    };
    let user = options.user.unwrap_or_else(|| rooted.as_ref().map_or(User::AGENT, Rooted::user));
    engine::check_user(backend, user)?;
    let spec = SandboxSpec {
        id: engine.new_id()?,
        name: options.name,
        backend,
        isolation: match options.isolation {
            arguments::Isolation::Strict => Isolation::Strict,
            arguments::Isolation::BestEffort => Isolation::BestEffort,
        },
        workspace: options.workspace,
        root: match &rooted {
            Some(rooted) => Root::Image(rooted.image.root.clone()),
            None => Root::Host(if options.tools { Tools::Owner } else { Tools::System }),
        },
        mounts: options.mount.into_iter().map(from_here).collect::<Result<_, _>>()?,
        environment: variables,
        workdir: rooted::workdir(options.workdir, rooted.as_ref())?,
        user,
        limits: Limits { memory: options.memory, cpus: options.cpus, pids: options.pids, disk: options.disk },
        nesting: if options.nested { Nesting::Open } else { Nesting::Closed },
        life: Life { lifetime: options.lifetime, idle_timeout: options.idle_timeout },
        ports: options.publish,
        network: network::resolve(options.network)?,
    };
    Ok((spec, rooted))
}

fn refuse_agent(run: &Run) -> Result<(), Failure> {
    let Some(agent) = &run.agent else { return Ok(()) };
    let command = run.command.iter().map(|word| word.to_string_lossy().into_owned());
    let words: Vec<String> = std::iter::once(agent.clone()).chain(command).collect();
    Err(Failure::new(format!("there is no agent '{agent}'"))
        .cause("a word before `--` names an agent, and this version has none yet")
        .hint(format!("to run a command, put it after `--`: agentbox run -- {}", words.join(" "))))
}

fn check_command(argv: &[OsString]) -> Result<(), Failure> {
    match argv.first() {
        None => {
            Err(Failure::new("there is no command to run").hint("put it after `--`: agentbox run -- bash"))
        }
        Some(program) if program.is_empty() => {
            Err(Failure::new("the command is empty").hint("name a program after `--`"))
        }
        Some(_) => Ok(()),
    }
}

/// Files first, so that what stands on the command line wins.
pub(crate) fn environment(texts: &[String], files: &[PathBuf]) -> Result<Vec<Variable>, Failure> {
    let lookup = |name: &str| env::var(name).ok();
    let mut variables = Vec::new();
    for path in files {
        let unusable = || Failure::new(format!("cannot use the variables of '{}'", path.display()));
        let hint = "one NAME=value a line, as UTF-8; `#` begins a comment";
        let text = fs::read_to_string(path).map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData => unusable().cause("it is no text in UTF-8").hint(hint),
            _ => unusable().cause(error).hint("check the path given to --env-file, and that you may read it"),
        })?;
        variables.extend(
            parse_environment_file(&text, lookup).map_err(|error| unusable().cause(error).hint(hint))?,
        );
    }
    for text in texts {
        let hint = "--env NAME=VALUE sets one, --env NAME passes yours on";
        let variable = Variable::parse(text, lookup)
            .map_err(|error| Failure::new("cannot use --env").cause(error).hint(hint))?;
        variables.push(variable);
    }
    Ok(variables)
}

/// What is more than the kernel gives any program is refused before a sandbox is made for it.
pub(crate) fn check_size(argv: &[OsString], environment: &[Variable]) -> Result<(), Failure> {
    let words = argv.iter().map(|word| word.len() + 1);
    let variables = environment.iter().map(|variable| variable.name().len() + variable.value().len() + 2);
    let size: usize = words.chain(variables).sum();
    if size <= LARGEST_COMMAND {
        return Ok(());
    }
    Err(Failure::new("the command and its variables are too large")
        .cause(format!("together they take {size} bytes, and a program gets at most {LARGEST_COMMAND}"))
        .hint("pass what is large on stdin, or in a file with --mount"))
}

/// Of two mounts at one place the first could not be seen, and nobody would be told.
fn refuse_two_at_one_place(mounts: &[Mount]) -> Result<(), Failure> {
    let is_taken =
        |(at, mount): &(usize, &Mount)| mounts[..*at].iter().any(|other| other.target == mount.target);
    match mounts.iter().enumerate().find(is_taken) {
        Some((_, mount)) => {
            Err(Failure::new(format!("two directories cannot be mounted at '{}'", mount.target))
                .cause(format!("'{}' would hide what is mounted there", mount.source.display()))
                .hint("give each --mount a place of its own"))
        }
        None => Ok(()),
    }
}

/// A relative source is meant from where the caller stands, and the keeper stands elsewhere.
fn from_here(mount: Mount) -> Result<Mount, Failure> {
    let unusable = |error| Failure::new(format!("cannot mount '{}'", mount.source.display())).cause(error);
    let source = std::path::absolute(&mount.source).map_err(unusable)?;
    Ok(Mount { source, ..mount })
}

/// The terminal that a command gets: by itself where a person sits, and where it is left alone only if it is asked for.
pub(crate) fn terminal(options: &TerminalOptions, detach: bool) -> Result<Option<wire::WindowSize>, Failure> {
    if options.no_tty || (!options.tty && (detach || !terminal::is_interactive())) {
        return Ok(None);
    }
    let unseen = detach.then_some(UNSEEN);
    terminal::size().or(unseen).map(Some).ok_or_else(|| {
        Failure::new("--tty needs a terminal on stdin")
            .cause("stdin is not a terminal")
            .hint("leave --tty out in scripts: the command gets pipes")
    })
}
