//! Registries that speak TLS with a certificate of an authority that the system does not know.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use harness::{Caller, callers};

use crate::authority::Authority;
use crate::place::{Place, open_up};
use crate::registry::layout;
use crate::served::{Registry, Serving, Wants};

/// Where certificates for registries are, for a caller whose configuration is elsewhere.
fn certificates(place: &Place, registry: &str) -> PathBuf {
    let path = place.path("config/containers/certs.d").join(registry);
    fs::create_dir_all(&path).unwrap();
    open_up(&place.path("config"));
    path
}

fn pull(place: &Place, name: &str, variables: &[(&str, &Path)]) -> harness::Finished {
    let given = place.agentbox().env("XDG_CONFIG_HOME", &place.path("config").display().to_string());
    let given = variables
        .iter()
        .fold(given, |agentbox, (name, path)| agentbox.env(name, &path.display().to_string()));
    given.start_words(&["image", "pull", name]).finish()
}

callers!(a_registry_is_known_by_its_authority, |caller| {
    let place = Place::new(caller);
    let authority = Authority::new();
    let issued = authority.issue("registry", "IP:0.0.0.0,IP:127.0.0.1");
    let serving = Serving { wants: Wants::Nothing, tls: Some((&issued, None)) };
    let Some(registry) = Registry::serve(serving) else { return };
    registry.push(&layout(&place), "me/app:1");
    // This address leads to the loopback, and is none to anybody who reads it.
    let host = format!("0.0.0.0:{}", registry.port);
    let name = format!("{host}/me/app:1");
    // An authority for another registry is none for this one.
    let others = certificates(&place, "other.test");
    fs::copy(authority.certificate(), others.join("ca.crt")).unwrap();
    let refused = |name: &str, cause: &str| {
        let told = pull(&place, name, &[]).assert_code(125).stderr();
        let host = name.split('/').next().unwrap();
        assert!(told.starts_with(&format!("error: the certificate of {host} is not trusted\n")), "{told}");
        assert!(told.contains(cause), "{told}");
        assert!(told.contains(&format!("/etc/docker/certs.d/{host}/ca.crt")), "{told}");
    };
    refused(&name, "UnknownIssuer");
    // On this machine, too: who speaks TLS is not spoken to in plain because of a wrong certificate.
    let near = format!("127.0.0.1:{}/me/app:1", registry.port);
    refused(&near, "UnknownIssuer");
    let renew = |name: &str| {
        assert_eq!(place.say(&["run", "--image", name]).assert_success().stdout(), "pulled\n");
        place.say(&["image", "rm", name]).assert_success();
        place.say(&["image", "gc"]).assert_success();
    };
    for name in [&name, &near] {
        pull(&place, name, &[("SSL_CERT_FILE", &authority.certificate())]).assert_success();
        renew(name);
    }
    let own = certificates(&place, &host);
    fs::copy(authority.certificate(), own.join("ca.crt")).unwrap();
    pull(&place, &name, &[]).assert_success();
    renew(&name);
    // A certificate for another name is none for this one.
    let other = format!("localhost:{}", registry.port);
    fs::copy(authority.certificate(), certificates(&place, &other).join("ca.crt")).unwrap();
    refused(&format!("{other}/me/app:1"), "not valid for name");
    fs::write(own.join("ca.crt"), "no certificate").unwrap();
    let told = pull(&place, &name, &[]).assert_code(125).stderr();
    assert!(told.contains("ca.crt'\ncause: it holds no certificate"), "{told}");
});

/// What is put where all of this machine looks for it, and goes again.
struct OfTheMachine(PathBuf);

impl Drop for OfTheMachine {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
        // Those above stay where somebody else has something in them.
        self.0.ancestors().skip(1).take(2).for_each(|path| drop(fs::remove_dir(path)));
    }
}

#[test]
fn a_registry_is_known_by_what_docker_is_given() {
    if !harness::is_root("certificates are put into /etc/docker") {
        return;
    }
    let _turn = harness::together();
    let place = Place::new(Caller::Root);
    let authority = Authority::new();
    let issued = authority.issue("registry", "IP:0.0.0.0");
    let own = authority.issue("client", "DNS:client.test");
    let clients = authority.certificate();
    let serving = Serving { wants: Wants::Nothing, tls: Some((&issued, Some(&clients))) };
    let Some(registry) = Registry::serve(serving) else { return };
    let host = format!("0.0.0.0:{}", registry.port);
    let name = format!("{host}/me/app:1");
    let given = OfTheMachine(Path::new("/etc/docker/certs.d").join(&host));
    fs::create_dir_all(&given.0).unwrap();
    fs::copy(authority.certificate(), given.0.join("ca.crt")).unwrap();
    // It wants to see a certificate of ours.
    let told = pull(&place, &name, &[]).assert_code(125).stderr();
    assert!(told.starts_with(&format!("error: cannot reach {host}\n")), "{told}");
    fs::copy(&own.certificate, given.0.join("client.cert")).unwrap();
    fs::copy(&own.key, given.0.join("client.key")).unwrap();
    fs::set_permissions(given.0.join("client.key"), fs::Permissions::from_mode(0o600)).unwrap();
    registry.push_showing(&layout(&place), "me/app:1", Some(&given.0));
    pull(&place, &name, &[]).assert_success();
    assert_eq!(place.say(&["run", "--image", &name]).assert_success().stdout(), "pulled\n");
}
