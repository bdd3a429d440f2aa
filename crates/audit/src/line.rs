//! A record as one line for people. Inert on a terminal: what comes from inside is a [`Text`], which cannot act.

use policy::network::Refusal;

use crate::{Arguments, Event, Record, Recorded, Text};

/// How much of an argument or path is shown; all of it is in the record.
const SHOWN: usize = 200;
/// How much of all arguments is shown.
const SHOWN_TOGETHER: usize = 1000;

/// The time, the kind and the essentials of a record, without a newline.
#[must_use]
pub fn line(record: &Record) -> String {
    let (kind, essentials) = match &record.event {
        Recorded::Known(event) => describe(event),
        Recorded::Unknown(json) => ("unknown", json.to_string()),
    };
    format!("{}  {kind:<8}  {essentials}", record.time).trim_end().to_owned()
}

fn describe(event: &Event) -> (&'static str, String) {
    match event {
        Event::Created { name, backend } => {
            let name = name.as_ref().map_or_else(|| "unnamed".to_owned(), ToString::to_string);
            ("created", format!("{name}, {}", format!("{backend:?}").to_lowercase()))
        }
        Event::Started { missing, weaker } => {
            let list = |walls: &[policy::Wall]| match walls {
                [] => "none".to_owned(),
                walls => walls.iter().map(|wall| wall.name()).collect::<Vec<_>>().join(" "),
            };
            ("started", format!("missing walls: {}; weaker: {}", list(missing), list(weaker)))
        }
        Event::Stopped { reason, code } => {
            ("stopped", format!("{}{}", reason.name(), optional(" code", *code)))
        }
        Event::Removed => ("removed", String::new()),
        Event::Exec { exec, argv, cwd, user, terminal, detached } => {
            let terminal = terminal.as_ref().map(|name| format!(" terminal={}", quoted(name)));
            let detached = if *detached { " detached" } else { "" };
            let (cwd, terminal) = (quoted(cwd), terminal.unwrap_or_default());
            (
                "exec",
                format!("#{exec} {}:{} in {cwd}{terminal}{detached}: {}", user.uid, user.gid, command(argv)),
            )
        }
        Event::Exited { exec, code, signal, timed_out, out_of_memory } => {
            let timed_out = if *timed_out { " timed-out" } else { "" };
            let memory = if *out_of_memory { " out-of-memory" } else { "" };
            let (code, signal) = (optional(" code", *code), optional(" signal", *signal));
            ("exited", format!("#{exec}{code}{signal}{timed_out}{memory}"))
        }
        Event::Failed { exec, step, errno } => ("failed", format!("#{exec} {}, errno {errno}", quoted(step))),
        Event::File { operation, path, direction, bytes, ok } => {
            let ok = if *ok { "" } else { " failed" };
            let (operation, direction) = (operation.name(), direction.name());
            let bytes = bytes.map_or_else(|| "an unknown number of".to_owned(), |bytes| bytes.to_string());
            ("file", format!("{operation} {} {direction} {bytes} bytes{ok}", quoted(path)))
        }
        Event::Limit { which } => ("limit", which.name().to_owned()),
        Event::Terminal { name, what } => ("terminal", format!("{} {}", quoted(name), what.name())),
        Event::Port { what, address, port } => {
            ("port", format!("{} {}", what.name(), std::net::SocketAddr::new(*address, *port)))
        }
        Event::Paused => ("paused", String::new()),
        Event::Resumed => ("resumed", String::new()),
        Event::Updated { limits } => {
            let (memory, cpus, pids, disk) = (limits.memory, limits.cpus, limits.pids, limits.disk);
            ("updated", format!("memory {memory}, cpus {cpus}, pids {pids}, disk {disk}"))
        }
        Event::Policy { mode, rules } => ("policy", format!("{} {}", mode.name(), command(rules))),
        Event::Entrances { ports } => {
            let ports: Vec<String> = ports.iter().map(ToString::to_string).collect();
            (
                "entrances",
                format!("weaker: {}; only ports {} lead out", policy::Wall::Egress, ports.join(" ")),
            )
        }
        Event::Question { name, refusal, times } => {
            ("question", format!("{}{}{}", quoted(name), refused(*refusal), repeated(*times)))
        }
        Event::Blocked { host, port, refusal, times } => {
            ("blocked", format!("{}:{port} {}{}", quoted(host), refusal.code(), repeated(*times)))
        }
        Event::Connected { connection, host, port, address } => {
            ("connected", format!("#{connection} {}:{port} at {address}", quoted(host)))
        }
        Event::Request { connection, method, target, refusal } => {
            let (method, target) = (quoted(method), quoted(target));
            ("request", format!("#{connection} {method} {target}{}", refused(*refusal)))
        }
        Event::Disconnected { connection, sent, received, refusal } => {
            let cut = refused(*refusal);
            ("disconnected", format!("#{connection} {sent} bytes out, {received} bytes in{cut}"))
        }
        Event::Lost { process } => ("lost", format!("the {} was killed", process.name())),
        Event::Torn(torn) => {
            ("torn", format!("a write was cut off: {} bytes before this are no record", torn.bytes()))
        }
    }
}

fn refused(refusal: Option<Refusal>) -> String {
    refusal.map(|refusal| format!(" {}", refusal.code())).unwrap_or_default()
}

fn repeated(times: u64) -> String {
    if times > 1 { format!(" ({times} times)") } else { String::new() }
}

fn optional(what: &str, number: Option<i32>) -> String {
    number.map(|number| format!("{what} {number}")).unwrap_or_default()
}

/// The arguments with blanks between them.
fn command(arguments: &Arguments) -> String {
    let mut shown = String::new();
    let mut left = arguments.kept().len() as u64 + arguments.missing();
    for argument in arguments.kept() {
        if shown.len() > SHOWN_TOGETHER {
            break;
        }
        shown.push_str(&quoted(argument));
        shown.push(' ');
        left -= 1;
    }
    let more = if left > 0 { format!("[{left} more]") } else { String::new() };
    format!("{shown}{more}").trim_end().to_owned()
}

/// A text that can be told from its neighbours: in quotes where it is empty or has blanks or quotes in it. Cut without
/// dividing a character; an escape that is divided is as inert as a whole one.
fn quoted(text: &Text) -> String {
    let shown: String = text.as_str().chars().take(SHOWN).collect();
    let cut = if shown.len() < text.as_str().len() { "..." } else { "" };
    if shown.is_empty() || shown.contains([' ', '"']) {
        return format!("\"{}{cut}\"", shown.replace('"', "\\\""));
    }
    format!("{shown}{cut}")
}

#[cfg(test)]
mod tests;
