//! The plan on its way to the builder. The builder is cloned before the plan is made, so that its namespaces come
//! to be meanwhile, and it may not allocate: it reads all of it from the bytes as they lie.

mod draft;

use std::ffi::CStr;
use std::os::fd::RawFd;

use policy::Nesting;

use crate::network::{Cable, Wiring};
use crate::step::{Bound, Laid, Owner, Place, Step};

pub(crate) use draft::Draft;

/// The largest blueprint.
pub(crate) const LARGEST: usize = 8 << 20;
/// The most trees that travel with it: the kernel passes on no more than 253 descriptors at once.
pub(crate) const MOST_TREES: usize = 250;
/// The most arguments of init's.
pub(crate) const MOST_ARGUMENTS: usize = 2048;

/// The most resource limits.
const MOST_LIMITS: usize = 4;

/// What the builder has to know besides the steps of its root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Brief<'bytes> {
    /// The directory that the new root is put together on.
    pub(crate) staging: &'bytes CStr,
    /// The options of the new root's own file system.
    pub(crate) root_options: &'bytes CStr,
    pub(crate) host_name: &'bytes [u8],
    /// Whether there is a root inside that is not the agent.
    pub(crate) has_root: bool,
    /// Whether the sandbox gets a cgroup namespace.
    pub(crate) own_cgroups: bool,
    pub(crate) nesting: Nesting,
    /// How its network is wired, where it has one.
    pub(crate) wiring: Option<Wiring<&'bytes [u8]>>,
    /// Resource limits, by their numbers.
    pub(crate) limits: [Option<(u32, u64)>; MOST_LIMITS],
    /// The processors that whatever runs inside may run on, as the kernel has them.
    pub(crate) processors: &'bytes [u8],
    /// How many of the descriptors, the first, are files to move oneself into a cgroup by.
    doors: usize,
    /// Who puts up the last walls, within those that are built here.
    pub(crate) last: Last<'bytes>,
}

