//! An authority of the fixture's own and the certificate of its sites, made by the openssl program.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::succeed;

/// Nothing of the machine's own settings takes part.
const SETTINGS: &str = "\
[req]
distinguished_name = name
prompt = no
[name]
CN = nobody
[authority]
basicConstraints = critical, CA:true
keyUsage = critical, keyCertSign, cRLSign
subjectKeyIdentifier = hash
[site]
basicConstraints = CA:false
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
extendedKeyUsage = serverAuth
subjectAltName = DNS:allowed.test, DNS:*.wild.test, DNS:other.test, DNS:git.test
";

/// Makes all of them in a directory: `ca.pem`, `site.pem`, `site.key`.
pub(super) fn make(directory: &Path) {
    fs::write(directory.join("openssl.conf"), SETTINGS).unwrap();
    make_one(directory, "ca", "authority", &[]);
    make_one(directory, "site", "site", &["-CA", "ca.pem", "-CAkey", "ca.key"]);
}

/// The authority's certificate.
pub(super) fn authority(directory: &Path) -> PathBuf {
    directory.join("ca.pem")
}

fn make_one(directory: &Path, name: &str, extensions: &str, signed_by: &[&str]) {
    let mut command = Command::new("openssl");
    command.current_dir(directory).args(["req", "-x509", "-config", "openssl.conf", "-days", "2", "-nodes"]);
    command.args(["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-extensions", extensions]);
    command.args(["-subj", &format!("/CN=agentbox test {name}")]).args(signed_by);
    command.args(["-keyout", &format!("{name}.key"), "-out", &format!("{name}.pem")]);
    succeed(&mut command, "");
}
