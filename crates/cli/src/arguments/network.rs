//! The command line of what may leave a sandbox, and of seeing what does.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use policy::network::{HostRule, Preset, ProxyChoice, Rule, Service, Target};
use policy::{Size, SizeError};

/// What may leave a sandbox.
#[derive(Debug, Args)]
pub(crate) struct NetworkOptions {
    /// The way out: none, what is allowed, or everything public [default: none; allowlist where something is allowed]
    #[arg(long, value_enum, value_name = "MODE", help_heading = "Network")]
    pub(crate) network: Option<Way>,
    /// Let this be reached: HOST[:PORT], *.DOMAIN[:PORT], ADDRESS[/BITS][:PORT] or '[METHOD ]http://HOST/PATH'; on ports
    /// 80 and 443 without one, on all with `*`. What stands in allowlist.d of the configuration directories is added
    #[arg(long, value_name = "RULE", help_heading = "Network")]
    pub(crate) allow: Vec<Rule>,
    /// Never let this be reached by this name or address, whatever allows it: HOST, *.DOMAIN or ADDRESS[/BITS]
    #[arg(long, value_name = "HOST", help_heading = "Network")]
    pub(crate) deny: Vec<Target>,
    /// A file of such rules, one a line
    #[arg(long, value_name = "FILE", help_heading = "Network")]
    pub(crate) allow_file: Vec<PathBuf>,
    /// A list of hosts that comes with agentbox: default, pypi, npm, crates, github, debian, go, openai, anthropic
    #[arg(long, value_name = "NAME", value_parser = preset, help_heading = "Network")]
    pub(crate) preset: Vec<Preset>,
    /// A service of this machine, such as a model server: inside it is NAME, and 10.200.200.1 on its port or on that
    /// behind the `@`
    #[arg(long, value_name = "NAME=ADDR:PORT[@PORT]", help_heading = "Network")]
    pub(crate) service: Vec<Service>,
    /// Let this one name be reached also where it leads into a private network, as a company's mirror
    #[arg(long, value_name = "HOST[:PORT]", help_heading = "Network")]
    pub(crate) allow_private: Vec<HostRule>,
    /// Send what is allowed through your own HTTP proxy: http://[USER:PASSWORD@]HOST:PORT, or none
    /// [default: what `agentbox config show` says]
    #[arg(long, value_name = "URL", help_heading = "Network")]
    pub(crate) upstream_proxy: Option<ProxyChoice>,
    /// The most that goes out in a second, and comes in, over all connections together, such as 1M [default: no limit]
    #[arg(long, value_name = "SIZE", value_parser = bandwidth, help_heading = "Network")]
    pub(crate) bandwidth: Option<Size>,
    /// Let every public address be reached; this machine and private networks stay closed
    #[arg(long, conflicts_with = "network", help_heading = "Network")]
    pub(crate) full_network: bool,
}

/// With less than that, whoever waits for a turn would be taken for one who does not go on.
const LEAST_BANDWIDTH: u64 = 16 * 1024;

fn bandwidth(text: &str) -> Result<Size, String> {
    let size: Size = text.parse().map_err(|error: SizeError| error.to_string())?;
    if size.as_bytes() < LEAST_BANDWIDTH {
        return Err("it is too little to get through by: 16K at least, such as 1M".to_owned());
    }
    Ok(size)
}

pub(super) fn preset(name: &str) -> Result<Preset, String> {
    let names = || Preset::names().collect::<Vec<_>>().join(", ");
    Preset::find(name).ok_or_else(|| format!("there is none of that name; there are {}", names()))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Way {
    /// None
    None,
    /// To what is allowed
    Allowlist,
    /// To every public address
    Full,
}

/// Show whom a sandbox has reached, whom not and why, and how many bytes went each way.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  agentbox net box
  agentbox net box -f")]
#[command(after_long_help = "\
Examples:
  agentbox net box
  agentbox net box -f

JSON, with -f one line for each that changes:
  [{
    \"host\": a name or an address, \"port\": null for a question where the host is,
    \"verdict\": \"allowed\" or the reason why not, \"times\", \"open\": connections now,
    \"sent\", \"received\": bytes out of the sandbox and into it
  }]
  Names and reasons are stable; later versions may add some.")]
pub(crate) struct Net {
    /// The sandbox: its id, the beginning of its id, or its name
    #[arg(value_name = "ID")]
    pub(crate) sandbox: String,
    /// Go on with what changes
    #[arg(long, short)]
    pub(crate) follow: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Show, change or explain what may leave a sandbox.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  agentbox policy show box
  agentbox policy set box --preset pypi --allow example.com
  agentbox policy explain box example.com:443")]
pub(crate) struct Policy {
    #[command(subcommand)]
    pub(crate) action: PolicyAction,
}

#[derive(Debug, clap::Subcommand)]
#[command(disable_help_subcommand = true)]
pub(crate) enum PolicyAction {
    Show(ShowPolicy),
    Set(Box<SetPolicy>),
    Explain(Explain),
}

/// Show what may leave a sandbox, rule by rule.
#[derive(Debug, Args)]
pub(crate) struct ShowPolicy {
    /// The sandbox: its id, the beginning of its id, or its name
    #[arg(value_name = "ID")]
    pub(crate) sandbox: String,
    /// Print JSON: {"mode", "allow", "deny", "private", "services"}
    #[arg(long)]
    pub(crate) json: bool,
}

/// Give a sandbox another policy: at once where it runs, and whenever it starts.
///
/// What is given here takes the place of what there was. Connections that are no longer allowed are cut. A sandbox that
/// was started without a network has none to give a policy to until it is started again.
#[derive(Debug, Args)]
pub(crate) struct SetPolicy {
    /// The sandbox: its id, the beginning of its id, or its name
    #[arg(value_name = "ID")]
    pub(crate) sandbox: String,
    #[command(flatten)]
    pub(crate) network: NetworkOptions,
}

/// Explain whether something may be reached from a sandbox, and by which rule.
///
/// The exit code is 0 if it may and 1 if not. Nothing is asked of anybody: where a name leads is seen when it is dialled.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  agentbox policy explain box example.com
  agentbox policy explain box example.com:22
  agentbox policy explain box 203.0.113.7:5432
  agentbox policy explain box http://example.com/path --method POST")]
pub(crate) struct Explain {
    /// The sandbox: its id, the beginning of its id, or its name
    #[arg(value_name = "ID")]
    pub(crate) sandbox: String,
    /// What is to be reached: a name or an address, with a port unless 443 is meant, or the address of a page
    #[arg(value_name = "HOST[:PORT]|URL")]
    pub(crate) target: String,
    /// The method, for the address of a page
    #[arg(long, default_value = "GET")]
    pub(crate) method: String,
    /// Print JSON: {"host", "port", "allowed", "verdict", "rule", "hint"}
    #[arg(long)]
    pub(crate) json: bool,
}
