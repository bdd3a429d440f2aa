//! `agentbox audit` and `agentbox gc`: what is on record, and when it goes.

use std::process::ExitCode;
use std::time::Duration;

use ::audit::{Hash, ReadError, Record, follow, line, records, verify};
use engine::Engine;

use crate::arguments::{Audit, Gc};
use crate::failure::Failure;
use crate::output::{print, print_on};
use crate::record::digits;

/// How long a reader that follows waits before it looks again.
const PATIENCE: Duration = Duration::from_millis(500);

pub(crate) fn audit(arguments: &Audit) -> Result<ExitCode, Failure> {
    let engine = Engine::open()?;
    let id = engine.find_record(&arguments.sandbox)?;
    engine.close_record(&id);
    let directory = engine.records();
    if arguments.verify {
        let expected = arguments.head.as_deref().map(|head| digits(head).parse::<Hash>()).transpose();
        let expected = expected.map_err(|error| Failure::new("cannot use --head").cause(error))?;
        let verified = verify(&directory, &id, expected).map_err(|broken| {
            Failure::new(format!("the record of sandbox {id} was changed"))
                .cause(broken)
                .hint("what stands before that place is as it was written")
        })?;
        return print(&format!("{} records, head {}\n", verified.count, verified.head));
    }
    if arguments.follow {
        let mut following = follow(&directory, &id).map_err(unreadable)?;
        loop {
            if let Some(record) = following.next_within(PATIENCE).map_err(unreadable)?
                && !show(&record, arguments.json)?
            {
                return Ok(ExitCode::SUCCESS);
            }
        }
    }
    for record in records(&directory, &id).map_err(unreadable)? {
        if !show(&record.map_err(unreadable)?, arguments.json)? {
            break;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Whether anybody still reads.
fn show(record: &Record, json: bool) -> Result<bool, Failure> {
    print_on(&if json { format!("{}\n", record.json()) } else { format!("{}\n", line(record)) })
}

fn unreadable(error: ReadError) -> Failure {
    Failure::new("cannot read the record").cause(error)
}

pub(crate) fn gc(gc: &Gc) -> Result<ExitCode, Failure> {
    let engine = Engine::open()?;
    drop(engine.clean());
    let removed = engine.expire_records(gc.audit_days)?;
    if gc.json {
        return print(&format!("{}\n", serde_json::json!(removed)));
    }
    print(&removed.iter().map(|id| format!("{id}\n")).collect::<String>())
}
