//! The command line of changes that wait: shown, taken, thrown away.

use clap::Args;

/// Show what was changed in a workspace.
///
/// It begins with the tree that it shows, which is the one that `apply` takes: if anything is changed after that, `apply`
/// refuses. Nothing in it acts on your terminal, whatever is in the files. On a terminal it is paged by $PAGER, or less.
///
/// Of a directory that was worked on directly it shows what that is now, your own changes since the start included.
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
    /// Only what was changed there, from the top of the workspace
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<std::ffi::OsString>,
    /// How much of each file
    #[arg(long, conflicts_with_all = ["name_only", "json"])]
    pub(crate) stat: bool,
    /// The files only
    #[arg(long, conflicts_with = "json")]
    pub(crate) name_only: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Take what was changed under review: as a new branch, or into your working tree.
///
/// A branch is `agentbox/NAME`, or `agentbox/ID` where the sandbox has no name; your checkout and your index are not
/// touched. The agent's commits come as they are, and what it did not commit as one more; its tree is exactly what `diff`
/// showed. Work of yours that was not committed when the sandbox began is a commit of its own, before. While changes are
/// taken, everything inside stands still. All of it is done, or nothing.
///
/// Of a directory that was worked on directly only commits are taken, as they are and as a branch; all else is there.
///
/// The exit code is 1 where --3way has left marks for you to resolve.
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
    /// Only what was changed there, from the top of the workspace, as one commit
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<std::ffi::OsString>,
    /// Another name for the branch
    #[arg(long, value_name = "NAME", conflicts_with = "worktree")]
    pub(crate) branch: Option<String>,
    /// Into your working tree instead; where there is no repository, that is the only way
    #[arg(long)]
    pub(crate) worktree: bool,
    /// Merge files that you have changed, too: marks where that cannot be done, NAME.agentbox for what is no text
    #[arg(long = "3way", requires = "worktree")]
    pub(crate) three_way: bool,
    /// Choose piece by piece
    #[arg(long, short)]
    pub(crate) patch: bool,
    /// One commit, whatever the agent has committed
    #[arg(long, conflicts_with = "worktree")]
    pub(crate) squash: bool,
    /// The tree that it has to be, instead of the one that `diff` showed last
    #[arg(long, value_name = "ID")]
    pub(crate) tree: Option<String>,
    /// Refuse where anything is flagged that runs or misleads
    #[arg(long)]
    pub(crate) refuse_risky: bool,
    /// Print JSON: {"branch", "commit", "tree", "commits": a number}, or {"files": a number, "conflicts": [path],
    /// "submodules": [path]} with --worktree
    #[arg(long, conflicts_with = "patch")]
    pub(crate) json: bool,
}

/// Throw away what was changed in a workspace under review.
///
/// Of one that is worked on directly that is only the commits: all else is in your directory, and stays there.
#[derive(Debug, Args)]
pub(crate) struct Discard {
    /// The sandboxes, which must not run: their ids, the beginnings of their ids, or their names
    #[arg(value_name = "ID", required = true)]
    pub(crate) sandboxes: Vec<String>,
    /// Print JSON, one object a line: {"id"}
    #[arg(long)]
    pub(crate) json: bool,
}
