//! Accepted archives in all permitted forms, and their contents.

use std::io::{Cursor, Read as _};

use crate::build::{Item, Zip, accepted, deflate, extra};

#[test]
fn an_accepted_bundle_lists_its_files_and_their_contents() {
    let large: Vec<u8> = (0..300_000_u32).flat_map(u32::to_le_bytes).collect();
    let zip = Zip::app().file("img/b.bin", &large).item(Item::stored(b"a.css", b"p{}"));
    let bytes = zip.item(Item::stored(b"img/", b"").mode(0o040_755)).bytes();
    let bundle = accepted(&bytes);
    let paths: Vec<&str> = bundle.files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(paths, ["a.css", "img/b.bin", "index.html"]);
    let mut archive = Cursor::new(&bytes);
    for (file, content) in bundle.files.iter().zip([b"p{}".as_slice(), &large]) {
        let mut read = Vec::new();
        file.open(&mut archive).unwrap().read_to_end(&mut read).unwrap();
        assert!(read == content, "{}", file.path);
        assert_eq!(file.size, u64::try_from(content.len()).unwrap());
        let digest = ring::digest::digest(&ring::digest::SHA256, content);
        assert_eq!(file.digest, digest.as_ref());
    }
    assert_eq!(bundle.size, u64::try_from(bytes.len()).unwrap());
    assert_eq!(bundle.expanded_size, bundle.files.iter().map(|file| file.size).sum::<u64>());
    assert!(!bundle.wasm && bundle.dropped.is_empty());
}

#[test]
fn an_archive_that_changes_after_the_check_is_an_error() {
    let mut bytes = Zip::app().item(Item::stored(b"a.css", b"p{color:red}")).bytes();
    let bundle = accepted(&bytes);
    let at = bytes.windows(5).position(|window| window == b"color").unwrap();
    bytes[at] ^= 1;
    let mut read = Vec::new();
    let mut archive = Cursor::new(&bytes);
    assert!(bundle.files[0].open(&mut archive).unwrap().read_to_end(&mut read).is_err());
}

#[test]
fn archives_of_common_writers_are_accepted() {
    let time = extra(0x5455, &[1, 0, 0, 0, 0]);
    let ids = extra(0x7875, &[1, 4, 0, 0, 0, 0, 4, 0, 0, 0, 0]);
    let same_name = extra(0x7075, &[&[1, 0, 0, 0, 0][..], b"a.css"].concat());
    let text = b"p{}p{}p{}p{}p{}";
    let css = || Item::deflated(b"a.css", text);
    let mut full = css().streamed();
    (full.local.crc, full.local.packed, full.local.size) =
        (full.central.crc, full.central.packed, full.central.size);
    for (what, item) in [
        ("a level of deflate", css().both(|header| header.flags = 1 << 1 | 1 << 2)),
        ("UTF-8 for an ASCII name", css().both(|header| header.flags = 1 << 11)),
        ("a descriptor", css().streamed()),
        ("a descriptor after a stored file", Item::stored(b"a.css", text).streamed()),
        ("a descriptor and local sizes", full),
        ("times and ids", css().both(|header| header.extra = [time.clone(), ids.clone()].concat())),
        ("another length of the local time", css().local(|header| header.extra = extra(0x5455, &[0; 13]))),
        ("the mark of a jar", css().local(|header| header.extra = extra(0xcafe, &[]))),
        ("times of NTFS", css().central(|header| header.extra = extra(0x000a, &[0; 32]))),
        ("the same Unicode name", css().both(|header| header.extra = same_name.clone())),
        ("alignment", css().local(|header| header.extra = extra(0xa11e, &[0; 6]))),
        ("alignment of Android", css().local(|header| header.extra = extra(0xd935, &[4, 0, 0, 0, 0, 0]))),
        ("an access list of NTFS", css().both(|header| header.extra = extra(0x4453, &[0; 24]))),
        ("times of old Info-ZIP", css().both(|header| header.extra = extra(0x5855, &[0; 8]))),
        ("ids of old Info-ZIP", css().local(|header| header.extra = extra(0x7855, &[0; 4]))),
        ("marks of headers in a stored file", Item::stored(b"a.txt", b"a PK\x03\x04 PK\x01\x02 PK\x07\x08")),
        ("marks of headers in a deflated stream", {
            Item::deflated(b"a.txt", b"a PK\x03\x04 PK\x01\x02 PK\x07\x08").streamed()
        }),
        ("almost a mark in a stored stream", Item::stored(b"a.txt", b"PPK\x03\x03PK\x03PKPK\x08").streamed()),
        ("version 46", css().both(|header| header.version = 46)),
        ("a Unix mode", css().mode(0o100_644)),
        ("an archive bit", css().central(|header| header.attributes = 0x20)),
        ("a folder of DOS", Item::stored(b"a/", b"").central(|header| header.attributes = 0x10)),
        ("a deflated folder", Item::stored(b"a/", b"").packed(8, deflate(b""))),
        ("an empty file", Item::stored(b"empty.txt", b"")),
        ("an empty deflated file", Item::deflated(b"empty.txt", b"")),
        ("version 45", css().both(|header| header.version = 45)),
    ] {
        let bytes = Zip::app().item(item.clone()).bytes();
        let files = accepted(&bytes).files.len();
        assert_eq!(files, 1 + usize::from(item.local.name.last() != Some(&b'/')), "{what}");
    }
}

/// A time or a checksum may match a mark by chance.
#[test]
fn signatures_in_irrelevant_fields_are_accepted() {
    for mark in [0x0605_4b50, 0x0606_4b50, 0x0706_4b50] {
        let first = Item::deflated(b"a.css", b"p{}").both(|header| header.time = mark);
        let zip = Zip::app().item(first.clone()).file("b.css", "q{}");
        assert_eq!(accepted(&zip.bytes()).files.len(), 3);
        let near = Zip::app().item(first);
        assert_eq!(crate::build::refused(&near.bytes())[0].code, bundle::Code::ZipMalformed);
    }
}

#[test]
fn the_order_of_the_directory_does_not_matter() {
    let mut items = Zip::app().file("a.css", "p{}").file("b.css", "q{}").items;
    let bytes = Zip { items: items.clone(), ..Zip::default() }.bytes();
    // The same body, listed in reverse order.
    let mut offset = 0;
    for item in &mut items {
        item.central.offset = Some(offset);
        offset += u32::try_from(30 + item.local.name.len() + item.data.len()).unwrap();
    }
    let body = items.clone().into_iter().map(|mut item| {
        item.listed = false;
        item
    });
    let listed = items.into_iter().rev().map(|mut item| {
        item.present = false;
        item
    });
    let backwards = Zip { items: body.chain(listed).collect(), ..Zip::default() }.bytes();
    assert_ne!(bytes, backwards);
    let digests = |bytes: &[u8]| accepted(bytes).files.iter().map(|file| file.digest).collect::<Vec<_>>();
    assert_eq!(digests(&bytes), digests(&backwards));
}
