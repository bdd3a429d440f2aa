//! Registries that want tokens: a small server that signs them, as a real registry believes them, and what a password is
//! never told to.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use harness::callers;
use serde_json::json;
use tempfile::TempDir;

use crate::authority::{Authority, Issued};
use crate::docker::Docker;
use crate::listener::{Answer, Listener, Question};
use crate::place::Place;
use crate::registry::layout;
use crate::served::{PASSWORD, Registry, Serving, Wants};

pub(crate) const SERVICE: &str = "registry.test";
pub(crate) const ISSUER: &str = "tokens.test";
/// What is exchanged for tokens in the place of a password.
const IDENTITY: &str = "identity-of-me";

/// Who gives tokens.
pub(crate) struct Tokens {
    _directory: TempDir,
    pub(crate) certificate: PathBuf,
    pub(crate) listener: Listener,
}

impl Tokens {
    pub(crate) fn start(tls: Option<&Issued>) -> Self {
        let directory = tempfile::Builder::new().prefix("agentbox-tokens-").tempdir_in("/tmp").unwrap();
        let [key, certificate] = ["key", "crt"].map(|kind| directory.path().join(format!("tokens.{kind}")));
        let mut command = Command::new("openssl");
        command.args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=tokens"]);
        let made = command.arg("-keyout").arg(&key).arg("-out").arg(&certificate).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let signer = (key, fs::read_to_string(&certificate).unwrap());
        let listener = Listener::start(tls, move |question| give(question, &signer));
        Self { _directory: directory, certificate, listener }
    }

    /// The passwords that it has heard.
    fn heard(&self) -> Vec<String> {
        let heard = self.listener.heard();
        heard.iter().filter_map(|question| question.header("authorization").map(str::to_owned)).collect()
    }
}

