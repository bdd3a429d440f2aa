//! What a machine lacks for other backends and for an ordinary user's sandboxes, as a list of steps that are shown before
//! anything is done. Each is a program with its arguments, never a line for a shell; what cannot be one is left to the
//! person, in words.
//!
//! It stands on the owner's side. It must never put a program into place that has known holes: what is built is looked
//! at first.

mod step;
mod users;

use std::path::PathBuf;
use std::process::Command;

use policy::{Backend, Build, OciRuntime, Standing, judge};

use crate::backends;
use crate::doctor::Surroundings;
use crate::error::EngineError;
use crate::start::Engine;
use crate::trial;

pub(crate) use step::{ASK_SUDO, SUDO};
pub use step::{SetupHow, SetupStep};
pub(crate) use users::{apparmor, helpers, ids};

/// Where Go lies that is no package.
const GO: [&str; 2] = ["/usr/local/go/bin/go", "/usr/lib/go/bin/go"];

/// What to set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetupTarget {
    /// One backend.
    Backend(Backend),
    /// Every backend, and what an ordinary user's sandboxes need.
    All,
}

impl SetupTarget {
    /// The backends that it is about.
    #[must_use]
    pub fn backends(self) -> Vec<Backend> {
        match self {
            Self::Backend(backend) => vec![backend],
            Self::All => vec![Backend::Gvisor, Backend::Crun, Backend::Runc],
        }
    }
}

impl Engine {
    /// What is to be done, in this order.
    pub fn setup(&self, target: SetupTarget) -> Result<Vec<SetupStep>, EngineError> {
        let surroundings = Surroundings::read();
        let mut steps = Vec::new();
        if target == SetupTarget::All {
            steps.extend(users::needs(&surroundings));
        }
        for backend in target.backends() {
            steps.extend(self.install(backend, &surroundings)?);
        }
        if steps.iter().any(SetupStep::asks_for_root) && !surroundings.is_root() {
            // Before anything is built that could not be put into place.
            let why = "some of it is for root to do, as whom sudo has to let you act";
            steps.insert(0, SetupStep::run(why, ASK_SUDO.map(str::to_owned).to_vec()));
        }
        Ok(steps)
    }

    /// What mends a backend, as a person would type it: one command, where commands can do it.
    pub(crate) fn mending(&self, backend: Backend) -> Result<String, EngineError> {
        let steps = self.install(backend, &Surroundings::read())?;
        let by_hand = steps.iter().any(|step| matches!(step.how, SetupHow::ByHand(_)));
        Ok(if by_hand { commands(&steps) } else { format!("agentbox setup {backend}") })
    }

    /// Starts a complete sandbox with a backend: what was set up is to be seen to work.
    pub fn try_backend(&self, backend: Backend) -> Result<String, EngineError> {
        let program = self.program(backend)?;
        if let Some(OciRuntime { program, standing: Standing::Vulnerable(why), .. }) = &program {
            return Err(EngineError::Outdated { path: program.clone(), why: why.clone() });
        }
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
            Backend::Crun => return Ok(vec![install_crun(why, surroundings)]),
            Backend::Native => return Ok(Vec::new()),
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
            SetupStep::run(
                "what was built is not needed twice",
                vec!["rm".to_owned(), built.join(name).display().to_string()],
            ),
        ])
    }
}

/// What steps do, line by line, for whoever does it without us.
pub(crate) fn commands(steps: &[SetupStep]) -> String {
    steps.iter().flat_map(SetupStep::lines).collect::<Vec<_>>().join("\n")
}

/// crun is written in C and built by its distributions: theirs is installed where it has no known holes, and named where it has.
fn install_crun(why: String, surroundings: &Surroundings) -> SetupStep {
    let Some(argv) = surroundings.install_debian("crun") else { return by_hand(Backend::Crun, why) };
    match packaged("crun").map(|version| (judge(Backend::Crun, said(&version)), version)) {
        Some((Standing::Sound, version)) => {
            SetupStep::run(&format!("{why}; the distribution's is {version}"), argv)
        }
        Some((Standing::Vulnerable(holes), version)) => {
            by_hand(Backend::Crun, format!("{why}; the distribution's {version} {holes}"))
        }
        None => by_hand(Backend::Crun, format!("{why}; the distribution has none")),
    }
}

const fn said(version: &str) -> Build<'_> {
    Build { said: Some(version), module: None }
}

/// The version of a package that apt would install.
fn packaged(package: &str) -> Option<String> {
    let told = Command::new("apt-cache").args(["policy", package]).env("LC_ALL", "C").output().ok()?;
    candidate(&String::from_utf8_lossy(&told.stdout))
}

fn candidate(policy: &str) -> Option<String> {
    let version = policy.lines().find_map(|line| line.trim().strip_prefix("Candidate: "))?;
    (version != "(none)").then(|| version.to_owned())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_apt_would_install_is_read_and_judged() {
        let policy = "crun:\n  Installed: (none)\n  Candidate: 1.8.1-1+deb12u1\n  Version table:\n";
        let version = candidate(policy).unwrap();
        assert!(matches!(judge(Backend::Crun, said(&version)), Standing::Vulnerable(_)), "{version}");
        assert_eq!(judge(Backend::Crun, said("1.21-1")), Standing::Sound);
        assert_eq!(candidate("crun:\n  Candidate: (none)\n"), None);
        assert_eq!(candidate(""), None);
    }

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
