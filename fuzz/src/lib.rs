//! The fuzz targets: whatever reads bytes of somebody who is not trusted. Each takes any bytes, and ends the process
//! where something that must always hold does not.

mod allowlist;
mod archives;
mod frames;
mod layers;
mod manifests;
mod references;
mod terminal;

/// Something that is fuzzed.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// What its seeds and its dictionary are called.
    pub name: &'static str,
    /// Takes one input.
    pub check: fn(&[u8]),
}

/// All of them.
pub const TARGETS: [Target; 26] = [
    Target { name: "allowlist", check: allowlist::check },
    Target { name: "archives", check: archives::check },
    Target { name: "authority", check: gateway::fuzz::authority },
    Target { name: "challenge", check: images::fuzz::challenge },
    Target { name: "chunks", check: gateway::fuzz::chunks },
    Target { name: "commits", check: workspace::fuzz::commits },
    Target { name: "difference", check: workspace::fuzz::difference },
    Target { name: "dns", check: gateway::fuzz::dns },
    Target { name: "errand", check: gateway::fuzz::errand },
    Target { name: "frames", check: frames::check },
    Target { name: "hello", check: gateway::fuzz::hello },
    Target { name: "jwt", check: gateway::fuzz::jwt },
    Target { name: "layers", check: layers::check },
    Target { name: "listing", check: workspace::fuzz::listing },
    Target { name: "manifests", check: manifests::check },
    Target { name: "names", check: workspace::fuzz::names },
    Target { name: "quote", check: workspace::fuzz::quote },
    Target { name: "references", check: references::check },
    Target { name: "request", check: gateway::fuzz::request },
    Target { name: "response", check: gateway::fuzz::response },
    Target { name: "secrets", check: images::fuzz::secrets },
    Target { name: "settings", check: workspace::fuzz::settings },
    Target { name: "shown", check: workspace::fuzz::shown },
    Target { name: "speech", check: gateway::fuzz::speech },
    Target { name: "standing", check: workspace::fuzz::standing },
    Target { name: "terminal", check: terminal::check },
];

impl Target {
    /// The one of this name.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        TARGETS.into_iter().find(|target| target.name == name)
    }
}
