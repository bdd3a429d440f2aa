//! What a machine lacks for other backends and for an ordinary user's sandboxes, as a list of steps that are shown before
//! anything is done. Each is a program with its arguments, never a line for a shell; what cannot be one is left to the
//! person, in words.
//!
//! It stands on the owner's side. It must never put a program into place that has known holes: what is built is looked
//! at first.

mod step;

use std::path::{Path, PathBuf};

use jail::Subordinates;
use policy::{Backend, Standing};

use crate::backends;
use crate::doctor::Surroundings;
use crate::error::EngineError;
use crate::start::Engine;
use crate::trial;

pub use step::{SetupHow, SetupStep};

/// Where Go lies that is no package.
const GO: [&str; 2] = ["/usr/local/go/bin/go", "/usr/lib/go/bin/go"];
/// The programs that map ids.
const NEWUIDMAP: &str = "newuidmap";
/// Where profiles of AppArmor's are.
const PROFILE: &str = "/etc/apparmor.d/agentbox";
/// What hands controllers on to users before version 252 of systemd.
const DELEGATION: &str = "/etc/systemd/system/user@.service.d/agentbox.conf";

/// What to set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetupTarget {
    /// One backend.
    Backend(Backend),
    /// gVisor and runc, and what an ordinary user's sandboxes need.
    All,
}

impl SetupTarget {
    /// The backends that it is about.
    #[must_use]
    pub fn backends(self) -> Vec<Backend> {
        match self {
            Self::Backend(backend) => vec![backend],
            Self::All => vec![Backend::Gvisor, Backend::Runc],
        }
    }
}

impl Engine {
    /// What is to be done, in this order.
    pub fn setup(&self, target: SetupTarget) -> Result<Vec<SetupStep>, EngineError> {
        let surroundings = Surroundings::read();
        let mut steps = Vec::new();
        if target == SetupTarget::All {
            steps.extend(for_users(&surroundings));
        }
        for backend in target.backends() {
            steps.extend(self.install(backend, &surroundings)?);
        }
        Ok(steps)
    }

    /// Starts a complete sandbox with a backend: what was set up is to be seen to work.
    pub fn try_backend(&self, backend: Backend) -> Result<String, EngineError> {
        let program = self.program(backend)?;
        let version = program.as_ref().map(|program| program.version.clone()).unwrap_or_default();
        match trial::run(self, backend, program) {
            Ok(_) => Ok(format!("a sandbox starts with {backend} {version}").trim_end().to_owned()),
            Err(problem) => Err(EngineError::Trial { backend, problem }),
        }
    }

    /// The steps to a current program of a backend's.
    fn install(&self, backend: Backend, surroundings: &Surroundings) -> Result<Vec<SetupStep>, EngineError> {
        let Some(name) = backend.program() else { return Ok(Vec::new()) };
        let found = backends::find(name).and_then(|path| backends::look_at(backend, &path).ok());
        let why = match &found {
            Some(found) if found.standing == Standing::Sound => {
                let what = format!("{} {} is there", found.program.display(), found.version);
                return Ok(vec![SetupStep { why: what, how: SetupHow::Nothing }]);
            }
            Some(found) => match &found.standing {
                Standing::Vulnerable(holes) => format!("{name} {} {holes}", found.version),
                Standing::Sound => String::new(),
            },
            None => format!("{name} is not installed"),
        };
        let (package, cgo) = match backend {
            Backend::Gvisor => ("gvisor.dev/gvisor/runsc@latest", "0"),
            Backend::Runc => ("github.com/opencontainers/runc@latest", "1"),
            Backend::Native | Backend::Crun => return Ok(vec![by_hand(backend, why)]),
        };
        let Some(go) = find_go() else { return Ok(vec![by_hand(backend, why)]) };
        self.directories.make_state()?;
        let built = self.directories.setup();
        let target = surroundings.programs().join(name);
        let environment = vec![
            ("GOBIN".to_owned(), built.display().to_string()),
            ("CGO_ENABLED".to_owned(), cgo.to_owned()),
        ];
        let build = vec![go.display().to_string(), "install".to_owned(), package.to_owned()];
        let install = ["install", "-D", "-m", "755"].map(str::to_owned).into_iter();
        let install = install.chain([built.join(name).display().to_string(), target.display().to_string()]);
        Ok(vec![
            SetupStep { why, how: SetupHow::Run { environment, argv: build } },
            SetupStep {
                why: format!("nothing with known holes is put into place of {name}"),
                how: SetupHow::Check { backend, program: built.join(name) },
            },
            SetupStep {
                why: format!("{name} where it is found"),
                how: SetupHow::Run { environment: Vec::new(), argv: surroundings.as_root(install.collect()) },
            },
        ])
    }
}

