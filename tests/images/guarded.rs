//! What keeps a stranger's image where it belongs, and the negative control: with it taken away the check fails.

use std::io::Write as _;

use harness::Caller;
use images::Guard;

use crate::place::Place;

/// A check: does something with the store of a place, and says what it found to be open.
pub(crate) type Check<'a> = &'a dyn Fn(&Place) -> Result<(), String>;

/// It holds in the program as it ships and in the one that can be weakened, and not with all guards of a list taken away.
#[track_caller]
pub(crate) fn stands(caller: Caller, guards: &[Guard], check: Check<'_>) {
    for place in [Place::new(caller), Place::weakened(caller)] {
        assert_eq!(check(&place), Ok(()), "{caller:?}");
    }
    let names = guards.iter().map(|guard| guard.name()).collect::<Vec<_>>().join(",");
    let found = check(&Place::without(caller, guards));
    assert_ne!(found, Ok(()), "{caller:?}: the check does not notice that {names} is taken away");
    // Not by the test runner's own output, which hides what successful tests print.
    let breach = found.err().unwrap_or_default();
    let _ = writeln!(std::io::stderr(), "negative control: {names}: {caller:?}: {breach}");
}
