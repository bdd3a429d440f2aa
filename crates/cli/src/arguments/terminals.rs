//! The command line of terminals inside.

use clap::Args;

use crate::keys::DetachKeys;

/// Look at a terminal in a sandbox, and type.
///
/// It shows what it would show had one been there all the time. Several may look at one terminal; it takes the size of
/// the last who came. The exit code is that of the command on it, or 0 on leaving.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  agentbox attach box
  agentbox attach box build --detach-keys ctrl-x,d")]
pub(crate) struct Attach {
    /// The sandbox: its id, the beginning of its id, or its name
    #[arg(value_name = "ID")]
    pub(crate) sandbox: String,
    /// The terminal; without a name, `main` or the only one
    #[arg(value_name = "TERMINAL")]
    pub(crate) terminal: Option<String>,
    /// The keys that leave it to itself [default: ctrl-p,ctrl-q]
    #[arg(long, value_name = "KEYS")]
    pub(crate) detach_keys: Option<DetachKeys>,
}

/// List the terminals in a sandbox.
#[derive(Debug, Args)]
#[command(after_long_help = "\
JSON:
  [{\"terminal\", \"exec\": its number, \"pid\": inside, \"command\": [text]}]
  Names are stable; later versions may add fields.")]
pub(crate) struct Terminals {
    /// The sandbox: its id, the beginning of its id, or its name
    #[arg(value_name = "ID")]
    pub(crate) sandbox: String,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Type something on a terminal in a sandbox.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  agentbox send --enter box 'make test'
  agentbox send box build q")]
pub(crate) struct Send {
    /// The sandbox: its id, the beginning of its id, or its name
    #[arg(value_name = "ID")]
    pub(crate) sandbox: String,
    /// The terminal, if there is more than one, and the text
    #[arg(value_name = "[TERMINAL] TEXT", required = true, num_args = 1..=2, allow_hyphen_values = true)]
    pub(crate) words: Vec<String>,
    /// Press Enter after it
    #[arg(long, short)]
    pub(crate) enter: bool,
}