fn find_go() -> Option<PathBuf> {
    backends::find("go").or_else(|| GO.iter().map(PathBuf::from).find(|path| path.is_file()))
}

/// What a person has to do where no Go is there to build it, and no distribution is known to have a current one.
fn by_hand(backend: Backend, why: String) -> SetupStep {
    let lines: &[&str] = match backend {
        Backend::Gvisor => &[
            "install Go (https://go.dev/dl) and run this again, or take a release of September 2026 or later:",
            "  curl -fsSL https://gvisor.dev/archive.key | sudo gpg --dearmor -o /usr/share/keyrings/gvisor.gpg",
            "  echo 'deb [signed-by=/usr/share/keyrings/gvisor.gpg] https://storage.googleapis.com/gvisor/releases release main' | sudo tee /etc/apt/sources.list.d/gvisor.list",
            "  sudo apt-get update && sudo apt-get install runsc",
        ],
        Backend::Runc => &[
            "install Go (https://go.dev/dl) and run this again, or put runc 1.2.8, 1.3.3, 1.4.0 or later",
            "from https://github.com/opencontainers/runc/releases into /usr/local/bin",
        ],
        Backend::Native | Backend::Crun => {
            &["put crun 1.20 or later from https://github.com/containers/crun/releases into /usr/local/bin"]
        }
    };
    SetupStep { why, how: SetupHow::ByHand(lines.iter().map(|line| (*line).to_owned()).collect()) }
}

/// What sandboxes of an ordinary user need of a machine; root needs none of it.
fn for_users(surroundings: &Surroundings) -> Vec<SetupStep> {
    let mut steps = Vec::new();
    if surroundings.apparmor_restricts && !Path::new(PROFILE).exists() {
        steps.push(SetupStep {
            why: "AppArmor gives user namespaces only to programs that a profile names".to_owned(),
            how: SetupHow::Write { path: PROFILE.into(), contents: surroundings.apparmor_profile() },
        });
        let load = ["apparmor_parser", "-r", PROFILE].map(str::to_owned).to_vec();
        steps.push(run("the profile holds once it is loaded", surroundings.as_root(load)));
    }
    if surroundings.is_root() {
        return steps;
    }
    if backends::find(NEWUIDMAP).is_none() {
        match surroundings.install_uidmap() {
            Some(argv) => steps.push(run("newuidmap is not installed", surroundings.as_root(argv))),
            None => steps.push(SetupStep {
                why: "newuidmap is not installed".to_owned(),
                how: SetupHow::ByHand(vec!["install the package uidmap, shadow or shadow-utils".to_owned()]),
            }),
        }
    }
    if !matches!(Subordinates::find(), Subordinates::Given { .. }) {
        let range = surroundings.free_range();
        let argv = ["usermod", "--add-subuids", &range, "--add-subgids", &range, &surroundings.user];
        let argv = argv.map(str::to_owned).to_vec();
        steps.push(run("sandboxes have one id each without a range of them", surroundings.as_root(argv)));
    }
    if surroundings.has_systemd {
        let linger = Path::new("/var/lib/systemd/linger").join(&surroundings.user);
        if !linger.exists() {
            let argv = ["loginctl", "enable-linger", &surroundings.user].map(str::to_owned).to_vec();
            steps.push(run(
                "sandboxes get their limits from a session of systemd's",
                surroundings.as_root(argv),
            ));
        }
        if !surroundings.hands_processors_on() && !Path::new(DELEGATION).exists() {
            steps.push(SetupStep {
                why: "systemd does not hand the limit on processors on to users".to_owned(),
                how: SetupHow::Write {
                    path: DELEGATION.into(),
                    contents: "[Service]\nDelegate=cpu memory pids\n".to_owned(),
                },
            });
            let argv = ["systemctl", "daemon-reload"].map(str::to_owned).to_vec();
            steps.push(run("it is read once more; log in again afterwards", surroundings.as_root(argv)));
        }
    }
    steps
}

fn run(why: &str, argv: Vec<String>) -> SetupStep {
    SetupStep { why: why.to_owned(), how: SetupHow::Run { environment: Vec::new(), argv } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_for_people_is_never_below_a_floor() {
        for backend in [Backend::Gvisor, Backend::Runc, Backend::Crun] {
            let SetupHow::ByHand(lines) = by_hand(backend, String::new()).how else { panic!("{backend}") };
            let text = lines.join("\n");
            let floor = match backend {
                Backend::Gvisor => "September 2026",
                Backend::Runc => "1.2.8",
                _ => "1.20",
            };
            assert!(text.contains(floor), "{text}");
            assert!(!text.contains("apt-get install runc") && !text.contains("install crun\n"), "{text}");
        }
    }
}
