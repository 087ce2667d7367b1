//! An archive writer that can falsify every field.

use std::io::{Cursor, Write as _};
use std::time::Duration;

use bundle::{Accepted, Finding, Limits, Verdict};
use flate2::Compression;
use flate2::write::DeflateEncoder;
use kernel::ManualClock;

/// The fields of a local or directory header.
#[derive(Clone)]
pub(crate) struct Header {
    pub(crate) mark: [u8; 4],
    pub(crate) version: u16,
    pub(crate) flags: u16,
    pub(crate) method: u16,
    pub(crate) time: u32,
    pub(crate) crc: u32,
    pub(crate) packed: u32,
    pub(crate) size: u32,
    pub(crate) name: Vec<u8>,
    pub(crate) extra: Vec<u8>,
    /// The next five exist only in the directory.
    pub(crate) comment: Vec<u8>,
    pub(crate) disk: u16,
    pub(crate) internal: u16,
    pub(crate) attributes: u32,
    /// Local header offset; `None` means the actual offset.
    pub(crate) offset: Option<u32>,
}

/// An entry: the bytes before its local header, its headers, its data and its descriptor.
#[derive(Clone)]
pub(crate) struct Item {
    pub(crate) gap: Vec<u8>,
    pub(crate) local: Header,
    pub(crate) data: Vec<u8>,
    pub(crate) descriptor: Vec<u8>,
    pub(crate) central: Header,
    /// Whether the directory lists it.
    pub(crate) listed: bool,
    /// Whether the archive's body contains it.
    pub(crate) present: bool,
}

impl Item {
    pub(crate) fn stored(name: &[u8], content: &[u8]) -> Self {
        let header = Header {
            mark: *b"PK\x03\x04",
            version: 20,
            flags: if name.is_ascii() { 0 } else { 1 << 11 },
            method: 0,
            time: 0x5a21_0000,
            crc: crc32fast::hash(content),
            packed: u32::try_from(content.len()).unwrap(),
            size: u32::try_from(content.len()).unwrap(),
            name: name.to_vec(),
            extra: Vec::new(),
            comment: Vec::new(),
            disk: 0,
            internal: 0,
            attributes: 0,
            offset: None,
        };
        let central = Header { mark: *b"PK\x01\x02", ..header.clone() };
        let (gap, descriptor) = (Vec::new(), Vec::new());
        Self { gap, local: header, data: content.to_vec(), descriptor, central, listed: true, present: true }
    }

    pub(crate) fn deflated(name: &[u8], content: &[u8]) -> Self {
        Self::stored(name, content).packed(8, deflate(content))
    }

    /// The same content in another encoding.
    pub(crate) fn packed(mut self, method: u16, data: Vec<u8>) -> Self {
        let length = u32::try_from(data.len()).unwrap();
        self.data = data;
        self.both(|header| (header.method, header.packed) = (method, length))
    }

    pub(crate) fn both(mut self, change: impl Fn(&mut Header)) -> Self {
        change(&mut self.local);
        change(&mut self.central);
        self
    }

    pub(crate) fn local(mut self, change: impl FnOnce(&mut Header)) -> Self {
        change(&mut self.local);
        self
    }

    pub(crate) fn central(mut self, change: impl FnOnce(&mut Header)) -> Self {
        change(&mut self.central);
        self
    }

    /// Adds a descriptor after the data, as writers to pipes do.
    pub(crate) fn streamed(self) -> Self {
        let mut item = self.both(|header| header.flags |= 1 << 3);
        (item.local.crc, item.local.packed, item.local.size) = (0, 0, 0);
        let sums = [item.central.crc, item.central.packed, item.central.size];
        item.descriptor =
            b"PK\x07\x08".iter().copied().chain(sums.iter().flat_map(|sum| sum.to_le_bytes())).collect();
        item
    }

    pub(crate) fn mode(self, mode: u32) -> Self {
        self.central(|header| header.attributes = mode << 16)
    }

    fn local_bytes(&self) -> Vec<u8> {
        let header = &self.local;
        let mut bytes = header.mark.to_vec();
        bytes.extend(header.version.to_le_bytes());
        header.shared(&mut bytes);
        bytes.extend(u16::try_from(header.name.len()).unwrap().to_le_bytes());
        bytes.extend(u16::try_from(header.extra.len()).unwrap().to_le_bytes());
        bytes.extend(&header.name);
        bytes.extend(&header.extra);
        bytes.extend(&self.data);
        bytes.extend(&self.descriptor);
        bytes
    }

