//! Which changes deserve a look before they are taken, and why. Pure: a change goes in, reasons come out. It finds what is
//! known to run by its name or to mislead a reader; it does not find everything that is bad.

mod content;
mod path;

use std::collections::BTreeMap;

use crate::change::{Change, Status};

/// Why a change deserves a look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Risk {
    /// A stable word for programs.
    pub code: Code,
    /// The reason for a person.
    pub reason: &'static str,
}

macro_rules! codes {
    ($($(#[$note:meta])* $code:ident = $name:literal,)*) => {
        /// What kind of risk it is.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Code {
            $($(#[$note])* $code,)*
        }

        impl Code {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$code,)*];

            /// Its name for programs.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$code => $name,)*
                }
            }
        }
    };
}

codes! {
    /// git runs it.
    Hook = "hook",
    /// A build service runs it, often with secrets.
    Ci = "ci",
    /// An editor runs it or is set by it.
    Editor = "editor",
    /// A shell or a container reads it on entering.
    Environment = "environment",
    /// A package manager runs it or takes its packages from it.
    Install = "install",
    /// A build runs it.
    Build = "build",
    /// A test run or an interpreter loads it by its name.
    Autoload = "autoload",
    /// It decides how git treats files.
    GitSettings = "git-settings",
    /// It says where a submodule is fetched from.
    Submodule = "submodule",
    /// It can be executed now.
    Executable = "executable",
    /// A link that leads out of the tree.
    Link = "link-leaves",
    /// Characters that reverse what follows.
    Bidi = "bidi",
    /// Characters that are not seen.
    Invisible = "invisible",
    /// It is large.
    Large = "large",
    /// It is made by a program and hard to read.
    Generated = "generated",
    /// It is not text.
    Binary = "binary",
    /// Its name is hidden in most lists.
    Dotfile = "dotfile",
    /// It lies where the owner has a file that was hidden inside.
    Hidden = "over-hidden",
    /// Nobody has looked at all of it.
    Unread = "unread",
    /// A repository that was made inside, in the owner's own tree.
    Repository = "repository",
}

impl Code {
    /// Whether it is about how a change can be read, not about what it does. `--refuse-risky` takes such a change.
    #[must_use]
    pub const fn is_note(self) -> bool {
        matches!(self, Self::Generated | Self::Binary | Self::Dotfile | Self::Large)
    }
}

/// A file of which more is added is large.
pub(crate) const LARGE: u64 = 1 << 20;

/// What is known of a change beside its lines.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Known<'a> {
    /// How large it is now.
    pub(crate) size: Option<u64>,
    /// Whether the owner has a hidden file there.
    pub(crate) is_over_hidden: bool,
    /// The file before and after, where it is one that is compared by what it says.
    pub(crate) texts: Option<(&'a [u8], &'a [u8])>,
}

/// Whether a change is judged by what the file says as a whole. Where a link leads from is its path, so that one which says
/// the same under another name leads somewhere else.
pub(crate) fn wants_texts(change: &Change) -> bool {
    let is_file = |mode: &str| mode.starts_with("100") || mode == "000000";
    let is_package = path::name(&change.path) == b"package.json"
        && change.status != Status::Deleted
        && is_file(&change.mode)
        && is_file(&change.old_mode);
    is_package || change.mode == LINK
}

/// The mode of a link.
pub(crate) const LINK: &str = "120000";

/// Everything that speaks for a look.
pub(crate) fn of(change: &Change, known: Known<'_>) -> Vec<Risk> {
    let mut found = BTreeMap::new();
    let mut add = |(code, reason): (Code, &'static str)| {
        found.entry(code).or_insert(reason);
    };
    if change.status != Status::Deleted {
        path::of(&change.path, |code, reason| {
            // Of those that are many things, only what runs or is fetched matters.
            let is_package = path::name(&change.path) == b"package.json";
            if !is_package || known.texts.is_none_or(|(old, new)| content::packages_differ(old, new)) {
                add((code, reason));
            }
        });
        content::of(change, known.texts.map(|(_, new)| new)).into_iter().for_each(&mut add);
        if change.mode == "100755" && change.old_mode != "100755" {
            add((Code::Executable, "it can be executed"));
        }
        if known.size.is_some_and(|size| size > LARGE) {
            add((Code::Large, "it is larger than 1 MiB"));
        }
        if change.is_binary() && change.mode.starts_with("100") {
            add((Code::Binary, "it is not text, and not shown"));
        }
        if change.mode == "160000" {
            add((Code::Submodule, "it stands at another commit of a submodule"));
        }
        if change.is_unread {
            add((Code::Unread, "not all of what was changed in it could be looked at"));
        }
        if known.is_over_hidden {
            add((Code::Hidden, "you have a file there that was hidden inside"));
        }
    } else if path::name(&change.path).starts_with(b".git") {
        add((Code::GitSettings, "git treats files in another way without it"));
    }
    found.into_iter().map(|(code, reason)| Risk { code, reason }).collect()
}

/// What runs or is obeyed by its name alone; none where nothing is known to.
pub(crate) fn by_name(path: &[u8]) -> Option<Risk> {
    let mut found = None;
    path::of(path, |code, reason| {
        if !code.is_note() && found.is_none() {
            found = Some(Risk { code, reason });
        }
    });
    found
}

#[cfg(feature = "fuzz")]
pub(crate) use content::leaves;

#[cfg(test)]
mod tests;
