//! The command line of sandboxes that stay.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use policy::{SandboxName, SandboxPath, Timeout, User};

use super::{SandboxOptions, TerminalOptions};

/// Make a sandbox that stays, and print its id.
///
/// It idles until it is told to run something with `agentbox exec`, and ends with `agentbox stop`. Its workspace and
/// outputs outlive its processes; `agentbox rm` removes them.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  agentbox create
  agentbox create --name box --memory 8G --mount ~/data:/data
  agentbox create --name web --publish 8080:80
  id=$(agentbox create) && agentbox exec $id -- python3 -V; agentbox rm -f $id")]
pub(crate) struct Create {
    #[command(flatten)]
    pub(crate) sandbox: SandboxOptions,
    /// Print each wall on stderr: given or not, why, and how to get it
    #[arg(long)]
    pub(crate) report: bool,
    /// Print JSON: {"id", "name"}
    #[arg(long)]
    pub(crate) json: bool,
}

/// Run a command in a sandbox that is there.
///
/// The exit code is the command's own, as with `agentbox run`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  agentbox exec box -- ls -l
  agentbox exec -it box -- bash
  agentbox exec --detach box -- python3 -m http.server
  agentbox exec --env TOKEN --workdir /tmp box -- ./job")]
pub(crate) struct Exec {
    /// The sandbox: its id, the beginning of its id, or its name
    #[arg(value_name = "ID")]
    pub(crate) sandbox: String,
    /// The command and its arguments
    #[arg(last = true, value_name = "CMD", required = true)]
    pub(crate) command: Vec<OsString>,
    /// A variable for the command; without a value, yours is passed on
    #[arg(long, short, value_name = "NAME[=VALUE]")]
    pub(crate) env: Vec<String>,
    /// A file of such variables, one a line
    #[arg(long, value_name = "FILE")]
    pub(crate) env_file: Vec<PathBuf>,
    /// Where the command starts, instead of where the sandbox says
    #[arg(long, value_name = "PATH")]
    pub(crate) workdir: Option<SandboxPath>,
    /// Who the command runs as, instead of whom the sandbox says
    #[arg(long, value_name = "USER")]
    pub(crate) user: Option<User>,
    /// End the command after this long: SIGTERM, two seconds later SIGKILL
    #[arg(long, value_name = "TIME", allow_negative_numbers = true)]
    pub(crate) timeout: Option<Timeout>,
    #[command(flatten)]
    pub(crate) terminal: TerminalOptions,
    /// Leave it to itself: print its number as soon as it runs
    #[arg(long, short)]
    pub(crate) detach: bool,
    /// Print JSON with --detach: {"exec": its number}
    #[arg(long, requires = "detach")]
    pub(crate) json: bool,
    /// A name for its terminal, to attach to it by
    #[arg(long = "terminal", value_name = "NAME")]
    pub(crate) terminal_name: Option<SandboxName>,
}

/// Copy files and trees into a sandbox or out of it.
///
/// Modes, times and links are kept, links as links; what comes out of a sandbox belongs to you and is never
/// set-user-id. Pipes, sockets and devices are left out and named.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  agentbox cp src box:/workspace
  agentbox cp box:/workspace/report.pdf .
  tar c data | agentbox cp - box:/tmp
  agentbox cp box:/mnt/user-data/outputs - | tar t")]
pub(crate) struct Cp {
    /// What to copy: a path of yours, ID:PATH inside, or `-` for a tar stream on stdin
    #[arg(value_name = "SRC")]
    pub(crate) source: String,
    /// Where to: a path of yours, ID:PATH inside, or `-` for a tar stream on stdout
    #[arg(value_name = "DST")]
    pub(crate) target: String,
}

/// List sandboxes: those that run, or all.
#[derive(Debug, Args)]
#[command(after_long_help = "\
JSON:
  [{
    \"id\", \"name\": text or null,
    \"state\": \"starting\" | \"running\" | \"paused\" | \"created\" | \"stopped\" | \"damaged\",
    \"created\": milliseconds since 1970, \"since\": the same or null,
    \"reason\": \"exited\" | \"stopped\" | \"expired\" | \"idle\" | \"killed\" or null,
    \"code\": an exit code or null,
    \"kept\": whether `stop` leaves anything, \"problem\": text or null,
    \"ports\": [{\"address\", \"port\", \"inside\"}], those that `--publish` named
    \"changes\": whether something waits in a workspace under review
  }]
  Names are stable; later versions may add fields.")]
