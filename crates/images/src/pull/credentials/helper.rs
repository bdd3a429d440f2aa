//! Programs of the owner's that know passwords which no file has: `docker-credential-NAME`. What one says on stderr is for
//! nobody, as it may hold a password.

use std::io::{self, Read as _, Write as _};
use std::process::{Command, Stdio};

use serde::Deserialize;

use super::{LARGEST, Login, Secret};
use crate::error::ImageError;

/// What a helper says in the place of a name where it gives no password.
const IDENTITY: &str = "<token>";

/// Asks a helper what it knows of a registry; none where it says that it knows nothing.
pub(super) fn ask(helper: &str, server: &str) -> Result<Option<Login>, ImageError> {
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
    Ok(Some(match given.username.as_str() {
        IDENTITY => Login::Identity(Secret(given.secret)),
        name => Login::password(name, &given.secret),
    }))
}
