//! Tar archives written by hand, so that they can say what no honest program writes.

/// An archive in the making.
#[derive(Clone, Default)]
pub(crate) struct Tar {
    bytes: Vec<u8>,
}

/// One entry.
#[derive(Clone, Copy)]
pub(crate) struct Entry<'a> {
    pub(crate) name: &'a str,
    pub(crate) kind: u8,
    pub(crate) mode: u32,
    pub(crate) owner: (u32, u32),
    /// Which device it is. The first of all, 0/0, is what hides a name in an overlay.
    pub(crate) device: (u32, u32),
    pub(crate) link: &'a str,
    pub(crate) contents: &'a [u8],
}

impl Entry<'_> {
    pub(crate) const PLAIN: Entry<'static> =
        Entry { name: "", kind: b'0', mode: 0o644, owner: (0, 0), device: (0, 0), link: "", contents: b"" };
}

impl Tar {
    pub(crate) fn entry(mut self, entry: Entry<'_>) -> Self {
        self.header(&entry, entry.contents.len() as u64);
        self.pad(entry.contents);
        self
    }

    pub(crate) fn file(self, name: &str, contents: &[u8]) -> Self {
        self.entry(Entry { name, contents, ..Entry::PLAIN })
    }

    pub(crate) fn program(self, name: &str, contents: &[u8]) -> Self {
        self.entry(Entry { name, contents, mode: 0o755, ..Entry::PLAIN })
    }

    pub(crate) fn directory(self, name: &str, mode: u32, owner: (u32, u32)) -> Self {
        self.entry(Entry { name, kind: b'5', mode, owner, ..Entry::PLAIN })
    }

    pub(crate) fn link(self, name: &str, link: &str) -> Self {
        self.entry(Entry { name, kind: b'2', mode: 0o777, link, ..Entry::PLAIN })
    }

    pub(crate) fn hard_link(self, name: &str, link: &str) -> Self {
        self.entry(Entry { name, kind: b'1', link, ..Entry::PLAIN })
    }

    /// Records of an extended header, for the next entry.
    pub(crate) fn extended(mut self, records: &[(&str, &str)]) -> Self {
        let mut body = Vec::new();
        for (key, value) in records {
            let rest = key.len() + value.len() + 3;
            let length = (rest + 1..).find(|length| rest + length.to_string().len() == *length).unwrap();
            body.extend_from_slice(format!("{length} {key}={value}\n").as_bytes());
        }
        self.header(&Entry { name: "pax", kind: b'x', ..Entry::PLAIN }, body.len() as u64);
        self.pad(&body);
        self
    }

    /// A header that announces more than follows.
    pub(crate) fn header(&mut self, entry: &Entry<'_>, size: u64) {
        let mut block = [0; 512];
        let mut put = |at: usize, bytes: &[u8]| block[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, entry.name.as_bytes());
        put(100, format!("{:07o}", entry.mode).as_bytes());
        put(108, format!("{:07o}", entry.owner.0).as_bytes());
        put(116, format!("{:07o}", entry.owner.1).as_bytes());
        put(124, format!("{size:011o}").as_bytes());
        put(136, b"00000000000");
        put(148, b"        ");
        put(156, &[entry.kind]);
        put(157, entry.link.as_bytes());
        put(257, b"ustar\x0000");
        put(329, format!("{:07o}", entry.device.0).as_bytes());
        put(337, format!("{:07o}", entry.device.1).as_bytes());
        let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
        block[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
        self.bytes.extend_from_slice(&block);
    }

    fn pad(&mut self, contents: &[u8]) {
        self.bytes.extend_from_slice(contents);
        self.bytes.resize(self.bytes.len().next_multiple_of(512), 0);
    }

    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.bytes.extend_from_slice(&[0; 1024]);
        self.bytes
    }
}
