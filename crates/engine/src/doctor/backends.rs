//! Other backends: whether their programs are here, which version they are, and whether a complete sandbox starts with each.
//! No sandbox needs them that does not ask for them by name.

use policy::{Backend, OciRuntime, Standing};

use super::{Finding, Health};
use crate::start::Engine;
use crate::trial;

/// One finding for each backend that is another program's.
pub(super) fn findings(engine: &Engine, begin: &mut dyn FnMut(&str)) -> Vec<Finding> {
    let others = Backend::ALL.into_iter().filter(|backend| backend.program().is_some());
    others
        .map(|backend| {
            begin(backend.name());
            let (state, detail) = look_at(engine, backend);
            let fix = (state != Health::Ok)
                .then(|| engine.mending(backend).unwrap_or_else(|_| format!("agentbox setup {backend}")));
            Finding { name: name(backend), state, detail, fix }
        })
        .collect()
}

fn name(backend: Backend) -> &'static str {
    match backend {
        Backend::Native => "backend-native",
        Backend::Gvisor => "backend-gvisor",
        Backend::Crun => "backend-crun",
        Backend::Runc => "backend-runc",
    }
}

fn look_at(engine: &Engine, backend: Backend) -> (Health, String) {
    let runtime = match engine.program(backend) {
        Ok(Some(runtime)) => runtime,
        Ok(None) => return (Health::Ok, String::new()),
        Err(error) => {
            let problem = error.problem();
            return (Health::Weaker, [vec![problem.error], problem.causes].concat().join(": "));
        }
    };
    let OciRuntime { program, version, standing, platform } = runtime.clone();
    let by = platform.map(|platform| format!(", by {platform}")).unwrap_or_default();
    let what = format!("{} {version}{by}", program.display());
    match (trial::run(engine, backend, Some(runtime)), standing) {
        (Ok(_), Standing::Sound) => (Health::Ok, what),
        (Ok(_), Standing::Vulnerable(why)) => {
            (Health::Weaker, format!("{what} {why}: refused by --isolation strict"))
        }
        (Err(problem), _) => {
            let why = [vec![problem.error], problem.causes].concat().join(": ");
            (Health::Weaker, format!("{what}: {why}"))
        }
    }
}
