//! The plan of a root on its way to the builder. The builder is cloned before that plan is made, so that its
//! namespaces come to be meanwhile, and it may not allocate: it reads the steps from the bytes as they lie.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd as _, BorrowedFd, RawFd};

use crate::step::{Bound, Laid, Owner, Place, Step};

/// The largest blueprint.
pub(crate) const LARGEST: usize = 8 << 20;
/// The most trees that travel with it: the kernel passes on no more than 253 descriptors at once.
pub(crate) const MOST_TREES: usize = 250;
/// The most arguments of init's.
pub(crate) const MOST_ARGUMENTS: usize = 2048;

/// A blueprint that is being written.
#[derive(Default)]
pub(crate) struct Draft<'plan> {
    pub(crate) bytes: Vec<u8>,
    pub(crate) trees: Vec<BorrowedFd<'plan>>,
}

/// A blueprint that has arrived.
pub(crate) struct Blueprint<'bytes> {
    rest: &'bytes [u8],
    trees: &'bytes [RawFd],
}

/// The one form that every step is written in: which it is, two numbers, three texts and some bytes.
#[derive(Default)]
struct Record<'step> {
    kind: u8,
    numbers: [u64; 2],
    texts: [&'step CStr; 3],
    bytes: &'step [u8],
}

const DIRECTORY: u8 = 1;
const SYMLINK: u8 = 2;
const FILE: u8 = 3;
const PLACE: u8 = 4;
const BIND: u8 = 5;
const ATTACH: u8 = 6;
const AGAIN: u8 = 7;
const FILE_SYSTEM: u8 = 8;
const SETTING: u8 = 9;

/// The owner of a directory that stays the builder's.
const BUILDER: u64 = u64::MAX;

impl<'plan> Draft<'plan> {
    /// Init's arguments, then the steps.
    pub(crate) fn new(arguments: &[CString], steps: &'plan [Step]) -> Self {
        let mut draft = Self::default();
        draft.put(&(arguments.len() as u64).to_le_bytes());
        for argument in arguments {
            draft.put_sized(argument.as_bytes_with_nul());
        }
        for step in steps {
            let record = draft.record(step);
            draft.put(&[record.kind]);
            record.numbers.iter().for_each(|number| draft.put(&number.to_le_bytes()));
            record.texts.iter().for_each(|text| draft.put_sized(text.to_bytes_with_nul()));
            draft.put_sized(record.bytes);
        }
        draft
    }

