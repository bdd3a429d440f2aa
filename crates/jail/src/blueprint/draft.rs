//! The keeper's side: a blueprint is written.

use std::ffi::CStr;
use std::os::fd::{AsFd as _, BorrowedFd};

use policy::Nesting;

use super::{
    AGAIN, ATTACH, BIND, BUILDER, Brief, COVER, DIRECTORY, ENTER, FILE, FILE_SYSTEM, Last, NO_LIMIT, OVERLAY,
    PLACE, SEAL, SETTING, SYMLINK, UNMOUNT,
};
use crate::cgroup::Cgroup;
use crate::network::{Cable, Wiring};
use crate::plan::{Plan, Rooted};
use crate::step::{Owner, Step};
use crate::yard::Yard;

/// About what a step takes beside its contents.
const STEP: usize = 128;

/// A blueprint that is being written.
#[derive(Default)]
pub(crate) struct Draft<'plan> {
    pub(crate) bytes: Vec<u8>,
    pub(crate) trees: Vec<BorrowedFd<'plan>>,
}

/// The one form that every step is written in: which it is, two numbers, three texts and some bytes.
#[derive(Default)]
struct Record<'step> {
    kind: u8,
    numbers: [u64; 2],
    texts: [&'step CStr; 3],
    bytes: &'step [u8],
}

impl<'plan> Draft<'plan> {
    pub(crate) fn new(plan: &'plan Plan, root: &'plan Rooted, processors: &[u8]) -> Self {
        // In one piece: what grows has to be copied, and its pages come from the kernel.
        let length: usize = root.steps.iter().map(|step| STEP + step.contents().len()).sum();
        let mut draft = Self { bytes: Vec::with_capacity(length), trees: Vec::new() };
        draft.trees.extend(plan.cgroup.iter().flat_map(Cgroup::doors));
        let doors = draft.trees.len();
        draft.trees.extend(plan.yard.iter().map(Yard::complaints));
        let mut limits = plan.limits.iter().copied();
        draft.brief(&Brief {
            staging: &plan.staging,
            root_options: &plan.root_options,
            host_name: &plan.host_name,
            has_root: plan.ids.has_root(),
            own_cgroups: plan.own_cgroups,
            nesting: plan.nesting,
            wiring: plan.wiring.as_ref().map(Wiring::laid),
            limits: std::array::from_fn(|_| limits.next()),
            processors,
            doors,
            last: plan.yard.as_ref().map_or(Last::Builder, Yard::last),
        });
        draft.put_number(root.init_arguments.len() as u64);
        for argument in &root.init_arguments {
            draft.put_sized(argument.as_bytes_with_nul());
        }
        draft.steps(&root.steps);
        draft
    }

    pub(super) fn brief(&mut self, brief: &Brief<'_>) {
        self.put_sized(brief.staging.to_bytes_with_nul());
        self.put_sized(brief.root_options.to_bytes_with_nul());
        self.put_sized(brief.host_name);
        let nested = brief.nesting == Nesting::Open;
        [brief.has_root, brief.own_cgroups, nested].iter().for_each(|yes| self.put(&[u8::from(*yes)]));
        self.put(&[u8::from(brief.wiring.is_some())]);
        if let Some(Wiring { routes, routes_v6, rules, ports, cable }) = brief.wiring {
            [routes, routes_v6, rules, ports].iter().for_each(|messages| self.put_sized(messages));
            self.put(&[u8::from(cable.is_some())]);
            if let Some(Cable { pair, here, there }) = cable {
                self.put_sized(pair);
                here.iter().chain(&there).for_each(|messages| self.put_sized(messages));
            }
        }
        for limit in brief.limits {
            let (resource, value) = limit.unwrap_or((NO_LIMIT, 0));
            self.put_number(u64::from(resource));
            self.put_number(value);
        }
        self.put_sized(brief.processors);
        self.put_number(brief.doors as u64);
        let (path, own_kernel) = match brief.last {
            Last::Builder => (c"", false),
            Last::Runtime(path) => (path, false),
            Last::Kernel(path) => (path, true),
        };
        self.put_sized(path.to_bytes_with_nul());
        self.put(&[u8::from(own_kernel)]);
    }

    pub(super) fn steps(&mut self, steps: &'plan [Step]) {
        for step in steps {
            let record = self.record(step);
            self.put(&[record.kind]);
            record.numbers.iter().for_each(|number| self.put_number(*number));
            record.texts.iter().for_each(|text| self.put_sized(text.to_bytes_with_nul()));
            self.put_sized(record.bytes);
        }
    }

    fn put(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    fn put_number(&mut self, number: u64) {
        self.put(&number.to_le_bytes());
    }

    fn put_sized(&mut self, bytes: &[u8]) {
        self.put_number(bytes.len() as u64);
        self.put(bytes);
    }

    fn record(&mut self, step: &'plan Step) -> Record<'plan> {
        let record = Record::default();
        match step {
            Step::Directory { path, mode, owner } => {
                let numbers = [u64::from(*mode), number_of(*owner)];
                Record { kind: DIRECTORY, numbers, texts: [path, c"", c""], ..record }
            }
            Step::Symlink { target, path } => Record { kind: SYMLINK, texts: [path, target, c""], ..record },
            Step::File { path, contents } => {
                Record { kind: FILE, texts: [path, c"", c""], bytes: contents, ..record }
            }
            Step::Place { path, kind, owner } => {
                let numbers = [*kind as u64, number_of(*owner)];
                Record { kind: PLACE, numbers, texts: [path, c"", c""], ..record }
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
            Step::Cover { with, path } => Record { kind: COVER, texts: [path, with, c""], ..record },
            Step::FileSystem { kind, path, flags, options } => {
                let given = u64::from(options.is_some());
                let options = options.as_deref().unwrap_or_default();
                Record { kind: FILE_SYSTEM, numbers: [*flags, given], texts: [path, kind, options], ..record }
            }
            Step::Overlay { path, options, uid, gid } => Record {
                kind: OVERLAY,
                numbers: [u64::from(*uid), u64::from(*gid)],
                texts: [path, c"", options],
                ..record
            },
            Step::Unmount { path } => Record { kind: UNMOUNT, texts: [path, c"", c""], ..record },
            Step::Setting { path, value } => {
                Record { kind: SETTING, texts: [path, c"", c""], bytes: value, ..record }
            }
            Step::Enter { path } => Record { kind: ENTER, texts: [path, c"", c""], ..record },
            Step::Seal { path } => Record { kind: SEAL, texts: [path, c"", c""], ..record },
        }
    }
}

/// The number that stands for an owner.
fn number_of(owner: Owner) -> u64 {
    match owner {
        Owner::Builder => BUILDER,
        Owner::Agent { uid, gid } => u64::from(uid) << 32 | u64::from(gid),
    }
}
