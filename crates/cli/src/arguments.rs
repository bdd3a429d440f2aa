//! The command line as it is written: one definition for parsing, help, completions and man pages. What it
//! means is decided in `settings`.

mod configuration;
mod images;
mod machine;
mod network;
mod ports;
mod proxy;
mod review;
mod sandboxes;
mod terminals;
mod usage;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser, ValueEnum};
use clap_complete::Shell;
use policy::{
    Cpus, Limits, Mount, Pids, PublishedPort, SandboxName, SandboxPath, Size, Timeout, User, Workspace,
    parse_disk,
};

use crate::keys::DetachKeys;

pub(crate) use configuration::{Config, ConfigAction, ShowConfig};
pub(crate) use images::{
    Bootstrap, Commit, Export, ImageAction, Images, Import, InspectImage, ListImages, Pull, RemoveImages, Tag,
};
pub(crate) use machine::{Doctor, Setup, SetupTarget};
pub(crate) use network::{Explain, Net, NetworkOptions, Policy, PolicyAction, SetPolicy, ShowPolicy, Way};
pub(crate) use ports::{Port, PortAction};
pub(crate) use proxy::{MintToken, Proxy, ProxyAction};
pub(crate) use review::{Apply, Diff, Discard};
pub(crate) use sandboxes::{Audit, Cp, Create, Exec, Gc, Inspect, Logs, Ls, Rm, Start, Stop, Wait};
pub(crate) use terminals::{Attach, Send, Terminals};
pub(crate) use usage::{Pause, Ps, Resume, Top, Update};

/// A computer for your agent: runs coding agents and untrusted code in isolated, ephemeral sandboxes.
#[derive(Debug, Parser)]
#[command(name = "agentbox", version, disable_help_subcommand = true, arg_required_else_help = true)]
#[command(after_help = "\
Examples:
  agentbox run -- python3 -c 'print(6 * 7)'     run a command behind the walls
  agentbox run --report -- true                 see which walls this machine gives
  agentbox create --name box                    a sandbox that stays, for `agentbox exec box -- CMD`
  agentbox doctor                               see what this machine lacks, and how to mend it")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) subcommand: Subcommand,
}

impl Arguments {
    /// Reads the command line. To define the options of all commands takes longer than to start a process, and a command
    /// needs only its own; what they are about is told to whoever asks for help, or says none that there is.
    pub(crate) fn read() -> Result<Self, clap::Error> {
        Self::from_arg_matches(&Self::matches(std::env::args_os().collect())?)
    }

    /// What words mean, of which the first is our name; what a command says to --help is an error here.
    pub(crate) fn matches(words: Vec<OsString>) -> Result<clap::ArgMatches, clap::Error> {
        let mut command = Self::command();
        if words.get(1).is_none_or(|word| command.find_subcommand(word).is_none()) {
            command.build();
        }
        command.try_get_matches_from_mut(words)
    }
}

#[derive(Debug, clap::Subcommand)]
#[command(defer = true)]
pub(crate) enum Subcommand {
    // Those with options are described where their options are.
    Run(Box<Run>),
    Create(Box<Create>),
    Exec(Box<Exec>),
    Ls(Ls),
    Inspect(Inspect),
    Start(Start),
    Stop(Stop),
    Wait(Wait),
    Pause(Pause),
    Resume(Resume),
    Update(Update),
    Ps(Ps),
    Top(Top),
    Cp(Cp),
    Diff(Diff),
    Apply(Box<Apply>),
    Discard(Discard),
    Logs(Logs),
    Attach(Attach),
    Terminals(Terminals),
    Send(Send),
    Port(Port),
    Net(Net),
    Policy(Policy),
    Proxy(Box<Proxy>),
    Rm(Rm),
    Audit(Audit),
    Gc(Gc),
    #[command(name = "image")]
    Images(Images),
    Commit(Commit),
    Config(Config),
    Doctor(Doctor),
    Setup(Setup),
    /// Print the help of a command, as its --help does
    Help {
        /// The command and its own, as in `image pull`
        #[arg(value_name = "COMMAND")]
        command: Vec<String>,
    },
    /// Print the version
    Version,
    /// Print completions for a shell
    Completions {
        /// The shell to print them for
        shell: Shell,
    },
    /// Write the man pages into a directory
    Man {
        /// The directory, which is made if it is not there
        directory: PathBuf,
    },
}

/// Run a command in a new sandbox, which ends with it.
///
/// The exit code is the command's own: 124 if its time ran out, 126 if it cannot be executed, 127 if it is not
/// there, 128+N if signal N ended it, 137 with a message if its memory ran out, and 125 for a failure of
/// agentbox itself.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  agentbox run -- bash
  agentbox run --workspace . -- make test
  agentbox run --workspace .:direct -- make format
  agentbox run --mount ~/data:/data --env API_URL -- ./analyse /data
  agentbox run --memory 512M --cpus 0.5 --timeout 5m -- python3 untrusted.py
  agentbox run --image debian:12 -- apt list --installed
  agentbox run --preset pypi -- pip install --target . requests
  agentbox run --service model=127.0.0.1:11434 -- curl http://model:11434/api/tags
  agentbox run --publish 8080:8000 -- python3 -m http.server
  tar c . | agentbox run -- sh -c 'tar x && make test'")]
