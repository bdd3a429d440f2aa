//! Names and passwords for registries, from where `docker login` and `podman login` leave them. They are never shown.

mod helper;

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use crate::error::{ImageError, at};
use crate::reference::Reference;

/// No such file, and no answer of a helper, is larger.
const LARGEST: u64 = 1 << 20;
/// What docker calls its own registry in its files.
const DOCKER: &str = "https://index.docker.io/v1/";

/// Something that a registry knows us by.
#[derive(Clone)]
pub(super) struct Secret(String);

impl Secret {
    pub(super) fn reveal(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Secret(…)")
    }
}

/// Who we are to a registry.
#[derive(Clone, Debug)]
pub(super) enum Login {
    /// Somebody with a password, as a header has both.
    Password(Secret),
    /// Whoever has this, which is exchanged for tokens and shown to nobody else.
    Identity(Secret),
    /// Whoever has this, which is a token already.
    Token(Secret),
}

impl Login {
    fn password(name: &str, password: &str) -> Self {
        Self::Password(Secret(format!("Basic {}", STANDARD.encode(format!("{name}:{password}")))))
    }
}

/// Who we are, and who said so.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) login: Login,
    /// A file or a helper, for a person to look at.
    pub(super) source: String,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct Configuration {
    #[serde(default)]
    auths: BTreeMap<String, Entry>,
    #[serde(default)]
    cred_helpers: BTreeMap<String, String>,
    creds_store: Option<String>,
}

#[derive(Deserialize, Default)]
struct Entry {
    #[serde(default)]
    auth: String,
    #[serde(default)]
    identitytoken: String,
    #[serde(default)]
    registrytoken: String,
}

impl Entry {
    /// None where it holds nothing: docker leaves such an entry where a helper has the password.
    fn login(&self) -> Option<Login> {
        let token = |text: &str| (!text.is_empty()).then(|| Secret(text.to_owned()));
        if let Some(token) = token(&self.registrytoken) {
            return Some(Login::Token(token));
        }
        if let Some(token) = token(&self.identitytoken) {
            return Some(Login::Identity(token));
        }
        let bytes = STANDARD.decode(self.auth.trim()).ok()?;
        let text = String::from_utf8(bytes).ok()?;
        let (name, password) = text.split_once(':')?;
        Some(Login::password(name, password.trim_end_matches('\0')))
    }
}

/// Where they are looked for.
pub(super) fn files() -> Vec<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let home = |path: &str| variable("HOME").map(|home| home.join(path));
    let docker = variable("DOCKER_CONFIG").map(|path| path.join("config.json"));
    let runtime = variable("XDG_RUNTIME_DIR").map(|path| path.join("containers/auth.json"));
    let configuration = variable("XDG_CONFIG_HOME").map(|path| path.join("containers/auth.json"));
    let all = [
        variable("REGISTRY_AUTH_FILE"),
        docker.or_else(|| home(".docker/config.json")),
        runtime,
        configuration.or_else(|| home(".config/containers/auth.json")),
    ];
    all.into_iter().flatten().collect()
}

/// What the first file that knows the image's registry says.
pub(super) fn find(files: &[PathBuf], image: &Reference) -> Result<Option<Found>, ImageError> {
    let keys = keys(image);
    for path in files {
        let Some(file) = read(path)? else { continue };
        let helper = keys.iter().find_map(|key| file.cred_helpers.get(key)).or(file.creds_store.as_ref());
        if let Some(helper) = helper {
            let server = if image.registry() == "docker.io" { DOCKER } else { image.registry() };
            if let Some(login) = helper::ask(helper, server)? {
                return Ok(Some(Found { login, source: format!("the credential helper '{helper}'") }));
            }
        }
        if let Some(login) = keys.iter().find_map(|key| file.auths.get(key)?.login()) {
            return Ok(Some(Found { login, source: format!("'{}'", path.display()) }));
        }
    }
    Ok(None)
}

