//! What programs write to a terminal. Whoever comes late sees what the others see, however the bytes were cut.

use screen::{Screen, Size};

/// Small, so that its edges are met.
const SIZE: Size = Size { rows: 5, columns: 12 };

pub(crate) fn check(bytes: &[u8]) {
    let mut early = Screen::new(SIZE);
    let (before, after) = bytes.split_at(bytes.len() / 2);
    before.chunks(3).for_each(|piece| early.feed(piece));
    let mut late = Screen::new(SIZE);
    late.feed(&early.restore());
    assert!(early == late, "whoever comes at the cut sees something else");
    early.feed(after);
    late.feed(after);
    assert!(early == late, "whoever came at the cut sees something else later");
    let mut whole = Screen::new(SIZE);
    whole.feed(bytes);
    assert!(early == whole, "the pieces make a difference");
}