/// Who puts up the last walls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Last<'bytes> {
    /// The builder, which becomes init.
    Builder,
    /// The runtime at this path, which the builder becomes. Its complaints go to the descriptor that follows the doors.
    Runtime(&'bytes CStr),
    /// The same, of one that brings a kernel of its own.
    Kernel(&'bytes CStr),
}

/// A blueprint that has arrived.
pub(crate) struct Blueprint<'bytes> {
    rest: &'bytes [u8],
    trees: &'bytes [RawFd],
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
const COVER: u8 = 10;
const OVERLAY: u8 = 11;
const UNMOUNT: u8 = 12;
const ENTER: u8 = 13;
const SEAL: u8 = 14;

/// In the place of a resource where there is no limit.
const NO_LIMIT: u32 = u32::MAX;

/// The owner of a directory that stays the builder's.
const BUILDER: u64 = u64::MAX;

impl<'bytes> Blueprint<'bytes> {
    pub(crate) const fn new(bytes: &'bytes [u8], trees: &'bytes [RawFd]) -> Self {
        Self { rest: bytes, trees }
    }

    /// What comes first.
    pub(crate) fn brief(&mut self) -> Option<Brief<'bytes>> {
        let (staging, root_options, host_name) = (self.text()?, self.text()?, self.sized()?);
        let (has_root, own_cgroups, nested) = (self.flag()?, self.flag()?, self.flag()?);
        let wiring = if self.flag()? {
            let (routes, routes_v6, rules, ports) =
                (self.sized()?, self.sized()?, self.sized()?, self.sized()?);
            Some(Wiring { routes, routes_v6, rules, ports, cable: self.cable()? })
        } else {
            None
        };
        let mut limits = [None; MOST_LIMITS];
        for limit in &mut limits {
            let (resource, value) = (u32::try_from(self.number()?).ok()?, self.number()?);
            *limit = (resource != NO_LIMIT).then_some((resource, value));
        }
        let processors = self.sized()?;
        let doors = usize::try_from(self.number()?).ok()?;
        let last = match (self.text()?, self.flag()?) {
            (path, _) if path.is_empty() => Last::Builder,
            (path, false) => Last::Runtime(path),
            (path, true) => Last::Kernel(path),
        };
        let nesting = if nested { Nesting::Open } else { Nesting::Closed };
        Some(Brief {
            staging,
            root_options,
            host_name,
            has_root,
            own_cgroups,
            nesting,
            wiring,
            limits,
            processors,
            doors,
            last,
        })
    }

    fn cable(&mut self) -> Option<Option<Cable<&'bytes [u8]>>> {
        if !self.flag()? {
            return Some(None);
        }
        let pair = self.sized()?;
        let here = [self.sized()?, self.sized()?];
        Some(Some(Cable { pair, here, there: [self.sized()?, self.sized()?] }))
    }

    /// The files to move oneself into a cgroup by.
    pub(crate) fn doors(&self, brief: &Brief<'_>) -> Option<&'bytes [RawFd]> {
        self.trees.get(..brief.doors)
    }

    /// Where a runtime's complaints go.
    pub(crate) fn complaints(&self, brief: &Brief<'_>) -> Option<RawFd> {
        self.trees.get(brief.doors).copied().filter(|_| brief.last != Last::Builder)
    }

    /// How many arguments of init's follow; each is read by [`Self::argument`].
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
            DIRECTORY => Step::Directory { path, mode: u32::try_from(first).ok()?, owner: owner_of(second) },
            SYMLINK => Step::Symlink { target: text, path },
            FILE => Step::File { path, contents: bytes },
            PLACE => {
                let kind = *Place::ALL.get(usize::try_from(first).ok()?)?;
                Step::Place { path, kind, owner: owner_of(second) }
            }
            BIND => Step::Bind { source: text, path, bound: *Bound::ALL.get(usize::try_from(first).ok()?)? },
            ATTACH => Step::Attach { tree: *self.trees.get(usize::try_from(first).ok()?)?, path },
            AGAIN => Step::Again { source: text, path, flags: first },
            COVER => Step::Cover { with: text, path },
            FILE_SYSTEM => {
                Step::FileSystem { kind: text, path, flags: first, options: (second == 1).then_some(options) }
            }
            OVERLAY => Step::Overlay {
                path,
                options,
                uid: u32::try_from(first).ok()?,
                gid: u32::try_from(second).ok()?,
            },
            UNMOUNT => Step::Unmount { path },
            SETTING => Step::Setting { path, value: bytes },
            ENTER => Step::Enter { path },
            SEAL => Step::Seal { path },
            _ => return None,
        })
    }

    fn take(&mut self, count: usize) -> Option<&'bytes [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }

    fn flag(&mut self) -> Option<bool> {
        Some(self.take(1)?[0] != 0)
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

/// The owner that a number stands for.
const fn owner_of(number: u64) -> Owner {
    match number {
        BUILDER => Owner::Builder,
        ids => Owner::Agent { uid: (ids >> 32) as u32, gid: ids as u32 },
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::CString;
    use std::os::fd::AsRawFd as _;

    use proptest::prelude::*;

    use super::*;

    fn text() -> impl Strategy<Value = CString> {
        proptest::collection::vec(1u8..=255, 0..40).prop_map(|bytes| CString::new(bytes).unwrap())
    }

    fn step() -> impl Strategy<Value = Step> {
        let bytes = || proptest::collection::vec(any::<u8>(), 0..200);
        let owner = || {
            prop_oneof![
                Just(Owner::Builder),
                (0..u32::MAX, any::<u32>()).prop_map(|(uid, gid)| Owner::Agent { uid, gid })
            ]
        };
        let tree = || std::fs::File::open("/dev/null").unwrap().into();
        prop_oneof![
            (text(), any::<u32>(), owner()).prop_map(|(path, mode, owner)| Step::Directory {
                path,
                mode,
                owner
            }),
            (text(), text()).prop_map(|(target, path)| Step::Symlink { target, path }),
            (text(), bytes()).prop_map(|(path, contents)| Step::File { path, contents }),
            (text(), proptest::sample::select(Place::ALL), owner())
                .prop_map(|(path, kind, owner)| Step::Place { path, kind, owner }),
            (text(), text(), proptest::sample::select(Bound::ALL))
                .prop_map(|(source, path, bound)| Step::Bind { source, path, bound }),
            text().prop_map(move |path| Step::Attach { tree: tree(), path }),
            (text(), text(), any::<u64>()).prop_map(|(source, path, flags)| Step::Again {
                source,
                path,
                flags
            }),
            (text(), text()).prop_map(|(with, path)| Step::Cover { with, path }),
            (text(), text(), any::<u64>(), proptest::option::of(text()))
                .prop_map(|(kind, path, flags, options)| Step::FileSystem { kind, path, flags, options }),
            (text(), text(), any::<u32>(), any::<u32>())
                .prop_map(|(path, options, uid, gid)| Step::Overlay { path, options, uid, gid }),
            text().prop_map(|path| Step::Unmount { path }),
            (text(), bytes()).prop_map(|(path, value)| Step::Setting { path, value }),
            text().prop_map(|path| Step::Enter { path }),
            text().prop_map(|path| Step::Seal { path }),
        ]
    }

    proptest! {
        #[test]
        fn a_brief_is_read_as_it_was_written(
            texts in (text(), text()),
            host_name in proptest::collection::vec(any::<u8>(), 0..64),
            flags in any::<[bool; 3]>(),
            last in proptest::sample::select(vec![Last::Builder, Last::Runtime(c"/x"), Last::Kernel(c"/x")]),
            wired in any::<bool>(),
            limits in proptest::collection::vec((0..NO_LIMIT, any::<u64>()), 0..=MOST_LIMITS),
            doors in 0usize..4,
        ) {
            let mut limits = limits.into_iter();
            let brief = Brief {
                staging: &texts.0,
                root_options: &texts.1,
                host_name: &host_name,
                has_root: flags[0],
                own_cgroups: flags[1],
                nesting: if flags[2] { Nesting::Open } else { Nesting::Closed },
                wiring: wired.then_some(Wiring {
                    routes: b"1",
                    routes_v6: b"",
                    rules: &host_name,
                    ports: b"23",
                    cable: flags[0].then_some(Cable { pair: b"456", here: [b"7", b""], there: [b"8", b"9"] }),
                }),
                limits: std::array::from_fn(|_| limits.next()),
                processors: &host_name,
                doors,
                last,
            };
            let mut draft = Draft::default();
            draft.brief(&brief);
            let mut blueprint = Blueprint::new(&draft.bytes, &[7, 8, 9]);
            let read = blueprint.brief();
            prop_assert_eq!(read.as_ref(), Some(&brief));
            prop_assert_eq!(blueprint.doors(&brief), Some(&[7, 8, 9][..doors]));
            let complaints = [7, 8, 9].get(doors).copied().filter(|_| last != Last::Builder);
            prop_assert_eq!(blueprint.complaints(&brief), complaints);
            prop_assert!(blueprint.is_done());
        }

        #[test]
        fn steps_are_read_as_they_were_written(steps in proptest::collection::vec(step(), 0..20)) {
            let mut draft = Draft::default();
            draft.steps(&steps);
            let trees: Vec<RawFd> = draft.trees.iter().map(|tree| tree.as_raw_fd()).collect();
            let mut blueprint = Blueprint::new(&draft.bytes, &trees);
            for step in &steps {
                prop_assert_eq!(blueprint.step(), Some(step.laid()));
            }
            prop_assert!(blueprint.is_done());
        }

        #[test]
        fn bytes_that_are_cut_short_are_no_blueprint(steps in proptest::collection::vec(step(), 1..4), cut in 1usize..8) {
            let mut draft = Draft::default();
            draft.steps(&steps);
            let trees: Vec<RawFd> = draft.trees.iter().map(|tree| tree.as_raw_fd()).collect();
            draft.bytes.truncate(draft.bytes.len() - cut);
            let mut blueprint = Blueprint::new(&draft.bytes, &trees);
            let read = std::iter::from_fn(|| blueprint.step()).count();
            prop_assert!(read < steps.len());
        }
    }
}
