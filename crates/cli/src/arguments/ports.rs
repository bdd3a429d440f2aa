//! The command line of published ports.

use clap::Args;
use policy::{HostPort, PublishedPort};

/// Reach a port in a sandbox on this machine: add, list and remove published ports.
///
/// What connects to the port on this machine is passed on to the port inside. Nothing else of the sandbox is reached
/// that way, and nothing of this machine from inside. Ports that are added here are closed when the sandbox ends; those
/// of `--publish` are there again when it starts.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  agentbox port box add 8080:80
  agentbox port box add 0:3000          a free port, which is printed
  agentbox port box add '[::1]:8080:80'
  agentbox port box ls
  agentbox port box rm 8080")]
pub(crate) struct Port {
    /// The sandbox: its id, the beginning of its id, or its name
    #[arg(value_name = "ID")]
    pub(crate) sandbox: String,
    #[command(subcommand)]
    pub(crate) action: PortAction,
}

#[derive(Debug, clap::Subcommand)]
#[command(disable_help_subcommand = true)]
pub(crate) enum PortAction {
    Add(Add),
    Ls(List),
    Rm(Remove),
}

/// Publish a port, and print the address that it is reached on.
#[derive(Debug, Args)]
pub(crate) struct Add {
    /// The port on this machine, 0 for a free one, and the port inside; on 127.0.0.1 without an address
    #[arg(value_name = "[ADDR:]PORT:PORT")]
    pub(crate) port: PublishedPort,
}

/// List published ports, and what went through them.
#[derive(Debug, Args)]
#[command(after_long_help = "\
JSON:
  [{
    \"address\", \"port\": on this machine, \"inside\": the port in the sandbox,
    \"open\": connections now, \"total\": connections in all,
    \"bytes_in\", \"bytes_out\": into the sandbox and out of it
  }]
  Names are stable; later versions may add fields.")]
pub(crate) struct List {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Close a published port, and the connections that it has.
#[derive(Debug, Args)]
pub(crate) struct Remove {
    /// The port on this machine; on 127.0.0.1 without an address
    #[arg(value_name = "[ADDR:]PORT")]
    pub(crate) port: HostPort,
}
