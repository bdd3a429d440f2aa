//! The command line of the explicit proxy, and of its tokens.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use policy::network::{HostName, HostRule, Preset, ProxyChoice, Rule, Target};
use policy::{SandboxName, Timeout};

use super::network::preset;

/// Where the proxy is unless somebody says otherwise.
const USUAL: &str = "127.0.0.1:15004";

/// Serve a proxy with tokens, for other containers, pods and machines.
///
/// It takes HTTP CONNECT and requests that name their host, from whoever shows a token that `agentbox proxy token` has
/// made, and lets through what the token allows, by the rules that hold for sandboxes. Tokens are signed with the
/// variable SIGNING_KEY, of at least 32 bytes, or with a key that is made once and kept. It prints the address that it
/// listens on, and what it sees on stderr, one JSON object a line. What cannot be written there is not let through. It
/// ends with SIGTERM or SIGINT.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_help = "\
Examples:
  agentbox proxy &
  export HTTPS_PROXY=$(agentbox proxy token --preset pypi) && pip download requests
  agentbox proxy --listen 172.17.0.1:15004 --log proxy.jsonl")]
#[command(after_long_help = "\
Examples:
  agentbox proxy &
  export HTTPS_PROXY=$(agentbox proxy token --preset pypi) && pip download requests
  agentbox proxy --listen 172.17.0.1:15004 --log proxy.jsonl

Refusals are answered with 403, 407, 400, 408, 502 or 503 and JSON:
  {\"error\": \"blocked\", \"reason\", \"host\" and \"rule\" where there are any, \"hint\"}

Records, each with \"time\", milliseconds since 1970, \"holder\", the token's name, and \"event\":
  opened       \"connection\": a number, \"host\", \"port\", \"address\"
  request      \"connection\", \"method\", \"target\", \"reason\": text or null, \"unwritten\"
  closed       \"connection\", \"host\", \"port\", \"sent\", \"received\", \"reason\": text or null
  refused      \"host\", \"port\", \"reason\", \"unwritten\": others before it
  turned-away  \"from\", \"reason\", \"unwritten\"; without a holder
  Names and reasons are stable; later versions may add some.")]
pub(crate) struct Proxy {
    #[command(subcommand)]
    pub(crate) action: Option<ProxyAction>,
    /// Where to listen
    #[arg(long, value_name = "ADDR:PORT", default_value = USUAL)]
    pub(crate) listen: SocketAddr,
    /// Send what is allowed through your own HTTP proxy: http://[USER:PASSWORD@]HOST:PORT, or none
    /// [default: what `agentbox config show` says]
    #[arg(long, value_name = "URL")]
    pub(crate) upstream_proxy: Option<ProxyChoice>,
    /// A file to add the records to, instead of stderr
    #[arg(long, value_name = "FILE")]
    pub(crate) log: Option<PathBuf>,
    /// Print JSON: {"listening": ADDR:PORT}
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, clap::Subcommand)]
#[command(disable_help_subcommand = true)]
pub(crate) enum ProxyAction {
    Token(MintToken),
}

/// Make a token for the proxy, and print it as the value of HTTPS_PROXY.
///
/// Whoever has it reaches what it allows until it expires; it cannot be taken back but with another key. It is a JSON
/// Web Token, shown to the proxy as the password of any user or as a bearer token.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  agentbox proxy token --allow example.com
  agentbox proxy token --preset npm --name ci --expires 8h
  curl --proxy $(agentbox proxy token --allow example.com) https://example.com/
  docker run -e HTTPS_PROXY=$(agentbox proxy token --preset pypi --proxy 172.17.0.1:15004) …")]
pub(crate) struct MintToken {
    /// Let this be reached: HOST[:PORT], *.DOMAIN[:PORT], ADDRESS[/BITS][:PORT] or '[METHOD ]http://HOST/PATH'; on ports
    /// 80 and 443 without one, on all with `*`
    #[arg(long, value_name = "RULE")]
    pub(crate) allow: Vec<Rule>,
    /// Never let this be reached, whatever allows it: HOST, *.DOMAIN or ADDRESS[/BITS]
    #[arg(long, value_name = "HOST")]
    pub(crate) deny: Vec<Target>,
    /// A file of such rules, one a line
    #[arg(long, value_name = "FILE")]
    pub(crate) allow_file: Vec<PathBuf>,
    /// A list of hosts that comes with agentbox: default, pypi, npm, crates, github, debian, go, openai, anthropic
    #[arg(long, value_name = "NAME", value_parser = preset)]
    pub(crate) preset: Vec<Preset>,
    /// Let this one name be reached also where it leads into a private network, as a company's mirror
    #[arg(long, value_name = "HOST[:PORT]")]
    pub(crate) allow_private: Vec<HostRule>,
    /// Whom it is for, as the records name them: a sandbox's id or name, or any other
    #[arg(long, default_value = "agent")]
    pub(crate) name: SandboxName,
    /// How long it is valid
    #[arg(long, value_name = "TIME", default_value = "1h")]
    pub(crate) expires: Timeout,
    /// Where the proxy is, as whoever uses the token reaches it
    #[arg(long, value_name = "HOST:PORT", default_value = USUAL, value_parser = place)]
    pub(crate) proxy: String,
    /// Print JSON: {"proxy", "token", "expires": seconds since 1970}
    #[arg(long)]
    pub(crate) json: bool,
}

/// A host and a port, as they stand in the address of a proxy.
fn place(text: &str) -> Result<String, String> {
    if text.parse::<SocketAddr>().is_ok() {
        return Ok(text.to_owned());
    }
    let named = text.rsplit_once(':').and_then(|(host, port)| {
        let port = port.parse::<std::num::NonZeroU16>().ok()?;
        Some(format!("{}:{port}", host.parse::<HostName>().ok()?))
    });
    named.ok_or_else(|| "it is no HOST:PORT".to_owned())
}