fn read(path: &Path) -> Result<Option<Configuration>, ImageError> {
    let mut bytes = Vec::new();
    match fs::File::open(path).and_then(|file| file.take(LARGEST).read_to_end(&mut bytes)) {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied) => {
            return Ok(None);
        }
        read => read.map_err(at(path))?,
    };
    let broken = |source| ImageError::Document { what: format!("'{}'", path.display()), source };
    serde_json::from_slice(&bytes).map(Some).map_err(broken)
}

/// How a registry may be called there, what is said most exactly first: podman has passwords for parts of a registry.
fn keys(image: &Reference) -> Vec<String> {
    let registry = image.registry();
    let mut path = format!("{registry}/{}", image.repository());
    let mut keys = Vec::new();
    while path.len() > registry.len() {
        keys.push(path.clone());
        path.truncate(path.rfind('/').unwrap_or(0));
    }
    keys.extend([registry.to_owned(), format!("https://{registry}"), format!("https://{registry}/v1/")]);
    if registry == "docker.io" {
        keys.extend([DOCKER.to_owned(), "index.docker.io".to_owned(), "registry-1.docker.io".to_owned()]);
    }
    keys
}

/// Any bytes as such a file.
#[cfg(feature = "fuzz")]
pub(super) fn fuzz(bytes: &[u8]) {
    let Ok(file) = serde_json::from_slice::<Configuration>(bytes) else { return };
    for entry in file.auths.values() {
        if let Some(Login::Password(secret)) = entry.login() {
            assert!(
                secret.reveal().bytes().all(|byte| byte.is_ascii_graphic() || byte == b' '),
                "it is a header"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(text: &str) -> (tempfile::TempDir, Vec<PathBuf>) {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("config.json");
        fs::write(&path, text).unwrap();
        (place, vec![PathBuf::from("/nonexistent"), path])
    }

    fn login(files: &[PathBuf], image: &str) -> Option<String> {
        let found = find(files, &image.parse().unwrap()).unwrap()?;
        assert!(!format!("{found:?}").contains("secret"));
        assert!(found.source.ends_with("config.json'"), "{}", found.source);
        Some(match found.login {
            Login::Password(secret) => secret.0,
            Login::Identity(secret) => format!("identity {}", secret.0),
            Login::Token(secret) => format!("token {}", secret.0),
        })
    }

    #[test]
    fn passwords_are_found_and_never_shown() {
        let auth = STANDARD.encode("me:secret:colon");
        let other = STANDARD.encode("team:secret");
        let (_place, files) = place(&format!(
            r#"{{"auths":{{"https://index.docker.io/v1/":{{"auth":"{auth}"}},"r.lan:5000":{{"auth":"{auth}"}},
                "r.lan:5000/team":{{"auth":"{other}"}},"empty.lan":{{}},
                "i.lan":{{"auth":"{auth}","identitytoken":"secret-i"}},"t.lan":{{"registrytoken":"secret-t"}}}}}}"#
        ));
        let basic = Some(format!("Basic {auth}"));
        assert_eq!(login(&files, "debian"), basic);
        assert_eq!(login(&files, "r.lan:5000/app"), basic);
        assert_eq!(login(&files, "r.lan:5000/teams/app"), basic);
        assert_eq!(login(&files, "r.lan:5000/team/app"), Some(format!("Basic {other}")));
        assert_eq!(login(&files, "i.lan/app").as_deref(), Some("identity secret-i"));
        assert_eq!(login(&files, "t.lan/app").as_deref(), Some("token secret-t"));
        assert_eq!(login(&files, "empty.lan/app"), None);
        assert_eq!(login(&files, "other.lan/app"), None);
    }

    #[test]
    fn a_helper_is_a_program_of_a_plain_name() {
        let image = "r.lan/app".parse().unwrap();
        let (_place, files) = place(r#"{"credsStore":"../../bin/evil"}"#);
        assert!(matches!(find(&files, &image), Err(ImageError::Helper { .. })));
        let (_place, files) = place("[]");
        assert!(matches!(find(&files, &image), Err(ImageError::Document { .. })));
    }
}
