//! The command line of what is set once.

use clap::Args;

/// Show what is set without an option, and where that is from.
///
/// An option goes before the environment, that before $XDG_CONFIG_HOME/agentbox/config.toml (~/.config without it), and
/// that before /etc/agentbox/config.toml. Nothing is read from a workspace.
///
/// [network] upstream-proxy, AGENTBOX_UPSTREAM_PROXY: your own HTTP proxy, http://[USER:PASSWORD@]HOST:PORT or none
///
/// [workspace] hide, show: names of files that are absent in a workspace where git does not track them, besides those that
/// usually hold secrets, and names that are not
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  agentbox config show

In config.toml:
  [network]
  upstream-proxy = \"http://proxy.example:3128\"

  [workspace]
  hide = [\"*.sqlite\", \"private/\"]
  show = [\"*.pem\"]")]
pub(crate) struct Config {
    #[command(subcommand)]
    pub(crate) action: ConfigAction,
}

#[derive(Debug, clap::Subcommand)]
#[command(disable_help_subcommand = true)]
pub(crate) enum ConfigAction {
    Show(ShowConfig),
}

/// Print each setting, its value and where that is from.
#[derive(Debug, Args)]
#[command(after_long_help = "\
JSON:
  [{\"name\", \"value\": text without a password, or a list, \"from\": a file, the environment, or default}]
  Names are stable; later versions may add fields.")]
pub(crate) struct ShowConfig {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
