//! What a file is by its name: the programs that people use every day take some for instructions.

use super::Code;

/// The last part of a path.
pub(super) fn name(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or(path)
}

/// Directories in which every file counts.
const DIRECTORIES: [(&str, Code, &str); 20] = [
    (".git", Code::Hook, "git reads it"),
    (".githooks", Code::Hook, "hooks may be run from there"),
    (".husky", Code::Hook, "husky runs it as a hook"),
    (".github/workflows", Code::Ci, "GitHub runs it"),
    (".github/actions", Code::Ci, "GitHub runs it"),
    (".gitlab", Code::Ci, "GitLab may run it"),
    (".circleci", Code::Ci, "CircleCI runs it"),
    (".buildkite", Code::Ci, "Buildkite runs it"),
    (".woodpecker", Code::Ci, "Woodpecker runs it"),
    (".gitea/workflows", Code::Ci, "Gitea runs it"),
    (".forgejo/workflows", Code::Ci, "Forgejo runs it"),
    (".vscode", Code::Editor, "VS Code may run or obey it when the directory is opened"),
    (".idea", Code::Editor, "JetBrains editors may run or obey it when the directory is opened"),
    (".zed", Code::Editor, "Zed may run or obey it when the directory is opened"),
    (".devcontainer", Code::Environment, "an editor builds and runs a container from it"),
    (".cargo", Code::Build, "cargo obeys it, and may run programs that it names"),
    (".claude", Code::Editor, "a coding agent may run or obey it"),
    (".codex", Code::Editor, "a coding agent may run or obey it"),
    (".cursor", Code::Editor, "a coding agent may run or obey it"),
    (".gemini", Code::Editor, "a coding agent may run or obey it"),
];

/// Names that count wherever they are.
const NAMES: [(&str, Code, &str); 78] = [
    (".gitlab-ci.yml", Code::Ci, "GitLab runs it"),
    ("jenkinsfile", Code::Ci, "Jenkins runs it"),
    ("azure-pipelines.yml", Code::Ci, "Azure runs it"),
    ("azure-pipelines.yaml", Code::Ci, "Azure runs it"),
    (".travis.yml", Code::Ci, "Travis runs it"),
    ("appveyor.yml", Code::Ci, "AppVeyor runs it"),
    (".drone.yml", Code::Ci, "Drone runs it"),
    ("bitbucket-pipelines.yml", Code::Ci, "Bitbucket runs it"),
    ("cloudbuild.yaml", Code::Ci, "Cloud Build runs it"),
    (".cirrus.yml", Code::Ci, "Cirrus runs it"),
    (".pre-commit-config.yaml", Code::Hook, "pre-commit fetches and runs what it names"),
    ("lefthook.yml", Code::Hook, "lefthook runs it"),
    (".lintstagedrc", Code::Hook, "lint-staged runs it"),
    (".exrc", Code::Editor, "vi may run it when the directory is opened"),
    (".vimrc", Code::Editor, "Vim may run it when the directory is opened"),
    (".nvim.lua", Code::Editor, "Neovim may run it when the directory is opened"),
    (".dir-locals.el", Code::Editor, "Emacs obeys it when a file is opened"),
    (".gdbinit", Code::Editor, "gdb may run it"),
    (".lldbinit", Code::Editor, "lldb may run it"),
    ("agents.md", Code::Editor, "coding agents obey it"),
    ("claude.md", Code::Editor, "coding agents obey it"),
    ("gemini.md", Code::Editor, "coding agents obey it"),
    (".cursorrules", Code::Editor, "coding agents obey it"),
    (".windsurfrules", Code::Editor, "coding agents obey it"),
    (".mcp.json", Code::Editor, "coding agents start the programs that it names"),
    (".envrc", Code::Environment, "direnv runs it on entering the directory"),
    (".env", Code::Environment, "many programs take their environment from it"),
    (".tool-versions", Code::Environment, "a version manager obeys it"),
    ("mise.toml", Code::Environment, "mise runs it on entering the directory"),
    (".mise.toml", Code::Environment, "mise runs it on entering the directory"),
    (".bashrc", Code::Environment, "a shell runs it"),
    (".zshrc", Code::Environment, "a shell runs it"),
    (".profile", Code::Environment, "a shell runs it"),
    ("flake.nix", Code::Environment, "nix builds from it"),
    ("shell.nix", Code::Environment, "nix builds from it"),
    ("default.nix", Code::Environment, "nix builds from it"),
    ("dockerfile", Code::Environment, "a container is built from it"),
    ("containerfile", Code::Environment, "a container is built from it"),
    ("docker-compose.yml", Code::Environment, "containers are run from it"),
    ("docker-compose.yaml", Code::Environment, "containers are run from it"),
    ("compose.yaml", Code::Environment, "containers are run from it"),
    ("compose.yml", Code::Environment, "containers are run from it"),
    ("vagrantfile", Code::Environment, "a machine is built from it"),
    ("package.json", Code::Install, "its scripts run on install, or its packages are others"),
    (".npmrc", Code::Install, "npm takes packages from where it says"),
    (".yarnrc", Code::Install, "yarn obeys it"),
    (".yarnrc.yml", Code::Install, "yarn runs the file that it names"),
    (".pnpmfile.cjs", Code::Install, "pnpm runs it on install"),
    ("bunfig.toml", Code::Install, "bun obeys it"),
    ("setup.py", Code::Install, "pip runs it on install"),
    ("setup.cfg", Code::Install, "pip obeys it on install"),
    ("pyproject.toml", Code::Install, "pip builds with what it names"),
    ("pip.conf", Code::Install, "pip takes packages from where it says"),
    ("gemfile", Code::Install, "bundler runs it"),
    ("binding.gyp", Code::Install, "npm builds with it on install"),
    ("composer.json", Code::Install, "composer runs its scripts"),
    ("makefile", Code::Build, "make runs it"),
    ("gnumakefile", Code::Build, "make runs it"),
    ("justfile", Code::Build, "just runs it"),
    ("taskfile.yml", Code::Build, "task runs it"),
    ("rakefile", Code::Build, "rake runs it"),
    ("build.rs", Code::Build, "cargo runs it in every build"),
    ("cargo.toml", Code::Build, "cargo builds with what it names"),
    ("rust-toolchain.toml", Code::Build, "rustup fetches what it names"),
    ("rust-toolchain", Code::Build, "rustup fetches what it names"),
    ("cmakelists.txt", Code::Build, "CMake runs it"),
    ("meson.build", Code::Build, "Meson runs it"),
    ("configure", Code::Build, "it is run before a build"),
    ("build.gradle", Code::Build, "Gradle runs it"),
    ("build.gradle.kts", Code::Build, "Gradle runs it"),
    ("settings.gradle", Code::Build, "Gradle runs it"),
    ("settings.gradle.kts", Code::Build, "Gradle runs it"),
    ("gradle-wrapper.properties", Code::Build, "Gradle fetches and runs what it names"),
    ("pom.xml", Code::Build, "Maven runs its plug-ins"),
    ("conftest.py", Code::Autoload, "pytest runs it"),
    ("sitecustomize.py", Code::Autoload, "Python runs it at every start"),
    ("usercustomize.py", Code::Autoload, "Python runs it at every start"),
    (".gitmodules", Code::Submodule, "it says where submodules are fetched from"),
];

