//! Which certificates a registry may show, and which we show to it: the system's, and what the owner has put where
//! docker and podman look for one registry's: `certs.d/HOST[:PORT]/` with certificates of authorities (`*.crt`) and our own
//! with its key (`*.cert`, `*.key`). They count for that registry and those whom it sends us to, and for nobody else.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use ureq::tls::{Certificate, ClientCert, PemItem, PrivateKey, parse_pem};

use crate::error::{ImageError, at};

/// No file of certificates is larger.
const LARGEST: u64 = 1 << 20;

/// What is known about one registry's certificates.
#[derive(Default)]
pub(super) struct Certificates {
    /// Those of authorities.
    pub(super) roots: Vec<Certificate<'static>>,
    /// Ours, where it wants one.
    pub(super) own: Option<ClientCert>,
}

/// Where they are looked for.
pub(super) fn directories() -> Vec<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let configuration =
        variable("XDG_CONFIG_HOME").or_else(|| variable("HOME").map(|home| home.join(".config")));
    let own = configuration.into_iter().flat_map(|path| ["containers", "docker"].map(|name| path.join(name)));
    let all = own.chain(["/etc/containers", "/etc/docker"].map(PathBuf::from));
    all.map(|path| path.join("certs.d")).collect()
}

impl Certificates {
    /// The system's, and those for this registry, whose name is never a path.
    pub(super) fn find(directories: &[PathBuf], registry: &str) -> Result<Self, ImageError> {
        // The owner's system, so that a company's own are known, too. `SSL_CERT_FILE` names others.
        let system = rustls_native_certs::load_native_certs();
        let roots = system.certs.iter().map(|found| Certificate::from_der(found).to_owned()).collect();
        let mut found = Self { roots, own: None };
        for directory in directories.iter().map(|directory| directory.join(registry)) {
            found.add(&directory)?;
        }
        Ok(found)
    }

    fn add(&mut self, directory: &Path) -> Result<(), ImageError> {
        let mut paths: Vec<PathBuf> = match std::fs::read_dir(directory) {
            Ok(entries) => entries.flatten().map(|entry| entry.path()).collect(),
            Err(error) if is_passed_over(&error) => return Ok(()),
            Err(error) => return Err(at(directory)(error)),
        };
        paths.sort();
        for path in &paths {
            match path.extension().and_then(|extension| extension.to_str()) {
                Some("crt") => self.roots.extend(certificates(path)?),
                Some("cert") if self.own.is_none() => {
                    let key = path.with_extension("key");
                    let pem = read(&key)?;
                    let key =
                        PrivateKey::from_pem(&pem).map_err(|_| nothing(&key, "it holds no private key"))?;
                    self.own = Some(ClientCert::new_with_certs(&certificates(path)?, key));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// What is not there or not for us to read is not meant for us.
fn is_passed_over(error: &io::Error) -> bool {
    use io::ErrorKind::{NotADirectory, NotFound, PermissionDenied};
    matches!(error.kind(), NotFound | NotADirectory | PermissionDenied)
}

fn certificates(path: &Path) -> Result<Vec<Certificate<'static>>, ImageError> {
    let pem = read(path)?;
    let found: Vec<_> = parse_pem(&pem)
        .filter_map(|item| match item {
            Ok(PemItem::Certificate(certificate)) => Some(certificate),
            _ => None,
        })
        .collect();
    if found.is_empty() { Err(nothing(path, "it holds no certificate")) } else { Ok(found) }
}

fn read(path: &Path) -> Result<Vec<u8>, ImageError> {
    let mut bytes = Vec::new();
    File::open(path).and_then(|file| file.take(LARGEST).read_to_end(&mut bytes)).map_err(at(path))?;
    Ok(bytes)
}

fn nothing(path: &Path, why: &str) -> ImageError {
    at(path)(io::Error::new(io::ErrorKind::InvalidData, why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_docker_and_podman_look_for_is_looked_for() {
        let found = directories();
        for place in ["/etc/containers/certs.d", "/etc/docker/certs.d"] {
            assert!(found.contains(&PathBuf::from(place)), "{found:?}");
        }
    }

    #[test]
    fn files_that_hold_nothing_are_named() {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("r.lan:5000");
        std::fs::create_dir(&directory).unwrap();
        let directories = [place.path().join("none"), place.path().to_owned()];
        let find = || Certificates::find(&directories, "r.lan:5000").map(|found| found.own.is_some());
        std::fs::write(directory.join("notes.txt"), "no certificate").unwrap();
        assert!(!find().unwrap());
        std::fs::write(directory.join("ca.crt"), "no certificate").unwrap();
        let told = find().unwrap_err();
        assert!(
            matches!(&told, ImageError::File { path, .. } if path.ends_with("r.lan:5000/ca.crt")),
            "{told}"
        );
        std::fs::remove_file(directory.join("ca.crt")).unwrap();
        std::fs::write(directory.join("client.cert"), "").unwrap();
        let told = find().unwrap_err();
        assert!(matches!(&told, ImageError::File { path, .. } if path.ends_with("client.key")), "{told}");
    }
}
