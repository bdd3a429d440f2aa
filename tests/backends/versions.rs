//! Programs that are not there, and versions with known holes.

use harness::callers;
use policy::Backend;

use crate::with;

callers!(a_backend_that_is_not_installed_is_named_and_not_replaced, |caller| {
    // Neither there nor where programs usually are, as tests/setup.sh keeps what it builds to itself.
    if std::path::Path::new("/usr/local/bin/runsc").exists()
        || std::path::Path::new("/usr/bin/runsc").exists()
    {
        return;
    }
    let finished = with(caller, Backend::Gvisor).env("PATH", "/nonexistent").run(["echo", "started"]);
    let stderr = finished.assert_refused().stderr();
    assert_eq!(finished.stdout(), "");
    assert!(stderr.contains("the backend gvisor needs runsc, which is not installed"), "{stderr}");
    assert!(stderr.contains("hint: `agentbox setup gvisor`"), "{stderr}");
});

callers!(a_distributions_runc_with_known_holes_is_reported_and_refused_by_strict, |caller| {
    let old = std::process::Command::new("/usr/sbin/runc").arg("--version").output();
    let Ok(old) = old else { return };
    if !String::from_utf8_lossy(&old.stdout).starts_with("runc version 1.1.") {
        return;
    }
    let path = "/usr/sbin:/usr/bin:/bin";
    let finished = with(caller, Backend::Runc).option("--report").env("PATH", path).run(["true"]);
    let stderr = finished.assert_success().stderr();
    let line = stderr.lines().find(|line| line.contains("runtime-version")).unwrap();
    assert!(line.starts_with("missing") && line.contains("CVE-2025-52881"), "{line}");
    assert!(stderr.contains("agentbox setup runc"), "{stderr}");
    let strict = with(caller, Backend::Runc).options(["--isolation", "strict"]).env("PATH", path);
    let stderr = strict.run(["true"]).assert_refused().stderr();
    assert!(stderr.contains("strict isolation is not to be had here"), "{stderr}");
});

callers!(doctor_names_each_backend_and_what_mends_it, |caller| {
    let output = harness::Agentbox::shipped(caller).words(&["doctor", "--json"]).output().unwrap();
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    for backend in Backend::ALL.into_iter().filter(|backend| backend.program().is_some()) {
        let name = format!("backend-{backend}");
        let found = json["probes"].as_array().unwrap().iter().find(|probe| probe["name"] == name.as_str());
        let found = found.unwrap_or_else(|| panic!("no {name} in {json:#}"));
        let is_ok = found["state"] == "ok";
        assert_eq!(found["fix"].is_null(), is_ok, "{found}");
        // One command, or what a person has to do where none can.
        let fix = found["fix"].as_str().unwrap_or_default();
        let by_hand =
            fix.contains("https://github.com/containers/crun/releases") || fix.contains("https://go.dev/dl");
        assert!(is_ok || by_hand || fix == format!("agentbox setup {backend}"), "{found}");
    }
});

callers!(setup_shows_and_does_nothing_unasked, |caller| {
    let words = ["setup", "gvisor"];
    let agentbox = harness::Agentbox::shipped(caller).env("PATH", "/usr/bin:/bin");
    if std::path::Path::new("/usr/local/bin/runsc").exists() {
        return;
    }
    let output = agentbox.words(&words).output().unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "{stdout}");
    assert!(stdout.contains("# runsc is not installed"), "{stdout}");
    assert!(stdout.contains("nothing was done"), "{stdout}");
    assert!(!std::path::Path::new("/usr/local/bin/runsc").exists());
});