/// Endings that count wherever they are.
const ENDINGS: [(&str, Code, &str); 17] = [
    (".pth", Code::Autoload, "Python runs lines of it at every start"),
    (".code-workspace", Code::Editor, "VS Code may run or obey it when it is opened"),
    (".mk", Code::Build, "make runs it"),
    (".cmake", Code::Build, "CMake runs it"),
    (".gemspec", Code::Install, "bundler runs it"),
    (".vcxproj", Code::Build, "MSBuild runs it"),
    (".csproj", Code::Build, "MSBuild runs it"),
    (".config.js", Code::Build, "a build or an editor runs it"),
    (".config.mjs", Code::Build, "a build or an editor runs it"),
    (".config.cjs", Code::Build, "a build or an editor runs it"),
    (".config.ts", Code::Build, "a build or an editor runs it"),
    ("rc.js", Code::Build, "a build or an editor runs it"),
    ("rc.cjs", Code::Build, "a build or an editor runs it"),
    (".min.js", Code::Generated, "it is made by a program and hard to read"),
    (".min.css", Code::Generated, "it is made by a program and hard to read"),
    (".map", Code::Generated, "it is made by a program and hard to read"),
    (".lock", Code::Generated, "it names the exact packages that are fetched"),
];

/// Lists of exact packages that do not end as one.
const LOCKS: [&str; 7] = [
    "package-lock.json",
    "npm-shrinkwrap.json",
    "pnpm-lock.yaml",
    "go.sum",
    "gradle.lockfile",
    "packages.lock.json",
    "bun.lockb",
];

/// Tells what a path is.
pub(super) fn of(path: &[u8], mut tell: impl FnMut(Code, &'static str)) {
    let lower = path.to_ascii_lowercase();
    let last = name(&lower);
    for (directory, code, reason) in DIRECTORIES {
        if is_below(&lower, directory.as_bytes()) {
            tell(code, reason);
        }
    }
    for (known, code, reason) in NAMES {
        if last == known.as_bytes() {
            tell(code, reason);
        }
    }
    for (ending, code, reason) in ENDINGS {
        if last.ends_with(ending.as_bytes()) && last.len() > ending.len() {
            tell(code, reason);
        }
    }
    if LOCKS.iter().any(|known| last == known.as_bytes()) {
        tell(Code::Generated, "it names the exact packages that are fetched");
    }
    if last.starts_with(b"dockerfile.") || last.starts_with(b"makefile.") {
        tell(Code::Build, "something is built by it");
    }
    if matches!(last, b".gitattributes" | b".gitignore" | b".gitconfig" | b".mailmap") {
        tell(Code::GitSettings, "git treats files as it says");
    }
    let is_hook = lower.split(|byte| *byte == b'/').any(|part| part == b"hooks");
    if is_hook && HOOKS.iter().any(|hook| last == hook.as_bytes()) {
        tell(Code::Hook, "git runs it where it is a hook");
    }
    if lower.split(|byte| *byte == b'/').any(|part| part.starts_with(b".")) {
        tell(Code::Dotfile, "its name is hidden in most lists");
    }
}

/// Names of hooks, in a directory that is called so: a bare repository may be hidden in a tree.
const HOOKS: [&str; 10] = [
    "pre-commit",
    "post-commit",
    "post-checkout",
    "post-merge",
    "pre-push",
    "commit-msg",
    "prepare-commit-msg",
    "post-rewrite",
    "pre-rebase",
    "reference-transaction",
];

fn is_below(path: &[u8], directory: &[u8]) -> bool {
    let mut begin = 0;
    loop {
        let rest = path.get(begin..).unwrap_or_default();
        if rest.strip_prefix(directory).is_some_and(|rest| rest.starts_with(b"/")) {
            return true;
        }
        match rest.iter().position(|byte| *byte == b'/') {
            Some(at) => begin += at + 1,
            None => return false,
        }
    }
}
