//! An argv on record: each argument a text, and all of them together bounded, so that a record never outgrows its line.

use serde::{Deserialize, Serialize};

use crate::text::{Fit, Text, TextError, count};

/// How much room all arguments of a program have together, in bytes as they lie in the file. Most of a record: what
/// was run is what an audit is read for.
pub const ARGUMENTS_LIMIT: usize = 48 * 1024;

/// What an argument takes beside its text: two quotes and a comma.
const AROUND: usize = 3;
/// What the two marks take at most, the one in the last argument and the one after it.
const MARKS: usize = 80;

/// The arguments of a program, the program itself first. Where some were left out, the last string of the list in the
/// file is `\[3 more]`, which no argument can be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<String>", into = "Vec<String>")]
pub struct Arguments {
    kept: Vec<Text>,
    missing: u64,
}

impl Arguments {
    /// Takes as many arguments as there is room for; the one at which the room ends is cut.
    #[must_use]
    pub fn new<Argument: AsRef<[u8]>>(arguments: impl IntoIterator<Item = Argument>) -> Self {
        let mut room = ARGUMENTS_LIMIT - MARKS;
        let mut list = Self::default();
        for argument in arguments {
            if room <= AROUND {
                list.missing += 1;
                continue;
            }
            let Fit { text, cost, missing } = Text::fit(argument.as_ref(), room - AROUND);
            room = if missing > 0 { 0 } else { room - cost - AROUND };
            list.kept.push(text);
        }
        list
    }

    /// The arguments that are on record.
    #[must_use]
    pub fn kept(&self) -> &[Text] {
        &self.kept
    }

    /// How many arguments were left out after them.
    #[must_use]
    pub const fn missing(&self) -> u64 {
        self.missing
    }
}

impl TryFrom<Vec<String>> for Arguments {
    type Error = TextError;

    fn try_from(mut strings: Vec<String>) -> Result<Self, TextError> {
        let mark = |text: &String| text.strip_prefix("\\[")?.strip_suffix(" more]").and_then(count);
        let missing = strings.last().and_then(mark).unwrap_or_default();
        if missing > 0 {
            strings.pop();
        }
        let kept = strings.into_iter().map(Text::try_from).collect::<Result<_, _>>()?;
        Ok(Self { kept, missing })
    }
}

impl From<Arguments> for Vec<String> {
    fn from(arguments: Arguments) -> Self {
        let mark = (arguments.missing > 0).then(|| format!("\\[{} more]", arguments.missing));
        arguments.kept.into_iter().map(String::from).chain(mark).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn many_arguments_are_counted_and_not_kept() {
        let arguments = Arguments::new((0..100_000).map(|_| ""));
        assert!(arguments.kept().len() > 10_000);
        assert_eq!(arguments.kept().len() as u64 + arguments.missing(), 100_000);
    }

    #[test]
    fn a_long_argument_keeps_its_beginning() {
        let arguments = Arguments::new(["sh", "-c", &"x".repeat(1 << 20), "after"]);
        let lengths: Vec<_> = arguments.kept().iter().map(|text| text.bytes().len()).collect();
        assert_eq!(lengths[..2], [2, 2]);
        assert!(lengths[2] > 48_000 && lengths[2] < ARGUMENTS_LIMIT);
        assert_eq!(arguments.missing(), 1);
    }

    #[test]
    fn an_argument_that_looks_like_the_mark_is_none() {
        let arguments = Arguments::new(["\\[3 more]"]);
        let json = serde_json::to_string(&arguments).unwrap();
        assert_eq!(serde_json::from_str::<Arguments>(&json).unwrap(), arguments);
        assert_eq!(arguments.missing(), 0);
    }

    proptest! {
        #[test]
        fn any_list_fits_and_comes_back(sizes in proptest::collection::vec(0_usize..9000, 0..60), byte: u8) {
            let arguments = Arguments::new(sizes.iter().map(|size| vec![byte; *size]));
            let json = serde_json::to_string(&arguments).unwrap();
            prop_assert!(json.len() <= ARGUMENTS_LIMIT, "{}", json.len());
            prop_assert_eq!(serde_json::from_str::<Arguments>(&json).unwrap(), arguments.clone());
            prop_assert_eq!(arguments.kept().len() as u64 + arguments.missing(), sizes.len() as u64);
            for (text, size) in arguments.kept().iter().zip(&sizes) {
                prop_assert_eq!(text.bytes().len() as u64 + text.missing(), *size as u64);
            }
        }
    }
}
