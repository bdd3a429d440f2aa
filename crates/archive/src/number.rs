//! Numbers as tar writes them: octal text, binary where that is too short, decimal in extended headers. Read
//! strictly: what two programs could read as two numbers is no number.

/// The largest number that a field of twelve bytes holds as text.
pub(crate) const LARGEST_OCTAL: u64 = 0o777_7777_7777;

/// Decimal digits and nothing else.
pub(crate) fn decimal(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0_u64, |value, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        value.checked_mul(10)?.checked_add(digit)
    })
}

/// A field of a header: spaces, octal digits, then spaces or NULs to the end; or, as GNU has it, a first byte of
/// 0x80 or 0xff and a number in two's complement. An empty field is zero.
pub(crate) fn field(bytes: &[u8]) -> Option<i64> {
    match bytes {
        [0x80, rest @ ..] => binary(0, rest),
        [0xff, rest @ ..] => binary(-1, rest),
        text => octal(text),
    }
}

fn binary(sign: i64, bytes: &[u8]) -> Option<i64> {
    bytes.iter().try_fold(sign, |value, byte| value.checked_mul(256)?.checked_add(i64::from(*byte)))
}

fn octal(text: &[u8]) -> Option<i64> {
    let begin = text.iter().position(|byte| *byte != b' ').unwrap_or(text.len());
    let digits = text.get(begin..)?;
    let end = digits.iter().position(|byte| matches!(byte, b' ' | 0)).unwrap_or(digits.len());
    let (digits, rest) = digits.split_at(end);
    if !rest.iter().all(|byte| matches!(byte, b' ' | 0)) {
        return None;
    }
    digits.iter().try_fold(0_i64, |value, byte| {
        let digit = matches!(byte, b'0'..=b'7').then(|| i64::from(byte - b'0'))?;
        value.checked_mul(8)?.checked_add(digit)
    })
}

/// Writes octal digits and a NUL over the whole of a field that is large enough for `value`.
pub(crate) fn write_octal(field: &mut [u8], value: u64) {
    let Some((last, digits)) = field.split_last_mut() else { return };
    *last = 0;
    let mut rest = value;
    for digit in digits.iter_mut().rev() {
        *digit = b'0' | (rest & 7) as u8;
        rest >>= 3;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn fields_are_read() {
        assert_eq!(field(b"0000644\0"), Some(0o644));
        assert_eq!(field(b"   644 \0"), Some(0o644));
        assert_eq!(field(b"00000000000\0"), Some(0));
        assert_eq!(field(b"77777777777\0"), Some(LARGEST_OCTAL as i64));
        assert_eq!(field(b"\0\0\0\0"), Some(0));
        assert_eq!(field(&[0x80, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0]), Some(0x2_0000_0000));
        assert_eq!(field(&[0xff; 12]), Some(-1));
    }

    #[test]
    fn what_is_no_number_is_none() {
        for wrong in [&b"8"[..], b"-1", b"1 2", b"1\x002", b"0x1", b"777777777777777777777777"] {
            assert_eq!(field(wrong), None, "{}", wrong.escape_ascii());
        }
        assert_eq!(field(&[0x80, 0x80, 0, 0, 0, 0, 0, 0, 0]), None);
        assert_eq!(decimal(b""), None);
        assert_eq!(decimal(b"18446744073709551616"), None);
        assert_eq!(decimal(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(decimal(b"+1"), None);
    }

    proptest! {
        #[test]
        fn octal_comes_back(value in 0..=LARGEST_OCTAL) {
            let mut bytes = [0; 12];
            write_octal(&mut bytes, value);
            prop_assert_eq!(field(&bytes), Some(value as i64));
        }

        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..13)) {
            let _ = field(&bytes);
        }
    }
}
