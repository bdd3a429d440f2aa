//! Commands about the machine itself.

use clap::{Args, ValueEnum};

/// See what this machine grants a sandbox, and the command that mends what is missing.
///
/// Everything is tried out, wall by wall, in processes that end at once; then a complete sandbox is started. The
/// exit code is 0 if it started with every wall that is never optional, 1 if not, and 125 for a failure of
/// agentbox itself.
#[derive(Debug, Args)]
#[command(after_long_help = "\
JSON:
  {
    \"version\": agentbox's own, \"kernel\": the release,
    \"caller\":  {\"uid\", \"gid\", \"name\"},
    \"probes\":  [{\"name\", \"state\": \"ok\" | \"weaker\" | \"missing\", \"detail\", \"fix\": a command or null}],
    \"report\":  [{\"wall\", \"state\": \"given\" | \"weaker\" | \"missing\", \"detail\", \"hint\" if not given}]
  }
  The report is that of the complete sandbox, empty if none started. Names are stable; later
  versions may add fields and probes.")]
pub(crate) struct Doctor {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Install what this machine lacks for a backend, or for all of it.
///
/// Every command is shown first, and run with --yes; then a complete sandbox is started with each backend. Nothing is put
/// into place that has known holes; what no command can do is said. Without --yes nothing is done at all. What takes root is
/// done by sudo, unless you are.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  agentbox setup gvisor           what would be done for --backend gvisor
  agentbox setup all --yes        do it: every backend, id ranges, limits, AppArmor's profile")]
pub(crate) struct Setup {
    /// What to set up
    #[arg(value_enum, default_value_t = SetupTarget::All)]
    pub(crate) target: SetupTarget,
    /// Run the commands
    #[arg(long, short)]
    pub(crate) yes: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum SetupTarget {
    /// Every backend, and what sandboxes of an ordinary user need
    All,
    /// A current runsc
    Gvisor,
    /// A current runc
    Runc,
    /// A current crun
    Crun,
}
