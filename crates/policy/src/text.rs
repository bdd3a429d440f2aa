//! What several values share in being read from text and kept as text.

use std::str::FromStr;

/// A number of digits alone: `parse` would also take a sign.
pub(crate) fn number<T: FromStr>(text: &str) -> Option<T> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| digits)
}

/// Keeps a value as the text that it is read from and shown as.
macro_rules! kept_as_text {
    ($value:ty, $error:ty) => {
        impl TryFrom<String> for $value {
            type Error = $error;

            fn try_from(text: String) -> Result<Self, $error> {
                text.parse()
            }
        }

        impl From<$value> for String {
            fn from(value: $value) -> Self {
                value.to_string()
            }
        }
    };
}

pub(crate) use kept_as_text;