/// A token for whoever shows a password or the identity.
fn give(question: &Question, (key, certificate): &(PathBuf, String)) -> Answer {
    let basic = format!("Basic {}", STANDARD.encode(format!("me:{PASSWORD}")));
    let (method, target) = question.first.split_once(' ').unwrap();
    let parameters = match method {
        "GET" if question.header("authorization") == Some(&basic) => {
            target.split_once('?').map(|(_, query)| query)
        }
        "POST" if question.body.split('&').any(|pair| pair == format!("refresh_token={IDENTITY}")) => {
            Some(question.body.as_str())
        }
        _ => None,
    };
    let Some(parameters) = parameters else {
        return Answer::new(401, r#"{"errors":[{"code":"UNAUTHORIZED","message":"who are you"}]}"#);
    };
    let parameter = |name: &str| {
        let found = parameters.split('&').find_map(|pair| pair.strip_prefix(&format!("{name}=")));
        found.unwrap_or_default().replace("%3A", ":").replace("%2F", "/").replace("%2C", ",")
    };
    assert_eq!(parameter("service"), SERVICE);
    let scope = parameter("scope");
    let [kind, name, actions] = scope.split(':').collect::<Vec<_>>()[..] else {
        return Answer::new(400, "no scope");
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let chain: String = certificate.lines().filter(|line| !line.starts_with("-----")).collect();
    let header = json!({"typ": "JWT", "alg": "RS256", "x5c": [chain]});
    let claims = json!({
        "iss": ISSUER, "sub": "me", "aud": SERVICE, "iat": now, "nbf": now - 60, "exp": now + 300, "jti": "1",
        "access": [{"type": kind, "name": name, "actions": actions.split(',').collect::<Vec<_>>()}],
    });
    let [header, claims] = [header, claims].map(|part| URL_SAFE_NO_PAD.encode(part.to_string()));
    let signed = format!("{header}.{claims}");
    let mut openssl = Command::new("openssl")
        .args(["dgst", "-sha256", "-sign"])
        .arg(key)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    openssl.stdin.take().unwrap().write_all(signed.as_bytes()).unwrap();
    let signature = URL_SAFE_NO_PAD.encode(openssl.wait_with_output().unwrap().stdout);
    let token = format!("{signed}.{signature}");
    let name = if method == "GET" { "token" } else { "access_token" };
    Answer::new(200, json!({name: token, "expires_in": 300}).to_string())
}

callers!(a_token_is_got_by_a_password_or_an_identity, |caller| {
    let place = Place::new(caller);
    let authority = Authority::new();
    let issued = authority.issue("registry", "IP:0.0.0.0,IP:127.0.0.1");
    let tokens = Tokens::start(Some(&issued));
    let realm = format!("https://0.0.0.0:{}/token", tokens.listener.port);
    let serving = Serving { wants: Wants::Token(&realm, &tokens.certificate), tls: Some((&issued, None)) };
    let Some(registry) = Registry::serve(serving) else { return };
    registry.push(&layout(&place), "me/app:1");
    let host = format!("0.0.0.0:{}", registry.port);
    let name = format!("{host}/me/app:1");
    let docker = Docker::new(&place);
    let pull = |configuration: &str| {
        docker.write(configuration);
        let agentbox = docker.agentbox().env("SSL_CERT_FILE", &authority.certificate().display().to_string());
        agentbox.start_words(&["image", "pull", &name]).finish()
    };
    let told = pull("{}").assert_code(125).stderr();
    let expected =
        format!("error: {host} answers a token with 401 Unauthorized: UNAUTHORIZED: who are you\n");
    assert!(told.starts_with(&expected) && told.contains("hint: log in with `docker login "), "{told}");
    let told = pull(&docker.password(&host, "wrong-one")).assert_code(125).stderr();
    let expected =
        format!("hint: it does not take what '{}' has for it: log in again", docker.file().display());
    assert!(told.contains(&expected) && !told.contains("wrong-one"), "{told}");
    let renew = || {
        place.say(&["image", "rm", &name]).assert_success();
        place.say(&["image", "gc"]).assert_success();
    };
    pull(&docker.password(&host, PASSWORD)).assert_success();
    assert_eq!(place.say(&["run", "--image", &name]).assert_success().stdout(), "pulled\n");
    renew();
    pull(&format!(r#"{{"auths":{{"{host}":{{"identitytoken":"{IDENTITY}"}}}}}}"#)).assert_success();
    renew();
    // A helper says by the name that it has no password.
    docker.helper("test", &host, "<token>", IDENTITY);
    pull(r#"{"credsStore":"test"}"#).assert_success();
    assert_eq!(place.say(&["run", "--image", &name]).assert_success().stdout(), "pulled\n");
    renew();
    let told =
        pull(&format!(r#"{{"auths":{{"{host}":{{"identitytoken":"another"}}}}}}"#)).assert_code(125).stderr();
    assert!(
        told.contains("401") && told.contains("hint: it does not take what") && !told.contains("another"),
        "{told}"
    );
    assert_eq!(place.images(), Vec::<String>::new());
});

/// A registry names somebody for tokens who would be asked in plain: nobody is told anything. Says what was.
fn tells_nobody_in_plain(place: &Place, listens: &str, speaks_tls: bool) -> Result<(), String> {
    let authority = Authority::new();
    let issued = authority.issue("registry", "IP:0.0.0.0,IP:127.0.0.1");
    let tokens = Tokens::start(None);
    let realm = format!("http://{listens}:{}/token", tokens.listener.port);
    let tls = speaks_tls.then_some((&issued, None));
    let Some(registry) = Registry::serve(Serving { wants: Wants::Token(&realm, &tokens.certificate), tls })
    else {
        return Ok(());
    };
    let host = if speaks_tls { "0.0.0.0" } else { "127.0.0.1" };
    let host = format!("{host}:{}", registry.port);
    let docker = Docker::new(place);
    docker.write(&docker.password(&host, PASSWORD));
    let agentbox = docker.agentbox().env("SSL_CERT_FILE", &authority.certificate().display().to_string());
    let told = agentbox.start_words(&["image", "pull", &format!("{host}/me/app:1")]).finish();
    told.assert_code(125);
    match tokens.heard().as_slice() {
        [] => {
            let expected =
                format!("error: {host} has its tokens from {listens}, who is not asked without TLS\n");
            assert!(told.stderr().starts_with(&expected), "{}", told.stderr());
            Ok(())
        }
        heard => Err(format!("{listens} was told {heard:?} in plain")),
    }
}

callers!(a_password_goes_to_nobody_in_plain, |caller| {
    // A registry that speaks TLS names this machine; one on this machine names another.
    for (listens, speaks_tls) in [("127.0.0.1", true), ("0.0.0.0", false)] {
        crate::guarded::stands(caller, &[images::Guard::Secrets], &|place| {
            tells_nobody_in_plain(place, listens, speaks_tls)
        });
    }
});

/// A registry sends us to somebody else for its blobs, who asks for a password: it is told nothing.
fn tells_nobody_elsewhere(place: &Place) -> Result<(), String> {
    let other = Listener::start_knowing(None, |port| {
        move |question: &Question| {
            if question.first.starts_with("GET /token") {
                return Answer::new(200, r#"{"token":"of-another"}"#);
            }
            let realm = format!("Bearer realm=\"http://127.0.0.1:{port}/token\",service=\"other\"");
            Answer::new(401, "").with("www-authenticate", realm)
        }
    });
    let blob = images::Digest::of(b"{}");
    let manifest = json!({
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "layers": [],
        "config": {"mediaType": "application/vnd.oci.image.config.v1+json", "digest": blob.to_string(), "size": 2},
    });
    let (manifest, elsewhere) = (manifest.to_string(), format!("http://127.0.0.1:{}/blob", other.port));
    let registry = Listener::start(None, move |question| {
        let is_known = question.header("authorization").is_some();
        match question.first.split_once(' ').map(|(_, path)| path) {
            _ if !is_known => Answer::new(401, "").with("www-authenticate", "Basic realm=\"r\""),
            Some(path) if path.contains("/manifests/") => Answer::new(200, manifest.clone()),
            _ => Answer::new(307, "").with("location", elsewhere.clone()),
        }
    });
    let host = format!("127.0.0.1:{}", registry.port);
    let docker = Docker::new(place);
    docker.write(&docker.password(&host, PASSWORD));
    let told = docker.agentbox().start_words(&["image", "pull", &format!("{host}/me/app:1")]).finish();
    told.assert_code(125);
    let heard = other.heard();
    assert!(!heard.is_empty(), "it was never come by: {}", told.stderr());
    let leaked =
        heard.iter().filter_map(|question| Some((&question.first, question.header("authorization")?)));
    let leaked: Vec<_> = leaked.collect();
    if leaked.is_empty() { Ok(()) } else { Err(format!("somebody else was told {leaked:?}")) }
}

callers!(a_password_goes_to_nobody_elsewhere, |caller| {
    crate::guarded::stands(caller, &[images::Guard::Secrets], &tells_nobody_elsewhere);
});
