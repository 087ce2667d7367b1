//! Archives that readers interpret differently: readers that stream, readers that begin at the end, and readers that
//! trust one of two fields.

use bundle::Code;

use crate::build::{Item, Zip, extra};
use crate::hostile::{Row, all_are_refused, row};

const TEXT: &[u8] = b"p{color:red}p{color:red}p{color:red}";

fn second(change: impl FnOnce(Item) -> Item) -> Vec<u8> {
    Zip::app().item(change(Item::deflated(b"a.css", TEXT))).bytes()
}

pub(crate) fn rows() -> Vec<Row> {
    [streams(), stored_streams(), directories(), marks(), fields(), names()].into_iter().flatten().collect()
}

/// A streaming reader finds another entry than the directory lists.
fn streams() -> Vec<Row> {
    let hidden = Zip::default().item(Item::stored(b"hidden.html", b"<p onclick=x>")).bytes();
    let entry = &hidden[..30 + 11 + 13];
    let bytes = [
        ("a hidden entry before the first", Zip::app().with(|zip| zip.items[0].gap = entry.to_vec()).bytes()),
        (
            "a hidden entry after the last",
            Zip::app().with(|zip| zip.before_directory = entry.to_vec()).bytes(),
        ),
        (
            "a hidden entry after a descriptor",
            second(|item| {
                let mut item = item.streamed();
                item.descriptor.extend(entry);
                item
            }),
        ),
        (
            "two descriptors",
            second(|item| {
                let mut item = item.streamed();
                item.descriptor = item.descriptor.repeat(2);
                item
            }),
        ),
        (
            "an entry that is listed and replaced in the stream",
            Zip::app()
                .item(Item::deflated(b"a.css", TEXT))
                .item(Item::deflated(b"a.css", b"other"))
                .with(|zip| zip.items[2].listed = false)
                .bytes(),
        ),
    ];
    bytes.into_iter().map(|(what, bytes)| row(format!("stream: {what}"), Code::ZipMalformed, bytes)).collect()
}

/// A streaming reader ends a stored file at the first header mark.
fn stored_streams() -> Vec<Row> {
    let hidden = Zip::default().item(Item::stored(b"hidden.html", b"<p onclick=x>")).bytes();
    let entry = &hidden[..30 + 11 + 13];
    let before = b"p{color:red}";
    let length = u32::try_from(before.len()).unwrap().to_le_bytes();
    let crc = crc32fast::hash(before).to_le_bytes();
    let descriptor = [&b"PK\x07\x08"[..], &crc, &length, &length].concat();
    let wide = [&b"PK\x07\x08"[..], &crc, &length, &[0; 4], &length, &[0; 4]].concat();
    let contents = [
        ("a descriptor and an entry", [before, descriptor.as_slice(), entry].concat()),
        ("a wide descriptor and an entry", [before, wide.as_slice(), entry].concat()),
        ("a descriptor and a directory", [before, descriptor.as_slice(), b"PK\x01\x02"].concat()),
        ("an entry", [before, entry].concat()),
        ("the mark of a descriptor", b"a PK\x07\x08".to_vec()),
        ("the mark of a directory", b"a PK\x01\x02 b".to_vec()),
        ("a mark after a half", b"a PKPK\x03\x04 b".to_vec()),
        ("a mark after a letter", b"a PPK\x03\x04 b".to_vec()),
        ("a mark between two pieces", [&[b'x'; 32 * 1024 - 2][..], b"PK\x07\x08"].concat()),
    ];
    let mut rows = Vec::new();
    for (what, content) in contents {
        let item = Item::stored(b"a.css", &content).streamed();
        let mut sized = item.clone();
        (sized.local.crc, sized.local.packed, sized.local.size) =
            (item.central.crc, item.central.packed, item.central.size);
        for (sizes, item) in [("", item), (" with local sizes", sized)] {
            let what = format!("stream: {what} in a stored file{sizes}");
            rows.push(row(what, Code::ZipOverlap, Zip::app().item(item).bytes()));
        }
    }
    rows
}

/// End marks in fixed fields shortly before the end, and end records whose comment reaches the archive's end.
fn marks() -> Vec<Row> {
    let mut rows = Vec::new();
    for (what, low, high) in [
        ("an end record", 0x4b50_u16, 0x0605_u32),
        ("a ZIP64 end record", 0x4b50, 0x0606),
        ("a ZIP64 locator", 0x4b50, 0x0706),
    ] {
        let mark = high << 16 | u32::from(low);
        let fields = [
            ("the time", second(|item| item.both(|header| header.time = mark))),
            ("the attributes", {
                second(|item| {
                    item.central(|header| {
                        (header.internal, header.attributes) = (low, 0o100_644 << 16 | high);
                    })
                })
            }),
            ("the time and the checksum", {
                second(|item| {
                    item.both(|header| {
                        header.time = u32::from(low) << 16 | 0x5a21;
                        header.crc = 0x1234_0000 | high;
                    })
                })
            }),
            ("the checksum", second(|item| item.both(|header| header.crc = mark))),
        ];
        rows.extend(
            fields
                .into_iter()
                .map(|(field, bytes)| row(format!("mark: {what} in {field}"), Code::ZipMalformed, bytes)),
        );
        let text = [b"<p>".as_slice(), &mark.to_le_bytes()].concat();
        let short = Zip::default().item(Item::stored(b"index.html", &text)).bytes();
        rows.push(row(format!("mark: {what} before a short directory"), Code::ZipMalformed, short));
    }
    // A comment that reaches from an end record in the first file to the archive's end.
    let with = |comment: u16| {
        let text = [b"PK\x05\x06".as_slice(), &[0; 16], &comment.to_le_bytes(), b"text"].concat();
        let zip = Zip::app().item(Item::stored(b"a.txt", &text));
        zip.file("a-name-that-fills-the-bytes-before-the-end-record.css", "").bytes()
    };
    let bytes = with(0);
    let at = bytes.windows(4).position(|window| window == b"PK\x05\x06").unwrap();
    let bytes = with(u16::try_from(bytes.len() - at - 22).unwrap());
    rows.push(row("mark: an end record whose comment is the rest", Code::ZipMalformed, bytes));
    rows
}

