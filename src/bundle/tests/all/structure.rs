//! Archives with several interpretations or none.

use bundle::Code;

use crate::build::{End, Item, Zip, deflate, extra};
use crate::hostile::{Row, all_are_refused, row};

const TEXT: &[u8] = b"body{color:red}body{color:red}body{color:red}";

/// A bundle with the page and a changed second file.
fn second(change: impl FnOnce(Item) -> Item) -> Vec<u8> {
    Zip::app().item(change(Item::deflated(b"a.css", TEXT))).bytes()
}

fn end(end: End) -> Vec<u8> {
    Zip::app().with(|zip| zip.end = end).bytes()
}

fn app(change: impl FnOnce(&mut Zip)) -> Vec<u8> {
    Zip::app().file("a.css", TEXT).with(change).bytes()
}

/// A header for an entry that the directory does not list.
fn unlisted() -> Vec<u8> {
    app(|zip| zip.items[1].listed = false)
}

pub(crate) fn rows() -> Vec<Row> {
    [no_zip(), ends(), headers(), extras(), overlaps(), encryption(), methods(), sums()]
        .into_iter()
        .flatten()
        .collect()
}

fn no_zip() -> Vec<Row> {
    let whole = Zip::app().bytes();
    let texts: [(&str, &[u8]); 9] = [
        ("nothing", b""),
        ("gzip", b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03"),
        ("7z", b"7z\xbc\xaf\x27\x1c\x00\x04 and so on"),
        ("rar", b"Rar!\x1a\x07\x01\x00 and so on"),
        ("html", b"<!doctype html><title>x</title>"),
        ("a local header alone", b"PK\x03\x04\x14\x00\x00\x00\x00\x00"),
        ("21 bytes of an end record", b"PK\x05"),
        ("zeros", &[0; 64]),
        ("a mark of a spanned archive", b"PK\x07\x08PK\x03\x04 and so on and on"),
    ];
    let mut tar = vec![0; 1024];
    tar[257..262].copy_from_slice(b"ustar");
    let mut rows: Vec<Row> =
        texts.iter().map(|(what, text)| row(*what, Code::NotAZip, text.to_vec())).collect();
    rows.push(row("tar", Code::NotAZip, tar));
    for (what, cut) in [
        ("an end record without its last byte", 1),
        ("an end record without its last 18 bytes", 18),
        ("an end record of one byte", 21),
    ] {
        rows.push(row(what, Code::NotAZip, whole[..whole.len() - cut].to_vec()));
    }
    rows.push(row("cut before the end record", Code::NotAZip, whole[..whole.len() - 22].to_vec()));
    rows.push(row("cut in the middle", Code::NotAZip, whole[..whole.len() / 2].to_vec()));
    rows
}

fn ends() -> Vec<Row> {
    let whole = Zip::app().bytes();
    let twice = [whole.clone(), whole.clone()].concat();
    let zip64_locator = [b"PK\x06\x07".as_slice(), &[0; 16]].concat();
    let zip64_end = [b"PK\x06\x06".as_slice(), &[0; 52], &zip64_locator].concat();
    let hidden = |mark: &[u8]| {
        let value = extra(0xa11e, &[mark, &[0; 18]].concat());
        second(|item| item.central(|header| header.extra = value))
    };
    let bytes = [
        ("a comment", end(End { comment: b"hi".to_vec(), ..End::default() })),
        (
            "a comment with an end record",
            end(End { comment: whole[whole.len() - 22..].to_vec(), ..End::default() }),
        ),
        ("a comment that is missing", end(End { comment_length: Some(3), ..End::default() })),
        (
            "a comment of another length",
            end(End { comment: vec![b' '; 9], comment_length: Some(4), ..End::default() }),
        ),
        ("the mark of an end record after the archive", app(|zip| zip.suffix = b"PK\x05\x06".to_vec())),
        ("data after the archive", app(|zip| zip.suffix = b"\n".to_vec())),
        ("a page after the archive", app(|zip| zip.suffix = b"<script>alert(1)</script>".to_vec())),
        ("zeros after the archive", app(|zip| zip.suffix = vec![0; 512])),
        ("two archives", twice.clone()),
        ("three archives", [twice, whole.clone()].concat()),
        ("data before the archive", app(|zip| zip.prefix = b"#!/bin/sh\n".to_vec())),
        (
            "data before, offsets not adjusted",
            app(|zip| {
                zip.prefix = b"GIF89a".to_vec();
                zip.unadjusted = true;
            }),
        ),
        ("a PDF before the archive", app(|zip| zip.prefix = b"%PDF-1.7\n".to_vec())),
        ("disk 1", end(End { disk: 1, ..End::default() })),
        ("a directory on disk 1", end(End { directory_disk: 1, ..End::default() })),
        ("fewer entries on the disk", end(End { on_disk: Some(0), ..End::default() })),
        ("an entry too few", app(|zip| zip.end.entries = Some(1))),
        ("an entry too many", app(|zip| zip.end.entries = Some(3))),
        ("no entries, but a directory", app(|zip| zip.end.entries = Some(0))),
        ("65,535 entries", app(|zip| zip.end.entries = Some(u16::MAX))),
        ("a size of ZIP64", app(|zip| zip.end.size = Some(u32::MAX))),
        ("an offset of ZIP64", app(|zip| zip.end.offset = Some(u32::MAX))),
        ("a larger directory", app(|zip| zip.end.size = Some(110))),
        ("a smaller directory", app(|zip| zip.end.size = Some(40))),
        ("a directory of no bytes", app(|zip| zip.end.size = Some(0))),
        ("a directory that begins elsewhere", app(|zip| zip.end.offset = Some(3))),
        ("a directory at the largest offset", app(|zip| zip.end.offset = Some(u32::MAX - 1))),
        ("data between the entries and the directory", app(|zip| zip.before_directory = b"x".to_vec())),
        ("data between the directory and its end", app(|zip| zip.after_directory = b"x".to_vec())),
        ("a ZIP64 locator", app(|zip| zip.after_directory = zip64_locator.clone())),
        ("a ZIP64 end record", app(|zip| zip.after_directory = zip64_end.clone())),
        (
            "a ZIP64 locator within the directory's size",
            app(|zip| {
                zip.after_directory = zip64_locator.clone();
                zip.end.size = Some(u32::try_from(directory_bytes(zip) + 20).unwrap());
            }),
        ),
        (
            "a signature of the directory",
            app(|zip| {
                zip.after_directory = b"PK\x05\x05\x02\x00ab".to_vec();
                zip.end.size = Some(u32::try_from(directory_bytes(zip) + 8).unwrap());
            }),
        ),
        (
            "an archive extra record before the directory",
            app(|zip| {
                zip.before_directory = b"PK\x06\x08\x00\x00\x00\x00".to_vec();
            }),
        ),
        (
            "a ZIP64 locator in a name and an extra field",
            Zip::app()
                .item(Item::stored(b"aPK", TEXT).both(|header| header.extra = extra(0x0706, &[0; 14])))
                .bytes(),
        ),
        ("an end record in an extra field", hidden(b"PK\x05\x06")),
        ("a ZIP64 end record in an extra field", hidden(b"PK\x06\x06")),
        ("a ZIP64 locator in an extra field", hidden(b"PK\x06\x07")),
        ("an end record in a name", Zip::app().item(Item::stored(b"PK\x05\x06.css", TEXT)).bytes()),
    ];
    bytes.into_iter().map(|(what, bytes)| row(what, Code::ZipMalformed, bytes)).collect()
}

/// The directory's bytes in the archive with two files.
fn directory_bytes(zip: &Zip) -> usize {
    zip.items.iter().map(|item| 46 + item.central.name.len()).sum()
}

fn headers() -> Vec<Row> {
    let streamed = |change: fn(&mut Item)| {
        second(|item| {
            let mut item = item.streamed();
            change(&mut item);
            item
        })
    };
    let bytes = [
        ("an entry that is not listed", unlisted()),
        ("a gap between entries", app(|zip| zip.items[1].gap = b"hidden".to_vec())),
        ("a gap before the first entry", app(|zip| zip.items[0].gap = b"hidden".to_vec())),
        ("no local header", app(|zip| zip.items[1].local.mark = *b"PK\x03\x05")),
        ("no entry in the directory", app(|zip| zip.items[1].central.mark = *b"PK\x01\x03")),
        ("another local name", second(|item| item.local(|header| header.name = b"b.css".to_vec()))),
        ("a longer local name", second(|item| item.local(|header| header.name = b"a.css/".to_vec()))),
        (
            "another case of the local name",
            second(|item| item.local(|header| header.name = b"A.css".to_vec())),
        ),
        ("another local method", second(|item| item.local(|header| header.method = 0))),
        ("other local flags", second(|item| item.local(|header| header.flags = 2))),
        (
            "a descriptor that only the directory announces",
            second(|item| item.central(|header| header.flags = 8)),
        ),
        ("another local checksum", second(|item| item.local(|header| header.crc ^= 1))),
        ("another local packed size", second(|item| item.local(|header| header.packed += 1))),
        ("another local size", second(|item| item.local(|header| header.size += 1))),
        ("no local sizes without a descriptor", second(|item| item.local(|header| header.packed = 0))),
        ("another local version", second(|item| item.local(|header| header.version = 45))),
        ("another local time", second(|item| item.local(|header| header.time += 1))),
        ("local sizes of ZIP64", second(|item| item.local(|header| header.size = u32::MAX))),
        ("sizes of ZIP64", second(|item| item.both(|header| header.size = u32::MAX))),
        ("a packed size of ZIP64", second(|item| item.both(|header| header.packed = u32::MAX))),
        (
            "an offset of ZIP64 in the directory",
            second(|item| item.central(|header| header.offset = Some(u32::MAX))),
        ),
        ("an offset after the archive", second(|item| item.central(|header| header.offset = Some(900_000)))),
        ("an entry on disk 1", second(|item| item.central(|header| header.disk = 1))),
        ("an entry with a comment", second(|item| item.central(|header| header.comment = b"x".to_vec()))),
        ("version 47", second(|item| item.both(|header| header.version = 47))),
        ("version 51", second(|item| item.both(|header| header.version = 51))),
        ("the highest version", second(|item| item.both(|header| header.version = u16::MAX))),
        ("a patch", second(|item| item.both(|header| header.flags = 1 << 5))),
        ("a flag of enhanced compression", second(|item| item.both(|header| header.flags = 1 << 12))),
        ("a reserved flag", second(|item| item.both(|header| header.flags = 1 << 7))),
        ("the highest flag", second(|item| item.both(|header| header.flags = 1 << 15))),
        ("a descriptor that is missing", streamed(|item| item.descriptor.clear())),
        ("a descriptor without its mark", streamed(|item| drop(item.descriptor.drain(..4)))),
        ("a descriptor of ZIP64", streamed(|item| item.descriptor.extend([0; 8]))),
        ("a descriptor with another checksum", streamed(|item| item.descriptor[4] ^= 1)),
        ("a descriptor with another packed size", streamed(|item| item.descriptor[8] ^= 1)),
        ("a descriptor with another size", streamed(|item| item.descriptor[12] ^= 1)),
        ("local sizes that differ from the descriptor", streamed(|item| item.local.size = 7)),
        (
            "a descriptor that is not announced",
            streamed(|item| {
                *item = item.clone().both(|header| header.flags = 0);
                (item.local.crc, item.local.packed) = (item.central.crc, item.central.packed);
                item.local.size = item.central.size;
            }),
        ),
        ("a larger packed size", second(|item| item.both(|header| header.packed += 4000))),
        ("a smaller packed size", second(|item| item.both(|header| header.packed -= 1))),
    ];
    bytes.into_iter().map(|(what, bytes)| row(what, Code::ZipMalformed, bytes)).collect()
}

fn extras() -> Vec<Row> {
    let both = |value: Vec<u8>| second(|item| item.both(|header| header.extra = value.clone()));
    let local = |value: Vec<u8>| second(|item| item.local(|header| header.extra = value));
    let central = |value: Vec<u8>| second(|item| item.central(|header| header.extra = value));
    let time = extra(0x5455, &[1, 0, 0, 0, 0]);
    let bytes = [
        ("ZIP64 field", both(extra(1, &[0; 16]))),
        ("ZIP64 field in the directory", central(extra(1, &[0; 8]))),
        ("ZIP64 field in the local header", local(extra(1, &[0; 16]))),
        ("empty ZIP64 field", both(extra(1, &[]))),
        ("field longer than its bytes", both(vec![0x55, 0x54, 9, 0, 1])),
        ("field without a length", both(vec![0x55, 0x54, 0])),
        ("field of a byte", both(vec![0])),
        ("time twice", both([time.clone(), time.clone()].concat())),
        ("unknown field twice", local([extra(0x1234, b"a"), extra(0x1234, b"b")].concat())),
        ("bytes after the last field", central([time, vec![0, 0]].concat())),
        ("time of no bytes", both(extra(0x5455, &[]))),
        ("time of no bytes in the local header", local(extra(0x5455, &[]))),
        ("time of two bytes", central(extra(0x5455, &[1, 0]))),
        ("time of four times", both(extra(0x5455, &[0; 17]))),
        ("attributes of libarchive", both(extra(0x6c78, b"\x07\x1e\x03\0\0\0\0\xff\xa1"))),
        ("attributes of libarchive, local", local(extra(0x6c78, b"\x07\x1e\x03\0\0\0\0\xff\xa1"))),
        ("attributes of libarchive, central", central(extra(0x6c78, b"\x07\x1e\x03\0\0\0\0\xff\x41"))),
        ("a name of the Macintosh", both(extra(0x2605, b"ZPIT\x09evil.htmlTEXTTEXT"))),
        ("a name of the Macintosh, local", local(extra(0x07c8, b"JLEE evil.html"))),
        ("a name of Xceed", both(extra(0x554e, b"NUCX\x01\0\0\0e\0"))),
        ("a comment in Unicode", central(extra(0x6375, &[1, 0, 0, 0, 0, b'x']))),
        ("attributes of OS/2", both(extra(0x0009, &[0; 4]))),
        ("a signature", both(extra(0x0014, &[0; 4]))),
        ("an unknown field", both(extra(0x4242, b"x"))),
        ("an unknown field of no bytes, local", local(extra(0x4242, b""))),
        ("a Unicode name without a name", both(extra(0x7075, &[1, 0]))),
    ];
    bytes.into_iter().map(|(what, bytes)| row(format!("extra: {what}"), Code::ZipMalformed, bytes)).collect()
}

fn overlaps() -> Vec<Row> {
    let shared = |count: u32| {
        let mut zip = Zip::app();
        for number in 0..count {
            let item = Item::stored(format!("{number}.css").as_bytes(), TEXT);
            let first = u32::try_from(Zip::app().bytes().len() - 22 - 56).unwrap();
            let mut item = item.central(|header| header.offset = Some(first));
            item.present = number == 0;
            zip = zip.item(item);
        }
        zip.bytes()
    };
    // The inner header is in the outer entry's data.
    let inner = Zip::default().item(Item::stored(b"b.css", TEXT)).bytes();
    let inner = &inner[..30 + 5 + TEXT.len()];
    let mut quoted = Zip::app().item(Item::stored(b"a.css", inner));
    let start = u32::try_from(Zip::app().bytes().len() - 22 - 56 + 30 + 5).unwrap();
    let mut item = Item::stored(b"b.css", TEXT).central(|header| header.offset = Some(start));
    item.present = false;
    quoted = quoted.item(item);
    let mut same = Item::deflated(b"index.html", b"<!doctype html><title>App</title><p>Hello");
    same = same.central(|header| header.offset = Some(0));
    same.present = false;
    let bytes = [
        ("two entries with one body", shared(2)),
        ("two hundred entries with one body", shared(200)),
        ("a header inside data", quoted.bytes()),
        ("an entry listed twice", Zip::app().item(same).bytes()),
    ];
    bytes.into_iter().map(|(what, bytes)| row(what, Code::ZipOverlap, bytes)).collect()
}

fn encryption() -> Vec<Row> {
    let flags = [
        ("ZipCrypto", 1),
        ("strong encryption", 1 | 1 << 6),
        ("a masked directory", 1 << 13),
        ("flag 6", 1 << 6),
    ];
    let mut rows: Vec<Row> = flags
        .into_iter()
        .map(|(what, flags)| {
            row(what, Code::EncryptedEntry, second(|item| item.both(|header| header.flags = flags)))
        })
        .collect();
    rows.push(row("method 99", Code::EncryptedEntry, second(|item| item.both(|header| header.method = 99))));
    for (what, id) in [("AES field", 0x9901), ("field of strong encryption", 0x0017)] {
        let value = extra(id, &[1, 0, b'A', b'E', 3, 8, 0]);
        let bytes = second(|item| item.both(|header| header.extra = value.clone()));
        rows.push(row(what, Code::EncryptedEntry, bytes));
        let bytes = second(|item| item.local(|header| header.extra = value));
        rows.push(row(format!("{what}, local"), Code::EncryptedEntry, bytes));
    }
    rows
}

fn methods() -> Vec<Row> {
    let methods = [1, 2, 6, 7, 9, 10, 12, 14, 18, 19, 20, 93, 94, 95, 96, 97, 98, 255, u16::MAX];
    methods
        .into_iter()
        .map(|method| {
            let bytes = second(|item| item.both(|header| header.method = method));
            row(format!("method {method}"), Code::UnsupportedCompression, bytes)
        })
        .collect()
}

fn sums() -> Vec<Row> {
    let packed = deflate(TEXT);
    let longer = [packed.as_slice(), b"rest"].concat();
    let twice = [packed.clone(), packed.clone()].concat();
    let repack = |data: Vec<u8>| second(|item| item.packed(8, data));
    let mut broken = packed.clone();
    broken[0] = 0b111;
    let crc = [
        ("a wrong checksum", second(|item| item.both(|header| header.crc ^= 1))),
        (
            "a wrong checksum of a stored file",
            app(|zip| {
                zip.items[1] = Item::stored(b"a.css", TEXT).both(|header| header.crc ^= 1);
            }),
        ),
        ("a wrong checksum in a descriptor", second(|item| item.both(|header| header.crc ^= 1).streamed())),
        (
            "another content of the same size",
            app(|zip| {
                zip.items[1] = Item::stored(b"a.css", TEXT);
                zip.items[1].data[3] ^= 1;
            }),
        ),
        ("a block of an unknown type", repack(broken)),
    ];
    let size = [
        ("a larger size", second(|item| item.both(|header| header.size += 1))),
        ("a smaller size", second(|item| item.both(|header| header.size -= 1))),
        ("no size", second(|item| item.both(|header| header.size = 0))),
        ("compressed data that ends early", repack(packed[..packed.len() - 2].to_vec())),
        ("no compressed data", repack(Vec::new())),
        ("data after the compressed content", repack(longer)),
        ("two compressed contents", repack(twice)),
        (
            "a stored file of two sizes",
            Zip::app().item(Item::stored(b"a.css", TEXT).both(|header| header.size += 1)).bytes(),
        ),
    ];
    let crc = crc.into_iter().map(|(what, bytes)| row(what, Code::CrcMismatch, bytes));
    crc.chain(size.into_iter().map(|(what, bytes)| row(what, Code::SizeMismatch, bytes))).collect()
}

#[test]
fn archives_with_another_structure_are_rejected() {
    all_are_refused(&rows());
}

#[test]
fn all_damaged_entries_are_named() {
    let bytes = Zip::app()
        .item(Item::deflated(b"b.css", TEXT).both(|header| header.crc ^= 1))
        .item(Item::deflated(b"a.css", TEXT).both(|header| header.crc ^= 1))
        .item(Item::deflated(b"c.css", TEXT).both(|header| header.size -= 1))
        .bytes();
    let found: Vec<_> =
        crate::build::refused(&bytes).into_iter().map(|one| (one.code, one.path.unwrap())).collect();
    let expected = [
        (Code::CrcMismatch, "a.css".to_owned()),
        (Code::CrcMismatch, "b.css".to_owned()),
        (Code::SizeMismatch, "c.css".to_owned()),
    ];
    assert_eq!(found, expected);
}
