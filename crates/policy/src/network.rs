//! What may leave a sandbox: names, addresses, rules, services of the host, and the decision.

mod address;
mod decide;
mod host;
mod http;
mod list;
mod ports;
mod preset;
mod range;
mod refusal;
mod rule;
mod service;
mod upstream;

pub use address::Place;
use address::carried;
pub use decide::{Mode, NetworkPolicy, Request, Verdict};
pub use host::{HostError, HostName};
pub use http::{HttpPath, HttpRule, HttpRuleError, Method, PathRule};
pub use list::{ListError, parse_allowlist};
pub use preset::Preset;
pub use range::{AddressRange, RangeError};
pub use refusal::Refusal;
pub use rule::{HostRule, Ports, Rule, RuleError, Target};
pub use service::{HOST_ALIAS, Service, ServiceError};
pub use upstream::{ProxyChoice, ProxyHost, UpstreamError, UpstreamProxy};
