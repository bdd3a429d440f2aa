//! The owner's tool chains for `--tools`: the directories of well-known version managers that hold programs,
//! listed one by one so that the credential files beside them stay outside.

use std::fs;
use std::path::{Path, PathBuf};

/// Below the owner's home: what holds programs and nothing that opens an account.
const TREES: [&str; 23] = [
    ".asdf/installs",
    ".asdf/shims",
    ".bun/bin",
    ".cargo/bin",
    ".deno/bin",
    ".fnm",
    ".local/bin",
    ".local/pipx/venvs",
    ".local/share/fnm",
    ".local/share/mise/installs",
    ".local/share/mise/shims",
    ".local/share/pipx/venvs",
    ".local/share/pnpm",
    ".local/share/uv/python",
    ".local/share/uv/tools",
    ".npm-global",
    ".nvm/versions",
    ".pyenv",
    ".rbenv",
    ".rustup",
    ".sdkman/candidates",
    ".volta/bin",
    "go/bin",
];

/// Variables by which a tool finds its own tree when the home directory is another one.
const VARIABLES: [(&str, &str); 5] = [
    ("RUSTUP_HOME", ".rustup"),
    ("PYENV_ROOT", ".pyenv"),
    ("RBENV_ROOT", ".rbenv"),
    ("NVM_DIR", ".nvm/versions"),
    ("UV_PYTHON_INSTALL_DIR", ".local/share/uv/python"),
];

/// The tool chains that an owner has.
pub struct OwnerTools {
    trees: Vec<PathBuf>,
}

impl OwnerTools {
    /// Looks for them below `home`.
    #[must_use]
    pub fn find(home: &Path) -> Self {
        let trees = TREES.iter().map(|tree| home.join(tree));
        let is_directory = |path: &PathBuf| fs::metadata(path).is_ok_and(|metadata| metadata.is_dir());
        Self { trees: trees.filter(is_directory).collect() }
    }

    /// The directories that hold them.
    #[must_use]
    pub fn trees(&self) -> &[PathBuf] {
        &self.trees
    }
}

/// The entries of the owner's PATH that lie in those trees, in the owner's order.
#[must_use]
pub fn tool_path(home: &Path, path: &str) -> Vec<String> {
    let tools = OwnerTools::find(home);
    let reachable = |entry: &&str| tools.trees.iter().any(|tree| Path::new(entry).starts_with(tree));
    path.split(':').filter(reachable).map(str::to_owned).collect()
}

/// The variables that lead tools to those trees.
#[must_use]
pub fn tool_environment(home: &Path) -> Vec<(&'static str, String)> {
    VARIABLES
        .iter()
        .map(|(name, tree)| (*name, home.join(tree)))
        .filter(|(_, tree)| tree.is_dir())
        .map(|(name, tree)| (name, tree.display().to_string()))
        .collect()
}
