//! A control sequence taken apart: prefix, numbers, intermediates and the byte that says what it does.

/// Numbers that are read; those after them are ignored.
const NUMBERS: usize = 32;

/// A control sequence.
pub(crate) struct Csi<'a> {
    pub(crate) prefix: Option<u8>,
    pub(crate) intermediates: &'a [u8],
    pub(crate) last: u8,
    numbers: [u16; NUMBERS],
    count: usize,
    /// Bit n: number n came after a colon and belongs to the one before it.
    joined: u32,
}

impl<'a> Csi<'a> {
    /// Takes apart what stood between CSI and the last byte; None is what no terminal reads.
    pub(crate) fn parse(body: &'a [u8], last: u8) -> Option<Self> {
        let (prefix, body) = match body {
            [prefix @ b'<'..=b'?', rest @ ..] => (Some(*prefix), rest),
            _ => (None, body),
        };
        let end = body.iter().position(|byte| (0x20..=0x2f).contains(byte)).unwrap_or(body.len());
        let (body, intermediates) = body.split_at(end);
        let mut csi = Self { prefix, intermediates, last, numbers: [0; NUMBERS], count: 0, joined: 0 };
        if !body.is_empty() {
            csi.count = 1;
        }
        for byte in body {
            match byte {
                b'0'..=b'9' => {
                    if let Some(number) = csi.numbers.get_mut(csi.count - 1) {
                        *number = number.saturating_mul(10).saturating_add(u16::from(byte - b'0'));
                    }
                }
                b';' | b':' if csi.count > NUMBERS => {}
                b';' => csi.count += 1,
                b':' => {
                    csi.joined |= 1u32.checked_shl(u32::try_from(csi.count).unwrap_or(32)).unwrap_or(0);
                    csi.count += 1;
                }
                _ => return None,
            }
        }
        csi.count = csi.count.min(NUMBERS);
        Some(csi)
    }

    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// A number, or what is meant where there is none.
    pub(crate) fn number(&self, index: usize, default: u16) -> u16 {
        if index < self.count { self.numbers.get(index).copied().unwrap_or(default) } else { default }
    }

    /// A number of times or a position: nothing and zero both mean one.
    pub(crate) fn times(&self, index: usize) -> usize {
        usize::from(self.number(index, 1).max(1))
    }

    /// The numbers with those that belong to them, at least one.
    pub(crate) fn groups(&self) -> impl Iterator<Item = &[u16]> {
        let count = self.count.max(1);
        let mut start = 0;
        std::iter::from_fn(move || {
            if start >= count {
                return None;
            }
            let is_joined = |index: usize| self.joined & (1 << index) != 0;
            let end = (start + 1..count).find(|index| !is_joined(*index)).unwrap_or(count);
            let group = self.numbers.get(start..end);
            start = end;
            group
        })
    }
}
