//! The command line of changes that wait: shown, taken, thrown away.

use clap::Args;

/// Show what was changed in a workspace, and what in it deserves a look.
///
/// The first line names the tree that is shown. `apply` takes exactly that one, and refuses if anything has been changed
/// since. On a terminal the text is paged by $PAGER, or by less; nothing in it acts on your terminal, whatever is in the
/// files.
///
/// Of a directory that is worked on directly (`DIR:direct`) it shows what has changed since the start, by you or inside.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  agentbox diff box
  agentbox diff --stat box src
  agentbox diff --json box | jq '.files[] | select(.risks != [])'")]
#[command(after_long_help = "\
Examples:
  agentbox diff box
  agentbox diff --stat box src
  agentbox diff --json box | jq '.files[] | select(.risks != [])'

JSON:
  {
    \"tree\", \"base\": ids of trees, \"base_commit\": an id or null,
    \"files\": [{
      \"path\", \"old_path\": text or null,
      \"status\": \"added\" | \"deleted\" | \"modified\" | \"renamed\" | \"retyped\",
      \"old_mode\", \"mode\": as git writes them, \"000000\" for none,
      \"added\", \"removed\": lines or null, \"binary\": true or false,
      \"risks\": [{\"code\", \"reason\"}],
      \"conflict\": whether you have changed it since, too
    }],
    \"commits\": [{\"id\", \"author\", \"subject\", \"files\": as above}],
    \"left_out\": [{\"path\", \"code\", \"reason\"}], what does not come back,
    \"mode\": \"review\" | \"direct\",
    \"named\": [{\"path\", \"code\", \"reason\"}], what runs by its name where git does not look,
    \"problem\": why commits could not be fetched, or null
  }
  In a path a backslash is doubled, and a byte that is not UTF-8 is \\x and two digits. Names are
  stable; later versions may add fields and codes.")]
pub(crate) struct Diff {
    /// The sandbox: its id, the beginning of its id, or its name
    #[arg(value_name = "ID")]
    pub(crate) sandbox: String,
    /// Show only these files and directories, written from the top of the workspace
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<std::ffi::OsString>,
    /// Show only how many lines of each file were changed
    #[arg(long, conflicts_with_all = ["name_only", "json"])]
    pub(crate) stat: bool,
    /// Show only the names of the changed files
    #[arg(long, conflicts_with = "json")]
    pub(crate) name_only: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Take the changes of a workspace: as a new branch, or into your working tree.
///
/// The branch is called `agentbox/NAME`, or `agentbox/ID` if the sandbox has no name. Your checkout and your index are not
/// touched. The agent's commits come as they are, and what it has not committed as one more; the files of the last one are
/// exactly those that `diff` showed. What you had not committed yourself when the sandbox began is a commit of its own
/// before them. Everything inside stands still meanwhile. Either all of it is done, or nothing.
///
/// Of a directory that is worked on directly (`DIR:direct`) only commits are taken, as they are and as a branch: everything
/// else is in your directory already.
///
/// The exit code is 1 if --3way has left marks for you to resolve.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  agentbox apply box
  agentbox apply --branch fix-login --squash box
  agentbox apply --worktree box src/main.rs
  agentbox apply --worktree --3way box
  agentbox apply --patch box")]
pub(crate) struct Apply {
    /// The sandbox: its id, the beginning of its id, or its name
    #[arg(value_name = "ID")]
    pub(crate) sandbox: String,
    /// Take only these files and directories, written from the top of the workspace, as one commit
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<std::ffi::OsString>,
    /// Make a branch of this name instead
    #[arg(long, value_name = "NAME", conflicts_with = "worktree")]
    pub(crate) branch: Option<String>,
    /// Write to your working tree instead of a branch; without a git repository this is the only way
    #[arg(long)]
    pub(crate) worktree: bool,
    /// Merge with what you have changed in the same files, leaving marks where both changed the same lines; of what is no
    /// text the agent's version is put beside yours as NAME.agentbox
    #[arg(long = "3way", requires = "worktree")]
    pub(crate) three_way: bool,
    /// Ask about each piece of each file
    #[arg(long, short)]
    pub(crate) patch: bool,
    /// Make one commit of everything, whatever the agent has committed
    #[arg(long, conflicts_with = "worktree")]
    pub(crate) squash: bool,
    /// Take only this tree, or the beginning of its id, instead of what `diff` showed last
    #[arg(long, value_name = "ID")]
    pub(crate) tree: Option<String>,
    /// Take nothing if `diff` flags anything as a risk
    #[arg(long)]
    pub(crate) refuse_risky: bool,
    /// Print JSON: {"branch", "commit", "tree", "commits": a number}, or {"files": a number, "conflicts": [path],
    /// "submodules": [path]} with --worktree
    #[arg(long, conflicts_with = "patch")]
    pub(crate) json: bool,
}

/// Throw away the changes of a workspace under review.
///
/// The sandbox stays, and begins anew with your directory as it is then. Of a directory that is worked on directly
/// (`DIR:direct`) only the commits are thrown away: everything else is in your directory, and stays there.
#[derive(Debug, Args)]
pub(crate) struct Discard {
    /// The sandboxes, which must not run: their ids, the beginnings of their ids, or their names
    #[arg(value_name = "ID", required = true)]
    pub(crate) sandboxes: Vec<String>,
    /// Print JSON, one object a line: {"id"}
    #[arg(long)]
    pub(crate) json: bool,
}