pub(crate) struct Ls {
    /// Those that have ended, too
    #[arg(long, short)]
    pub(crate) all: bool,
    /// Ids only
    #[arg(long, short, conflicts_with = "json")]
    pub(crate) quiet: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Print all that is known of a sandbox, as JSON.
#[derive(Debug, Args)]
pub(crate) struct Inspect {
    /// The sandbox: its id, the beginning of its id, or its name
    #[arg(value_name = "ID")]
    pub(crate) sandbox: String,
}

/// Start a sandbox that has ended, with the workspace and outputs that it left.
#[derive(Debug, Args)]
pub(crate) struct Start {
    /// The sandbox: its id, the beginning of its id, or its name
    #[arg(value_name = "ID")]
    pub(crate) sandbox: String,
    /// Print JSON: {"id"}
    #[arg(long)]
    pub(crate) json: bool,
}

/// End sandboxes: SIGTERM for every process, SIGKILL for what is left.
#[derive(Debug, Args)]
pub(crate) struct Stop {
    /// The sandboxes: their ids, the beginnings of their ids, or their names
    #[arg(value_name = "ID", required = true)]
    pub(crate) sandboxes: Vec<String>,
    /// Seconds from SIGTERM to SIGKILL
    #[arg(long, short, value_name = "SECONDS", default_value_t = 10)]
    pub(crate) time: u32,
    /// Print JSON, one object a line: {"id", "record": {"entries", "head"} or null}
    #[arg(long)]
    pub(crate) json: bool,
}

/// Wait until a sandbox has ended, and print what its command exited with.
#[derive(Debug, Args)]
pub(crate) struct Wait {
    /// The sandbox: its id, the beginning of its id, or its name
    #[arg(value_name = "ID")]
    pub(crate) sandbox: String,
    /// Print JSON: {"id", "code": an exit code or null, "record": {"entries", "head"} or null}
    #[arg(long)]
    pub(crate) json: bool,
}

/// Print what a process wrote: the last 4 MiB of stdout and of stderr.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  agentbox logs box
  agentbox logs -f box 3")]
pub(crate) struct Logs {
    /// The sandbox: its id, the beginning of its id, or its name
    #[arg(value_name = "ID")]
    pub(crate) sandbox: String,
    /// The process, by the number that `agentbox exec --detach` printed; without one, the first that is known
    #[arg(value_name = "EXEC")]
    pub(crate) exec: Option<u64>,
    /// Go on until it has ended
    #[arg(long, short)]
    pub(crate) follow: bool,
}

/// Remove sandboxes that have ended, with all that was kept of them.
///
/// One in which changes wait that you have not applied is not removed, unless with --force.
#[derive(Debug, Args)]
pub(crate) struct Rm {
    /// The sandboxes: their ids, the beginnings of their ids, or their names
    #[arg(value_name = "ID", required = true)]
    pub(crate) sandboxes: Vec<String>,
    /// End those that run, and throw away changes that wait
    #[arg(long, short)]
    pub(crate) force: bool,
    /// Print JSON, one object a line: {"id", "record": {"entries", "head"} or null}
    #[arg(long)]
    pub(crate) json: bool,
}

/// Print what is on record of a sandbox, also of one that is gone.
///
/// Each record holds the hash of the one before. `--verify` finds what was changed; that the end was cut off shows only
/// against a head that was kept elsewhere: `stop`, `wait` and `rm` tell it at the end, on a terminal and with --json,
/// `run` with --report.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  agentbox audit box
  agentbox audit -f --json box
  agentbox audit --verify --head 3f…c9 box")]
pub(crate) struct Audit {
    /// The sandbox: its id, the beginning of its id, or its name; one that is gone by its whole id
    #[arg(value_name = "ID")]
    pub(crate) sandbox: String,
    /// Go on with what happens
    #[arg(long, short)]
    pub(crate) follow: bool,
    /// Check the chain and print its head
    #[arg(long, conflicts_with = "follow")]
    pub(crate) verify: bool,
    /// A head that the chain has to have, as it was told before
    #[arg(long, value_name = "HASH", requires = "verify")]
    pub(crate) head: Option<String>,
    /// Print the records as they are, one JSON object a line
    #[arg(long, conflicts_with = "verify")]
    pub(crate) json: bool,
}

/// Remove what killed processes left, and old records of sandboxes that are gone.
///
/// Other commands do the same by themselves, with records at most once a day.
#[derive(Debug, Args)]
pub(crate) struct Gc {
    /// Days that records outlive their sandboxes
    #[arg(long, value_name = "DAYS", default_value_t = engine::RECORD_DAYS)]
    pub(crate) audit_days: u32,
    /// Print JSON: the ids of records that were removed, [text]
    #[arg(long)]
    pub(crate) json: bool,
}