/// Two directories or two end records.
fn directories() -> Vec<Row> {
    let (one, other) = (Zip::app().bytes(), Zip::app().file("a.css", TEXT).bytes());
    let directory = |bytes: &[u8]| {
        let at = bytes.windows(4).position(|window| window == b"PK\x01\x02").unwrap();
        bytes[at..bytes.len() - 22].to_vec()
    };
    let first = directory(&one);
    let bytes = [
        ("before the entries", Zip::app().with(|zip| zip.prefix = first.clone()).bytes()),
        ("before the directory", Zip::app().with(|zip| zip.before_directory = first.clone()).bytes()),
        ("after the directory", Zip::app().with(|zip| zip.after_directory = first.clone()).bytes()),
        (
            "both counted, one entry",
            Zip::app()
                .with(|zip| {
                    zip.after_directory = first.clone();
                    zip.end.size = Some(u32::try_from(first.len() * 2).unwrap());
                })
                .bytes(),
        ),
        ("an end record of another archive before", [&other[other.len() - 22..], &one].concat()),
        ("an end record of another archive after", [&one, &other[other.len() - 22..]].concat()),
        (
            "an end record in a comment that its length covers",
            Zip::app().with(|zip| zip.end.comment = other[other.len() - 22..].to_vec()).bytes(),
        ),
        ("a whole archive in a comment", Zip::app().with(|zip| zip.end.comment = other.clone()).bytes()),
    ];
    bytes
        .into_iter()
        .map(|(what, bytes)| row(format!("directory: {what}"), Code::ZipMalformed, bytes))
        .collect()
}

/// Duplicate fields that contradict each other.
fn fields() -> Vec<Row> {
    let zip64 = extra(1, &[36, 0, 0, 0, 0, 0, 0, 0, 36, 0, 0, 0, 0, 0, 0, 0]);
    let bytes = [
        ("encrypted only in the local header", second(|item| item.local(|header| header.flags = 1))),
        ("UTF-8 only in the local header", second(|item| item.local(|header| header.flags = 1 << 11))),
        ("UTF-8 only in the directory", second(|item| item.central(|header| header.flags = 1 << 11))),
        ("stored only in the directory", {
            second(|item| {
                item.central(|header| {
                    header.method = 0;
                    header.size = header.packed;
                })
            })
        }),
        ("a size of nothing in the directory", second(|item| item.central(|header| header.size = 0))),
        ("another checksum in the directory", second(|item| item.central(|header| header.crc ^= 1))),
        ("sizes of ZIP64 only in the local header", {
            second(|item| {
                item.local(|header| {
                    (header.packed, header.size) = (u32::MAX, u32::MAX);
                    header.extra = zip64.clone();
                })
            })
        }),
        ("sizes of ZIP64 beside true ones", second(|item| item.both(|header| header.extra = zip64.clone()))),
        (
            "a descriptor that only the local header announces",
            second(|item| item.local(|header| header.flags = 8)),
        ),
        ("the end of the archive as an offset", {
            second(|item| item.central(|header| header.offset = Some(u32::MAX - 40)))
        }),
    ];
    bytes.into_iter().map(|(what, bytes)| row(format!("field: {what}"), Code::ZipMalformed, bytes)).collect()
}

/// Entries with two names.
fn names() -> Vec<Row> {
    let unicode = |name: &[u8]| extra(0x7075, &[&[1, 0, 0, 0, 0][..], name].concat());
    let mut rows = Vec::new();
    for (what, name) in
        [("index.html", &b"index.html"[..]), ("nothing", b""), ("a longer name", b"a.css.html")]
    {
        let bytes = second(|item| item.both(|header| header.extra = unicode(name)));
        rows.push(row(format!("name: a Unicode name with {what}"), Code::UnsafePath, bytes));
    }
    for (what, local) in [("a folder", &b"a/.css"[..]), ("a NUL", b"a.cs\0"), ("nothing", b"")] {
        let bytes = second(|item| item.local(|header| header.name = local.to_vec()));
        rows.push(row(format!("name: a local name with {what}"), Code::ZipMalformed, bytes));
    }
    rows
}

#[test]
fn archives_that_readers_interpret_differently_are_rejected() {
    all_are_refused(&rows());
}