pub(crate) struct Run {
    /// An agent; agents come with a later version, commands go after `--`
    #[arg(value_name = "AGENT", hide = true)]
    pub(crate) agent: Option<String>,
    /// The command and its arguments
    #[arg(last = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
    #[command(flatten)]
    pub(crate) sandbox: SandboxOptions,
    /// Run this in the place of the image's entrypoint; nothing, if it is empty
    #[arg(long, value_name = "PROGRAM", requires = "image")]
    pub(crate) entrypoint: Option<String>,
    /// End the command after this long: SIGTERM, two seconds later SIGKILL
    #[arg(long, value_name = "TIME", allow_negative_numbers = true)]
    pub(crate) timeout: Option<Timeout>,
    #[command(flatten)]
    pub(crate) terminal: TerminalOptions,
    /// Leave it to itself: print the sandbox's id as soon as the command runs. It stops when the command ends
    #[arg(long, short)]
    pub(crate) detach: bool,
    /// Print JSON with --detach: {"id"}
    #[arg(long, requires = "detach")]
    pub(crate) json: bool,
    /// Print each wall on stderr: given or not, why, and how to get it; at the end, how far the record goes
    #[arg(long)]
    pub(crate) report: bool,
}

/// Whether a command gets a terminal, and how it is left.
#[derive(Debug, Args)]
pub(crate) struct TerminalOptions {
    /// Give the command a terminal; by itself when stdin and stdout are terminals
    #[arg(long, short, overrides_with = "no_tty")]
    pub(crate) tty: bool,
    /// Give the command pipes, even on a terminal
    #[arg(long)]
    pub(crate) no_tty: bool,
    /// Taken for those who are used to it: stdin is always passed on
    #[arg(long, short, hide = true)]
    pub(crate) interactive: bool,
    /// The keys that leave a command on a terminal to itself [default: ctrl-p,ctrl-q]
    #[arg(long, value_name = "KEYS")]
    pub(crate) detach_keys: Option<DetachKeys>,
}

/// What a sandbox shall be.
#[derive(Debug, Args)]
pub(crate) struct SandboxOptions {
    /// A name for the sandbox, which is also its host name
    #[arg(long)]
    pub(crate) name: Option<SandboxName>,
    /// What builds the walls
    #[arg(long, value_enum, default_value_t = Backend::Native)]
    pub(crate) backend: Backend,
    /// The root file system: an image that `agentbox image` has brought, instead of your system's programs
    #[arg(long, value_name = "REF", conflicts_with = "tools")]
    pub(crate) image: Option<String>,
    /// What to do where a wall cannot be had: refuse, or start and report it
    #[arg(long, value_enum, default_value_t = Isolation::BestEffort)]
    pub(crate) isolation: Isolation,
    /// The tree to work on: a directory of yours, which is not changed until you have read what was done and take it, with
    /// `:direct` the directory itself, which is changed at once, or `empty`, a private one
    #[arg(long, short, default_value = "empty", value_name = "DIR")]
    pub(crate) workspace: Workspace,
    /// A directory or file of yours inside, read-only unless `:rw` is added
    #[arg(long, value_name = "SRC:DST[:rw]")]
    pub(crate) mount: Vec<Mount>,
    /// A variable for the command; without a value, yours is passed on
    #[arg(long, short, value_name = "NAME[=VALUE]")]
    pub(crate) env: Vec<String>,
    /// A file of such variables, one a line
    #[arg(long, value_name = "FILE")]
    pub(crate) env_file: Vec<PathBuf>,
    /// Where the command starts [default: where the image says, else /workspace]
    #[arg(long, value_name = "PATH")]
    pub(crate) workdir: Option<SandboxPath>,
    /// Who the command runs as: `agent`, a user id or UID:GID; root only with --backend gvisor [default: whom the image says, else agent]
    #[arg(long, value_name = "USER")]
    pub(crate) user: Option<User>,
    /// Memory, private files included
    #[arg(long, value_name = "SIZE", default_value_t = Limits::default().memory, allow_negative_numbers = true)]
    pub(crate) memory: Size,
    /// Processors
    #[arg(long, value_name = "NUMBER", default_value_t = Limits::default().cpus, allow_negative_numbers = true)]
    pub(crate) cpus: Cpus,
    /// Processes and threads
    #[arg(long, value_name = "NUMBER", default_value_t = Limits::default().pids, allow_negative_numbers = true)]
    pub(crate) pids: Pids,
    /// What the private directories may hold together
    #[arg(long, value_name = "SIZE", default_value_t = Limits::default().disk, value_parser = parse_disk, allow_negative_numbers = true)]
    pub(crate) disk: Size,
    /// Bring your tool chains along (rustup, nvm, pyenv, …), read-only and without credentials
    #[arg(long)]
    pub(crate) tools: bool,
    /// Reach a port inside on this machine: [ADDR:]PORT:PORT, this machine's first, 0 for a free one; on 127.0.0.1
    /// without an address
    #[arg(long, short, value_name = "PORT:PORT")]
    pub(crate) publish: Vec<PublishedPort>,
    /// End the sandbox so long after its start
    #[arg(long, value_name = "TIME", allow_negative_numbers = true)]
    pub(crate) lifetime: Option<Timeout>,
    /// End the sandbox when nobody is connected, nothing runs but terminals, and nothing appears on those for so long
    #[arg(long, value_name = "TIME", allow_negative_numbers = true)]
    pub(crate) idle_timeout: Option<Timeout>,
    /// Let the command make user namespaces, for tools that sandbox themselves
    #[arg(long)]
    pub(crate) nested: bool,
    #[command(flatten)]
    pub(crate) network: NetworkOptions,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Backend {
    /// Namespaces, seccomp, Landlock and cgroups, without a daemon
    Native,
    /// A kernel of its own (gVisor's runsc) within such namespaces
    Gvisor,
    /// crun within such namespaces
    Crun,
    /// runc within such namespaces
    Runc,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Isolation {
    /// Refuse to start with a wall missing
    Strict,
    /// Start, and report what is missing
    BestEffort,
}
