//! Whom an image runs as: a number, or a name out of its own list of users. The list is a stranger's: it decides over
//! nothing but which number a name stands for.

use std::path::Path;

use images::ImageError;
use jail::{Layers, Subordinates};
use policy::User;

/// The largest list of users.
const LARGEST_LIST: u64 = 1 << 20;
/// The highest id that there is inside.
const LAST_ID: u32 = 65534;

/// Whom an image runs as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImageUser {
    /// Root, or nobody in particular: inside that is the agent.
    Agent,
    /// Somebody of its own.
    Own {
        /// The ids.
        user: User,
        /// The name, where there is one.
        name: Option<String>,
        /// The home directory, where the list has one.
        home: Option<String>,
    },
    /// Somebody whom the caller's one id cannot be besides the agent.
    OutOfReach(User),
}

impl ImageUser {
    pub(super) fn of(text: Option<&str>, layers: &Layers<'_>) -> Result<Self, ImageError> {
        let Some(text) = text else { return Ok(Self::Agent) };
        let unknown =
            |why| ImageError::Refused { what: format!("the image's user '{}'", text.escape_debug()), why };
        let (user, group) = text.split_once(':').map_or((text, None), |(user, group)| (user, Some(group)));
        let users = list(layers, "/etc/passwd");
        let line = users.iter().find(|line| {
            let number = user.parse::<u32>().ok();
            line.first().is_some_and(|name| name == user)
                || (number.is_some() && number == line.get(2).and_then(|uid| uid.parse().ok()))
        });
        let field = |index: usize| line.and_then(|line| line.get(index)).filter(|field| !field.is_empty());
        // Root is root in an image that has no list, too; and nobody named is root.
        let root = || matches!(user, "root" | "").then_some(0);
        let uid = user.parse().ok().or_else(|| field(2)?.parse::<u32>().ok()).or_else(root);
        let uid = uid.ok_or_else(|| unknown("its /etc/passwd has no such name; choose one with --user"))?;
        if uid == 0 {
            return Ok(Self::Agent);
        }
        let gid = match group.filter(|group| !group.is_empty()) {
            None => field(3).and_then(|gid| gid.parse().ok()).unwrap_or(uid),
            Some(group) => {
                let named = || {
                    let groups = list(layers, "/etc/group");
                    let line = groups.into_iter().find(|line| line.first().is_some_and(|name| name == group));
                    line?.get(2)?.parse::<u32>().ok()
                };
                let gid = group.parse().ok().or_else(named);
                gid.ok_or_else(|| unknown("its /etc/group has no such name; choose one with --user"))?
            }
        };
        // A group of root's gives nothing inside, but has no place there either.
        let gid = if gid == 0 { uid } else { gid };
        if uid > LAST_ID || gid > LAST_ID {
            return Err(unknown("there are ids up to 65534; choose one with --user"));
        }
        let user = User { uid, gid };
        let is_single = !rustix::process::geteuid().is_root()
            && !matches!(Subordinates::find(), Subordinates::Given { .. });
        if is_single && user != User::AGENT {
            return Ok(Self::OutOfReach(user));
        }
        let text = |index: usize| field(index).filter(|text| text.is_ascii()).cloned();
        Ok(Self::Own { user, name: text(0), home: text(5).filter(|home| home.starts_with('/')) })
    }
}

/// The lines of a list, by their fields; what is no text is no line.
fn list(layers: &Layers<'_>, path: &str) -> Vec<Vec<String>> {
    let bytes = layers.read(Path::new(path), LARGEST_LIST).unwrap_or_default();
    let lines = bytes.split(|byte| *byte == b'\n').filter_map(|line| std::str::from_utf8(line).ok());
    let clean = lines.filter(|line| !line.contains(char::is_control));
    clean.map(|line| line.split(':').map(str::to_owned).collect()).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn root_is_the_agent_also_where_there_is_no_list() {
        let place = tempfile::tempdir().unwrap();
        let layers: Vec<PathBuf> = vec![place.path().to_owned()];
        for text in ["root", "0", "root:root", "0:staff", ":5"] {
            let found = ImageUser::of(Some(text), &Layers::new(&layers));
            assert_eq!(found.unwrap(), ImageUser::Agent, "{text}");
        }
        assert!(ImageUser::of(Some("web"), &Layers::new(&layers)).is_err());
    }

    #[test]
    fn users_are_found_by_number_and_by_name() {
        let place = tempfile::tempdir().unwrap();
        let layers: Vec<PathBuf> = vec![place.path().to_owned()];
        fs::create_dir(place.path().join("etc")).unwrap();
        fs::write(
            place.path().join("etc/passwd"),
            b"root:x:0:0::/root:/bin/sh\nweb:x:1000:7::/srv:/bin/sh\n\xff\n",
        )
        .unwrap();
        fs::write(place.path().join("etc/group"), "web:x:7:\nstaff:x:9:\n").unwrap();
        let of = |text| ImageUser::of(Some(text), &Layers::new(&layers));
        for text in ["root", "0", "0:0", "0:5"] {
            assert_eq!(of(text).unwrap(), ImageUser::Agent, "{text}");
        }
        assert!(of("nobody").is_err());
        assert!(of("70000").is_err());
        assert!(of("web:nogroup").is_err());
        assert!(of("../../etc").is_err());
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let own = |uid, gid, name: Option<&str>, home: Option<&str>| ImageUser::Own {
            user: User { uid, gid },
            name: name.map(str::to_owned),
            home: home.map(str::to_owned),
        };
        assert_eq!(of("web").unwrap(), own(1000, 7, Some("web"), Some("/srv")));
        assert_eq!(of("web:staff").unwrap(), own(1000, 9, Some("web"), Some("/srv")));
        assert_eq!(of("33:44").unwrap(), own(33, 44, None, None));
    }
}