    fn central_bytes(&self, offset: u32) -> Vec<u8> {
        let header = &self.central;
        let mut bytes = header.mark.to_vec();
        bytes.extend((3_u16 << 8 | 20).to_le_bytes());
        bytes.extend(header.version.to_le_bytes());
        header.shared(&mut bytes);
        for length in [header.name.len(), header.extra.len(), header.comment.len()] {
            bytes.extend(u16::try_from(length).unwrap().to_le_bytes());
        }
        bytes.extend(header.disk.to_le_bytes());
        bytes.extend(header.internal.to_le_bytes());
        bytes.extend(header.attributes.to_le_bytes());
        bytes.extend(header.offset.unwrap_or(offset).to_le_bytes());
        bytes.extend(&header.name);
        bytes.extend(&header.extra);
        bytes.extend(&header.comment);
        bytes
    }
}

impl Header {
    fn shared(&self, bytes: &mut Vec<u8>) {
        bytes.extend(self.flags.to_le_bytes());
        bytes.extend(self.method.to_le_bytes());
        for field in [self.time, self.crc, self.packed, self.size] {
            bytes.extend(field.to_le_bytes());
        }
    }
}

/// The end record; `None` means the actual value.
#[derive(Clone, Default)]
pub(crate) struct End {
    pub(crate) disk: u16,
    pub(crate) directory_disk: u16,
    pub(crate) on_disk: Option<u16>,
    pub(crate) entries: Option<u16>,
    pub(crate) size: Option<u32>,
    pub(crate) offset: Option<u32>,
    pub(crate) comment: Vec<u8>,
    pub(crate) comment_length: Option<u16>,
}

#[derive(Clone, Default)]
pub(crate) struct Zip {
    pub(crate) prefix: Vec<u8>,
    /// Whether offsets count from the prefix's end.
    pub(crate) unadjusted: bool,
    pub(crate) items: Vec<Item>,
    pub(crate) before_directory: Vec<u8>,
    pub(crate) after_directory: Vec<u8>,
    pub(crate) end: End,
    pub(crate) suffix: Vec<u8>,
}

impl Zip {
    /// An archive with a valid page.
    pub(crate) fn app() -> Self {
        Self::default().item(Item::deflated(b"index.html", b"<!doctype html><title>App</title><p>Hello"))
    }

    pub(crate) fn item(mut self, item: Item) -> Self {
        self.items.push(item);
        self
    }

    pub(crate) fn file(self, name: impl AsRef<[u8]>, content: impl AsRef<[u8]>) -> Self {
        self.item(Item::deflated(name.as_ref(), content.as_ref()))
    }

    pub(crate) fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.prefix.clone();
        let base = if self.unadjusted { self.prefix.len() } else { 0 };
        let mut directory = Vec::new();
        let mut count = 0_u16;
        for item in &self.items {
            if item.present {
                bytes.extend(&item.gap);
            }
            let offset = u32::try_from(bytes.len() - base).unwrap();
            if item.present {
                bytes.extend(item.local_bytes());
            }
            if item.listed {
                count += 1;
                directory.extend(item.central_bytes(offset));
            }
        }
        bytes.extend(&self.before_directory);
        let offset = u32::try_from(bytes.len() - base).unwrap();
        let size = u32::try_from(directory.len()).unwrap();
        bytes.extend(directory);
        bytes.extend(&self.after_directory);
        let end = &self.end;
        bytes.extend(b"PK\x05\x06");
        let entries = end.entries.unwrap_or(count);
        for field in [end.disk, end.directory_disk, end.on_disk.unwrap_or(entries), entries] {
            bytes.extend(field.to_le_bytes());
        }
        bytes.extend(end.size.unwrap_or(size).to_le_bytes());
        bytes.extend(end.offset.unwrap_or(offset).to_le_bytes());
        let comment = end.comment_length.unwrap_or(u16::try_from(end.comment.len()).unwrap());
        bytes.extend(comment.to_le_bytes());
        bytes.extend(&end.comment);
        bytes.extend(&self.suffix);
        bytes
    }
}

pub(crate) fn deflate(content: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

pub(crate) fn check(bytes: &[u8], limits: &Limits) -> Verdict {
    // Time does not advance, so refusals do not depend on the machine.
    let clock = ManualClock::new(chrono::DateTime::UNIX_EPOCH);
    bundle::check(&mut Cursor::new(bytes), limits, &clock, Duration::from_secs(1)).unwrap()
}

/// The findings of a refused bundle.
pub(crate) fn refused(bytes: &[u8]) -> Vec<Finding> {
    match check(bytes, &Limits::DEFAULT) {
        Verdict::Refused(findings) => findings,
        Verdict::Accepted(_) => Vec::new(),
    }
}

/// An accepted bundle.
pub(crate) fn accepted(bytes: &[u8]) -> Accepted {
    match check(bytes, &Limits::DEFAULT) {
        Verdict::Accepted(accepted) => *accepted,
        Verdict::Refused(findings) => panic!("refused: {findings:?}"),
    }
}

/// Builds an extra field.
pub(crate) fn extra(id: u16, value: &[u8]) -> Vec<u8> {
    let length = u16::try_from(value.len()).unwrap();
    id.to_le_bytes().into_iter().chain(length.to_le_bytes()).chain(value.iter().copied()).collect()
}
