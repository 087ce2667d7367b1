//! Arbitrary bytes: a check never panics, and its result depends on the bytes alone.

use std::io::Cursor;

use bundle::{Limits, Verdict};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::build::{Item, Zip, check, extra};

const LIMITS: Limits = Limits { compressed: 1 << 20, expanded: 1 << 20, files: 50, file: 1 << 19, depth: 8 };

/// Checks twice; an accepted bundle's contents can be read.
fn same_twice(bytes: &[u8]) {
    match (check(bytes, &LIMITS), check(bytes, &LIMITS)) {
        (Verdict::Refused(first), Verdict::Refused(second)) => {
            assert_eq!(first, second);
            assert!(!first.is_empty() && first.len() <= bundle::MAX_FINDINGS && first.is_sorted());
        }
        (Verdict::Accepted(first), Verdict::Accepted(second)) => {
            let digests = |files: &[bundle::File]| files.iter().map(|file| file.digest).collect::<Vec<_>>();
            assert_eq!(digests(&first.files), digests(&second.files));
            for file in &first.files {
                let mut archive = Cursor::new(bytes);
                let count =
                    std::io::copy(&mut file.open(&mut archive).unwrap(), &mut std::io::sink()).unwrap();
                assert_eq!(count, file.size);
            }
        }
        (first, second) => panic!("{first:?} and {second:?}"),
    }
}

fn base() -> Zip {
    let time = extra(0x5455, &[1, 0, 0, 0, 0]);
    Zip::app()
        .file("app.js", "console.log('hello hello hello hello')")
        .item(Item::deflated("ä/b.css".as_bytes(), b"p{}p{}p{}p{}").streamed())
        .item(Item::stored(b"img/", b"").mode(0o040_755))
        .item(Item::stored(b"img/a.svg", b"<svg xmlns='http://www.w3.org/2000/svg'><path d='M0 0'/></svg>"))
        .item(Item::deflated(b"c.txt", b"text").both(|header| header.extra = time.clone()))
}

/// Document parts that parsers treat specially.
const PARTS: &[&str] = &[
    "<!doctype html>",
    "<svg>",
    "</svg>",
    "<math>",
    "<script>",
    "</script>",
    "<script type=module>",
    "<!--",
    "-->",
    "<![CDATA[",
    "]]>",
    "<template>",
    "</template>",
    "<table>",
    "<tr>",
    "<td>",
    "</table>",
    "<a href=x>",
    "</a>",
    "<b>",
    "</b>",
    "<p>",
    "</p>",
    "<select>",
    "<option>",
    "<frameset>",
    "<noscript>",
    "</noscript>",
    "<style>",
    "</style>",
    "<title>",
    "<textarea>",
    "<foreignObject>",
    "<annotation-xml encoding='text/html'>",
    "<mi>",
    "<body>",
    "<html a=b>",
    "<form>",
    "<iframe srcdoc='&lt;p>",
    "'",
    "\"",
    ">",
    "<",
    "&amp;",
    "&#0;",
    "\0",
    "\r\n",
    "text",
    "<?xml version='1.0'?>",
    "<!DOCTYPE svg [",
    "]>",
    "/>",
    "<base href=/>",
    "<meta charset=utf-8>",
    "é",
    "{",
    "}",
    "\"schema_version\": 1",
    ",",
    "[",
    "]",
    ":",
    "\"bindings\"",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_bytes_have_a_result(bytes in vec(any::<u8>(), 0..600)) {
        same_twice(&bytes);
    }

    #[test]
    fn changed_bytes_of_an_archive_have_a_result(changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..6)) {
        let mut bytes = base().bytes();
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        same_twice(&bytes);
    }

    #[test]
    fn cut_copied_and_inserted_parts_have_a_result(
        from in any::<prop::sample::Index>(),
        to in any::<prop::sample::Index>(),
        at in any::<prop::sample::Index>(),
        cut in any::<bool>(),
        more in vec(any::<u8>(), 0..30),
    ) {
        let mut bytes = base().bytes();
        let (from, to, at) = (from.index(bytes.len()), to.index(bytes.len()), at.index(bytes.len()));
        let part = bytes[from.min(to)..from.max(to)].to_vec();
        if cut {
            bytes.drain(from.min(to)..from.max(to));
        }
        let at = at.min(bytes.len());
        bytes.splice(at..at, part.into_iter().chain(more));
        same_twice(&bytes);
    }

    #[test]
    fn any_names_have_a_result(names in vec(".{0,12}", 1..8)) {
        let zip = names.iter().fold(Zip::app(), |zip, name| zip.file(name, "x"));
        same_twice(&zip.bytes());
    }

    #[test]
    fn any_documents_have_a_result(
        parts in vec(prop::sample::select(PARTS), 0..40),
        name in prop::sample::select(&["a.html", "a.svg", "a.xml", "a.xhtml", "service.app.json"][..]),
    ) {
        same_twice(&Zip::app().file(name, parts.concat()).bytes());
    }

    #[test]
    fn headers_with_any_fields_have_a_result(
        fields in (any::<u16>(), 0_u16..110, any::<u32>(), any::<u32>(), any::<u32>(), any::<u32>()),
        extra in vec(any::<u8>(), 0..40),
        both in any::<bool>(),
    ) {
        let (flags, method, crc, packed, size, attributes) = fields;
        let change = |header: &mut crate::build::Header| {
            (header.flags, header.method, header.crc) = (flags, method, crc);
            (header.packed, header.size, header.attributes) = (packed, size, attributes);
            header.extra.clone_from(&extra);
        };
        let mut zip = base();
        change(&mut zip.items[1].central);
        if both {
            change(&mut zip.items[1].local);
        }
        same_twice(&zip.bytes());
    }
}
