//! Names and passwords for registries, from where `docker login` and `podman login` leave them. They are never shown.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use crate::error::{ImageError, at};

/// No such file, and no answer of a helper, is larger.
const LARGEST: u64 = 1 << 20;
/// What docker calls its own registry in its files.
const DOCKER: &str = "https://index.docker.io/v1/";

/// A name and a password.
pub(super) struct Login {
    name: String,
    password: String,
}

impl std::fmt::Debug for Login {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Login(…)")
    }
}

impl Login {
    /// As a header has it.
    pub(super) fn basic(&self) -> String {
        format!("Basic {}", STANDARD.encode(format!("{}:{}", self.name, self.password)))
    }

    fn decode(text: &str) -> Option<Self> {
        let bytes = STANDARD.decode(text.trim()).ok()?;
        let text = String::from_utf8(bytes).ok()?;
        let (name, password) = text.split_once(':')?;
        Some(Self { name: name.to_owned(), password: password.trim_end_matches('\0').to_owned() })
    }
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct File {
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

/// What the first file that knows the registry says.
pub(super) fn find(files: &[PathBuf], registry: &str) -> Result<Option<Login>, ImageError> {
    for path in files {
        let Some(file) = read(path)? else { continue };
        let keys = keys(registry);
        let helper = keys.iter().find_map(|key| file.cred_helpers.get(key)).or(file.creds_store.as_ref());
        if let Some(helper) = helper {
            let server = if registry == "docker.io" { DOCKER } else { registry };
            if let Some(login) = ask(helper, server)? {
                return Ok(Some(login));
            }
        }
        let entry = keys.iter().find_map(|key| file.auths.get(key)).filter(|entry| !entry.auth.is_empty());
        if let Some(login) = entry.and_then(|entry| Login::decode(&entry.auth)) {
            return Ok(Some(login));
        }
    }
    Ok(None)
}

fn read(path: &Path) -> Result<Option<File>, ImageError> {
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

/// How a registry may be called there.
fn keys(registry: &str) -> Vec<String> {
    let mut keys =
        vec![registry.to_owned(), format!("https://{registry}"), format!("https://{registry}/v1/")];
    if registry == "docker.io" {
        keys.extend([DOCKER.to_owned(), "index.docker.io".to_owned(), "registry-1.docker.io".to_owned()]);
    }
    keys
}

/// Asks a helper of the owner's, which knows passwords that no file has.
fn ask(helper: &str, server: &str) -> Result<Option<Login>, ImageError> {
    let failed = |source| ImageError::Helper { helper: helper.to_owned(), source };
    // It becomes the name of a program.
    if helper.is_empty()
        || !helper.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    {
        return Err(failed(io::Error::other("that is no name of one")));
    }
    let mut child = Command::new(format!("docker-credential-{helper}"))
        .arg("get")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(failed)?;
    if let Some(mut stdin) = child.stdin.take() {
        // One that does not read it has nothing for it.
        let _ = stdin.write_all(server.as_bytes());
    }
    let mut answer = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        stdout.take(LARGEST).read_to_end(&mut answer).map_err(failed)?;
    }
    let status = child.wait().map_err(failed)?;
    if !status.success() {
        let text = String::from_utf8_lossy(&answer);
        return if text.contains("not found") {
            Ok(None)
        } else {
            Err(failed(io::Error::other(status.to_string())))
        };
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Given {
        username: String,
        secret: String,
    }
    let given: Given = serde_json::from_slice(&answer).map_err(|error| failed(error.into()))?;
    Ok(Some(Login { name: given.username, password: given.secret }))
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

    #[test]
    fn passwords_are_found_and_never_shown() {
        let auth = STANDARD.encode("me:secret:colon");
        let (_place, files) = place(&format!(
            r#"{{"auths":{{"https://index.docker.io/v1/":{{"auth":"{auth}"}},"r.lan:5000":{{"auth":"{auth}"}}}}}}"#
        ));
        for registry in ["docker.io", "r.lan:5000"] {
            let login = find(&files, registry).unwrap().unwrap();
            assert_eq!(login.password, "secret:colon");
            assert_eq!(login.basic(), format!("Basic {auth}"));
            assert!(!format!("{login:?}").contains("secret"));
        }
        assert!(find(&files, "other.lan").unwrap().is_none());
    }

    #[test]
    fn a_helper_is_a_program_of_a_plain_name() {
        let (_place, files) = place(r#"{"credsStore":"../../bin/evil"}"#);
        assert!(matches!(find(&files, "r.lan"), Err(ImageError::Helper { .. })));
        let (_place, files) = place("[]");
        assert!(matches!(find(&files, "r.lan"), Err(ImageError::Document { .. })));
    }
}
