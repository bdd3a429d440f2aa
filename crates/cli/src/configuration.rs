//! What is set without an option, in the environment or in files, and `agentbox config`, which says where from.

use std::process::ExitCode;

use engine::{Configuration, Setting};
use policy::network::ProxyChoice;
use serde_json::{Value, json};

use crate::arguments::{Config, ConfigAction, ShowConfig};
use crate::failure::{Failure, escape};
use crate::output::{json_line, print};

/// Goes before what files say.
const UPSTREAM_PROXY: &str = "AGENTBOX_UPSTREAM_PROXY";

/// A setting as it holds, and who says so.
struct Effective<T> {
    value: T,
    from: String,
}

pub(crate) fn config(config: &Config) -> Result<ExitCode, Failure> {
    match &config.action {
        ConfigAction::Show(show) => self::show(show),
    }
}

/// The proxy of whoever does not name one.
pub(crate) fn upstream_proxy() -> Result<ProxyChoice, Failure> {
    Ok(effective_proxy()?.value)
}

fn effective_proxy() -> Result<Effective<ProxyChoice>, Failure> {
    if let Some(text) = std::env::var_os(UPSTREAM_PROXY).filter(|text| !text.is_empty()) {
        let value = text.to_string_lossy().parse().map_err(|error| {
            Failure::new(format!("cannot use what {UPSTREAM_PROXY} says"))
                .cause(error)
                .hint("http://[USER:PASSWORD@]HOST:PORT, or none")
        })?;
        return Ok(Effective { value, from: format!("the environment: {UPSTREAM_PROXY}") });
    }
    Ok(match Configuration::read()?.upstream_proxy {
        Some(setting) => Effective { value: setting.value, from: setting.from.display().to_string() },
        None => Effective { value: ProxyChoice::Direct, from: "default".to_owned() },
    })
}

fn show(show: &ShowConfig) -> Result<ExitCode, Failure> {
    let Effective { value, from } = effective_proxy()?;
    let set = Configuration::read()?;
    // A choice is shown without its password.
    let lines = [
        ("network.upstream-proxy", json!(value.to_string()), from),
        named("workspace.hide", set.workspace_hide),
        named("workspace.show", set.workspace_show),
    ];
    print(&if show.json {
        let all = lines.iter().map(|(name, value, from)| json!({"name": name, "value": value, "from": from}));
        json_line(&all.collect())
    } else {
        let line = |(name, value, from): &(&str, Value, String)| {
            format!("{name} = {}  ({})\n", escape(&words(value)), escape(from))
        };
        lines.iter().map(line).collect::<String>()
    })
}

/// A list of names, and where it is from.
fn named(name: &'static str, setting: Option<Setting<Vec<String>>>) -> (&'static str, Value, String) {
    match setting {
        Some(setting) => (name, json!(setting.value), setting.from.display().to_string()),
        None => (name, json!([]), "default".to_owned()),
    }
}

fn words(value: &Value) -> String {
    match value {
        Value::Array(names) if names.is_empty() => "nothing".to_owned(),
        Value::Array(names) => names.iter().map(words).collect::<Vec<_>>().join(", "),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
