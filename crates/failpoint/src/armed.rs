//! What a test asked for, in a variable: how, at which point, and the file in which it wants to see that it was reached.

use std::io;
use std::sync::LazyLock;
use std::time::Duration;

use rustix::io::Errno;

use crate::Point;
use crate::sys::Flag;

/// `kill engine.kept-made /a/file/of/one/byte`; `fail` for the full disk, `wait` until the byte is a 2.
pub(crate) const VARIABLE: &str = "AGENTBOX_FAILPOINT";

#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    Kill,
    Fail,
    Wait,
}

struct Armed {
    how: How,
    point: Point,
    reached: Flag,
}

/// Read at the first point. The supervisor is forked after one and keeps it, as it could open no file itself.
static ARMED: LazyLock<Option<Armed>> = LazyLock::new(read);

fn read() -> Option<Armed> {
    let text = std::env::var(VARIABLE).ok()?;
    let mut words = text.splitn(3, ' ');
    let how = match words.next()? {
        "kill" => How::Kill,
        "fail" => How::Fail,
        "wait" => How::Wait,
        _ => return None,
    };
    let name = words.next()?;
    let point = Point::ALL.iter().copied().find(|point| point.name() == name)?;
    Some(Armed { how, point, reached: Flag::open(words.next()?)? })
}

fn asked(how: How, point: Point) -> Option<&'static Armed> {
    ARMED.as_ref().filter(|armed| armed.how == how && armed.point == point)
}

pub(crate) fn pass(point: Point) {
    if let Some(armed) = asked(How::Kill, point) {
        armed.reached.set();
        let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
        // A confined supervisor may signal nobody, itself included.
        std::process::abort();
    }
    if let Some(armed) = asked(How::Wait, point) {
        armed.reached.set();
        while !armed.reached.is_released() {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

pub(crate) fn fail(point: Point) -> io::Result<()> {
    match asked(How::Fail, point) {
        Some(armed) => {
            armed.reached.set();
            Err(Errno::NOSPC.into())
        }
        None => Ok(()),
    }
}
