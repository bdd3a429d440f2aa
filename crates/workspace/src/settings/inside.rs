//! The configuration of a repository inside: what is listed here and nothing else, and no URL with a secret in it.

use super::Settings;

/// Taken over as they are.
const KEPT: [&str; 15] = [
    "core.filemode",
    "core.symlinks",
    "core.ignorecase",
    "core.precomposeunicode",
    "core.autocrlf",
    "core.eol",
    "core.safecrlf",
    "core.sparsecheckout",
    "core.sparsecheckoutcone",
    "index.sparse",
    "user.name",
    "user.email",
    "init.defaultbranch",
    "extensions.objectformat",
    "extensions.partialclone",
];

impl Settings {
    /// The configuration of the repository inside. `checkStat` and `trustctime`: files have other inode numbers and times
    /// of change there.
    pub(crate) fn inside(&self) -> String {
        let version = if self.object_format() == "sha1" && self.value("extensions.partialclone").is_none() {
            0
        } else {
            1
        };
        let mut text = String::new();
        for (name, value) in [
            ("core.repositoryformatversion", version.to_string().as_str()),
            ("core.bare", "false"),
            ("core.logallrefupdates", "true"),
            ("core.checkstat", "minimal"),
            ("core.trustctime", "false"),
        ] {
            put(&mut text, name, value);
        }
        for name in KEPT {
            if let Some(value) = self.value(name) {
                put(&mut text, name, value);
            }
        }
        for (_, name, value) in &self.values {
            let Some((section, rest)) = name.split_once('.') else { continue };
            let Some((_, variable)) = rest.rsplit_once('.') else { continue };
            match (section, variable) {
                ("remote", "url") | ("submodule", "url") => {
                    if let Some(url) = without_secrets(value) {
                        put(&mut text, name, &url);
                    }
                }
                ("remote", "fetch" | "promisor" | "partialclonefilter")
                | ("branch", "remote" | "merge")
                | ("submodule", "active") => put(&mut text, name, value),
                _ => {}
            }
        }
        text
    }
}

/// An URL without what lets one in: a name and a password before the host, and what follows a question mark. One that
/// starts a helper of git's is none.
fn without_secrets(url: &str) -> Option<String> {
    if url.contains("::") {
        return None;
    }
    let Some((scheme, rest)) = url.split_once("://") else {
        // user@host:path; the user of a code host's is everybody's.
        let rest = url.split_once('@').filter(|(user, _)| !user.contains('/') && *user != "git");
        return Some(rest.map_or(url, |(_, rest)| rest).to_owned());
    };
    let end = rest.find(['?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest[..end].split_at(rest[..end].find('/').unwrap_or(end));
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let user = if scheme == "ssh" && authority.starts_with("git@") { "git@" } else { "" };
    Some(format!("{scheme}://{user}{host}{path}"))
}

/// Adds one value, as git reads it back.
fn put(text: &mut String, name: &str, value: &str) {
    let Some((section, rest)) = name.split_once('.') else { return };
    let (subsection, variable) =
        rest.rsplit_once('.').map_or((None, rest), |(sub, variable)| (Some(sub), variable));
    // Neither can hold these, whatever the file says.
    if value.contains('\0') || subsection.is_some_and(|sub| sub.contains(['\n', '\0'])) {
        return;
    }
    let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    match subsection {
        Some(sub) => text.push_str(&format!("[{section} \"{}\"]\n", quoted(sub))),
        None => text.push_str(&format!("[{section}]\n")),
    }
    text.push_str(&format!("\t{variable} = \"{}\"\n", quoted(value)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_lets_one_in_stays_in_an_url() {
        for (url, plain) in [
            ("https://me:secret@example.com/a.git", Some("https://example.com/a.git")),
            ("https://token@example.com/a.git?key=secret#x", Some("https://example.com/a.git")),
            ("https://example.com?key=secret", Some("https://example.com")),
            ("https://a@b@example.com/x@y", Some("https://example.com/x@y")),
            ("ssh://git@example.com:22/a", Some("ssh://git@example.com:22/a")),
            ("ssh://me:secret@example.com/a", Some("ssh://example.com/a")),
            ("git@example.com:a/b.git", Some("git@example.com:a/b.git")),
            ("me@example.com:a", Some("example.com:a")),
            ("/srv/git/a.git", Some("/srv/git/a.git")),
            ("../a@b", Some("../a@b")),
            ("ext::sh -c 'evil'", None),
        ] {
            assert_eq!(without_secrets(url).as_deref(), plain, "{url}");
        }
    }

    #[test]
    fn only_what_is_listed_goes_on() {
        let list = b"global\0user.name\nAnn \"A\" Other\0global\0alias.x\n!evil\0local\0core.fsmonitor\nevil\0\
            local\0core.sshcommand\nevil\0local\0remote.origin.url\nhttps://t:secret@h/x\0local\0\
            http.https://h/.extraheader\nsecret\0local\0remote.origin.uploadpack\nevil\0local\0include.path\nevil\0\
            local\0branch.main.merge\nrefs/heads/main\0command\0core.pager\ncat\0local\0filter.x.smudge\nevil\0";
        let text = Settings::parse(list).inside();
        assert!(text.contains("[user]\n\tname = \"Ann \\\"A\\\" Other\"\n"), "{text}");
        assert!(text.contains("[remote \"origin\"]\n\turl = \"https://h/x\"\n"), "{text}");
        assert!(text.contains("merge = \"refs/heads/main\""), "{text}");
        for word in ["evil", "secret", "pager", "alias", "include"] {
            assert!(!text.contains(word), "{word} in {text}");
        }
    }
}
