//! The command line of what sandboxes use, and of changing it.

use clap::Args;
use policy::{Cpus, Pids, Size, Timeout, parse_disk};

/// List the processes in a sandbox, and what each exec left behind.
///
/// Which exec a process comes from is known by its session and by a variable that it inherits; a process may hide it.
#[derive(Debug, Args)]
#[command(after_long_help = "\
JSON:
  [{
    \"pid\", \"parent\": inside, \"exec\": its number or null,
    \"left\": whether its exec has ended, \"user\": inside or null, \"state\": the kernel's letter,
    \"threads\", \"memory\": bytes, \"cpu_ms\": processor time, \"started\": milliseconds since 1970,
    \"command\": [text]
  }]
  Names are stable; later versions may add fields.")]
pub(crate) struct Ps {
    /// The sandbox: its id, the beginning of its id, or its name
    #[arg(value_name = "ID")]
    pub(crate) sandbox: String,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Show what sandboxes use, again and again: processors, memory, processes, network.
///
/// Without cgroups, memory is the sum over processes, in which what they share counts for each.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  agentbox top
  agentbox top --once box
  agentbox top --json --interval 10 >> usage.jsonl")]
#[command(after_long_help = "\
Examples:
  agentbox top
  agentbox top --once box
  agentbox top --json --interval 10 >> usage.jsonl

JSON, one line each time:
  [{
    \"id\", \"name\": text or null, \"cpus\": processors in use since the last line, \"cpu_ms\": since its start,
    \"memory\": bytes, \"pids\": processes and threads,
    \"network\": null or {\"open\": connections, \"refused\", \"sent\": bytes, \"received\",
                          \"sent_per_second\", \"received_per_second\"},
    \"limits\": {\"memory\": bytes, \"cpus\", \"pids\"}, \"paused\"
  }]
  Names are stable; later versions may add fields.")]
pub(crate) struct Top {
    /// The sandboxes: their ids, the beginnings of their ids, or their names; without one, all that run
    #[arg(value_name = "ID")]
    pub(crate) sandboxes: Vec<String>,
    /// Measure once, over one interval, and end
    #[arg(long)]
    pub(crate) once: bool,
    /// How long to measure each time
    #[arg(long, value_name = "TIME", default_value = "1s")]
    pub(crate) interval: Timeout,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Let everything in sandboxes stand still, until `agentbox resume`.
///
/// Processes are frozen by their cgroup; where there is none, each is stopped by a signal. Nothing can be started or
/// copied meanwhile; time goes on.
#[derive(Debug, Args)]
pub(crate) struct Pause {
    /// The sandboxes: their ids, the beginnings of their ids, or their names
    #[arg(value_name = "ID", required = true)]
    pub(crate) sandboxes: Vec<String>,
    /// Print JSON: {"id"}
    #[arg(long)]
    pub(crate) json: bool,
}

/// Let everything in sandboxes go on.
#[derive(Debug, Args)]
pub(crate) struct Resume {
    /// The sandboxes: their ids, the beginnings of their ids, or their names
    #[arg(value_name = "ID", required = true)]
    pub(crate) sandboxes: Vec<String>,
    /// Print JSON: {"id"}
    #[arg(long)]
    pub(crate) json: bool,
}

/// Give a sandbox other limits: at once where it runs, else when it starts.
///
/// All are changed or none. What a running sandbox is limited by without cgroups cannot be changed, nor can the size of
/// its private directories.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  agentbox update box --memory 8G --cpus 2")]
pub(crate) struct Update {
    /// The sandbox: its id, the beginning of its id, or its name
    #[arg(value_name = "ID")]
    pub(crate) sandbox: String,
    /// Memory, private files included
    #[arg(long, value_name = "SIZE", allow_negative_numbers = true)]
    pub(crate) memory: Option<Size>,
    /// Processors
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    pub(crate) cpus: Option<Cpus>,
    /// Processes and threads
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    pub(crate) pids: Option<Pids>,
    /// What the private directories may hold together, and what is kept on the disk before all is paused
    #[arg(long, value_name = "SIZE", value_parser = parse_disk, allow_negative_numbers = true)]
    pub(crate) disk: Option<Size>,
    /// Print JSON: {"id"}
    #[arg(long)]
    pub(crate) json: bool,
}