    fn put(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    fn put_sized(&mut self, bytes: &[u8]) {
        self.put(&(bytes.len() as u64).to_le_bytes());
        self.put(bytes);
    }

    fn record(&mut self, step: &'plan Step) -> Record<'plan> {
        let record = Record::default();
        match step {
            Step::Directory { path, mode, owner } => {
                let owner = match *owner {
                    Owner::Builder => BUILDER,
                    Owner::Agent { uid, gid } => u64::from(uid) << 32 | u64::from(gid),
                };
                Record {
                    kind: DIRECTORY,
                    numbers: [u64::from(*mode), owner],
                    texts: [path, c"", c""],
                    ..record
                }
            }
            Step::Symlink { target, path } => Record { kind: SYMLINK, texts: [path, target, c""], ..record },
            Step::File { path, contents } => {
                Record { kind: FILE, texts: [path, c"", c""], bytes: contents, ..record }
            }
            Step::Place { path, kind } => {
                Record { kind: PLACE, numbers: [*kind as u64, 0], texts: [path, c"", c""], ..record }
            }
            Step::Bind { source, path, bound } => {
                Record { kind: BIND, numbers: [*bound as u64, 0], texts: [path, source, c""], ..record }
            }
            Step::Attach { tree, path } => {
                let index = self.trees.len() as u64;
                self.trees.push(tree.as_fd());
                Record { kind: ATTACH, numbers: [index, 0], texts: [path, c"", c""], ..record }
            }
            Step::Again { source, path, flags } => {
                Record { kind: AGAIN, numbers: [*flags, 0], texts: [path, source, c""], ..record }
            }
            Step::FileSystem { kind, path, flags, options } => {
                let given = u64::from(options.is_some());
                let options = options.as_deref().unwrap_or_default();
                Record { kind: FILE_SYSTEM, numbers: [*flags, given], texts: [path, kind, options], ..record }
            }
            Step::Setting { path, value } => {
                Record { kind: SETTING, texts: [path, c"", c""], bytes: value, ..record }
            }
        }
    }
}

impl<'bytes> Blueprint<'bytes> {
    pub(crate) const fn new(bytes: &'bytes [u8], trees: &'bytes [RawFd]) -> Self {
        Self { rest: bytes, trees }
    }

    /// How many arguments of init's come first; each is read by [`Self::argument`].
    pub(crate) fn arguments(&mut self) -> Option<usize> {
        usize::try_from(self.number()?).ok()
    }

    pub(crate) fn argument(&mut self) -> Option<&'bytes CStr> {
        self.text()
    }

    /// Whether every step has been read.
    pub(crate) const fn is_done(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next step; none where the bytes are no blueprint.
    pub(crate) fn step(&mut self) -> Option<Laid<'bytes>> {
        let (kind, first, second) = (self.take(1)?[0], self.number()?, self.number()?);
        let (path, text, options) = (self.text()?, self.text()?, self.text()?);
        let bytes = self.sized()?;
        Some(match kind {
            DIRECTORY => {
                let owner = match second {
                    BUILDER => Owner::Builder,
                    ids => Owner::Agent { uid: (ids >> 32) as u32, gid: ids as u32 },
                };
                Step::Directory { path, mode: u32::try_from(first).ok()?, owner }
            }
            SYMLINK => Step::Symlink { target: text, path },
            FILE => Step::File { path, contents: bytes },
            PLACE => Step::Place { path, kind: *Place::ALL.get(usize::try_from(first).ok()?)? },
            BIND => Step::Bind { source: text, path, bound: *Bound::ALL.get(usize::try_from(first).ok()?)? },
            ATTACH => Step::Attach { tree: *self.trees.get(usize::try_from(first).ok()?)?, path },
            AGAIN => Step::Again { source: text, path, flags: first },
            FILE_SYSTEM => {
                Step::FileSystem { kind: text, path, flags: first, options: (second == 1).then_some(options) }
            }
            SETTING => Step::Setting { path, value: bytes },
            _ => return None,
        })
    }

    fn take(&mut self, count: usize) -> Option<&'bytes [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    fn sized(&mut self) -> Option<&'bytes [u8]> {
        let count = usize::try_from(self.number()?).ok()?;
        self.take(count)
    }

    fn text(&mut self) -> Option<&'bytes CStr> {
        CStr::from_bytes_with_nul(self.sized()?).ok()
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd as _;

    use proptest::prelude::*;

    use super::*;

    fn text() -> impl Strategy<Value = CString> {
        proptest::collection::vec(1u8..=255, 0..40).prop_map(|bytes| CString::new(bytes).unwrap())
    }

    fn step() -> impl Strategy<Value = Step> {
        let bytes = || proptest::collection::vec(any::<u8>(), 0..200);
        let owner = prop_oneof![
            Just(Owner::Builder),
            (0..u32::MAX, any::<u32>()).prop_map(|(uid, gid)| Owner::Agent { uid, gid })
        ];
        let tree = || std::fs::File::open("/dev/null").unwrap().into();
        prop_oneof![
            (text(), any::<u32>(), owner).prop_map(|(path, mode, owner)| Step::Directory {
                path,
                mode,
                owner
            }),
            (text(), text()).prop_map(|(target, path)| Step::Symlink { target, path }),
            (text(), bytes()).prop_map(|(path, contents)| Step::File { path, contents }),
            (text(), proptest::sample::select(Place::ALL))
                .prop_map(|(path, kind)| Step::Place { path, kind }),
            (text(), text(), proptest::sample::select(Bound::ALL))
                .prop_map(|(source, path, bound)| Step::Bind { source, path, bound }),
            text().prop_map(move |path| Step::Attach { tree: tree(), path }),
            (text(), text(), any::<u64>()).prop_map(|(source, path, flags)| Step::Again {
                source,
                path,
                flags
            }),
            (text(), text(), any::<u64>(), proptest::option::of(text()))
                .prop_map(|(kind, path, flags, options)| Step::FileSystem { kind, path, flags, options }),
            (text(), bytes()).prop_map(|(path, value)| Step::Setting { path, value }),
        ]
    }

    proptest! {
        #[test]
        fn what_is_drafted_is_read(
            arguments in proptest::collection::vec(text(), 0..8),
            steps in proptest::collection::vec(step(), 0..20),
        ) {
            let draft = Draft::new(&arguments, &steps);
            let trees: Vec<RawFd> = draft.trees.iter().map(|tree| tree.as_raw_fd()).collect();
            let mut blueprint = Blueprint::new(&draft.bytes, &trees);
            prop_assert_eq!(blueprint.arguments(), Some(arguments.len()));
            for argument in &arguments {
                prop_assert_eq!(blueprint.argument(), Some(argument.as_c_str()));
            }
            for step in &steps {
                prop_assert_eq!(blueprint.step(), Some(step.laid()));
            }
            prop_assert!(blueprint.is_done());
        }

        #[test]
        fn bytes_that_are_cut_short_are_no_blueprint(steps in proptest::collection::vec(step(), 1..4), cut in 1usize..8) {
            let mut draft = Draft::new(&[], &steps);
            let trees: Vec<RawFd> = draft.trees.iter().map(|tree| tree.as_raw_fd()).collect();
            draft.bytes.truncate(draft.bytes.len() - cut);
            let mut blueprint = Blueprint::new(&draft.bytes, &trees);
            blueprint.arguments().unwrap();
            let read = std::iter::from_fn(|| blueprint.step()).count();
            prop_assert!(read < steps.len());
        }
    }
}
