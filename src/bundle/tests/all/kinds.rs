//! Archives and programs, detected by content and by name.

use bundle::{Code, media_type};

use crate::build::{End, Zip, accepted};
use crate::hostile::{Row, all_are_refused, row};

fn archive_with(content: impl AsRef<[u8]>) -> Vec<u8> {
    Zip::app().file("data.bin", content).bytes()
}

/// Bytes with a mark at a position.
fn marked(length: usize, at: usize, mark: &[u8]) -> Vec<u8> {
    let mut bytes = vec![b' '; length];
    bytes[at..at + mark.len()].copy_from_slice(mark);
    bytes
}

pub(crate) fn rows() -> Vec<Row> {
    [archives(), trailers(), programs(), extensions()].into_iter().flatten().collect()
}

fn archives() -> Vec<Row> {
    let zip = Zip::app().bytes();
    let cpio = [&b"\xc7\x71"[..], &[0; 18], &[4, 0], &[0; 4], b"abc\0"].concat();
    let cpio_of_the_other_order = [&b"\x71\xc7"[..], &[0; 18], &[0, 4], &[0; 4], b"abc\0"].concat();
    let contents: [(&str, Vec<u8>); 23] = [
        ("zip", zip.clone()),
        ("empty zip", Zip::default().bytes()),
        ("spanned zip", b"PK\x07\x08PK\x03\x04".to_vec()),
        ("gzip", b"\x1f\x8b\x08\x00".to_vec()),
        ("bzip2", b"BZh91AY&SY".to_vec()),
        ("empty bzip2", b"BZh9\x17\x72\x45\x38\x50\x90".to_vec()),
        ("xz", b"\xfd7zXZ\x00".to_vec()),
        ("7z", b"7z\xbc\xaf\x27\x1c".to_vec()),
        ("rar 4", b"Rar!\x1a\x07\x00".to_vec()),
        ("rar 5", b"Rar!\x1a\x07\x01\x00".to_vec()),
        ("zstd", b"\x28\xb5\x2f\xfd".to_vec()),
        ("skippable zstd", b"\x50\x2a\x4d\x18".to_vec()),
        ("lz4", b"\x04\x22\x4d\x18".to_vec()),
        ("tar", marked(512, 257, b"ustar\0")),
        ("GNU tar", marked(512, 257, b"ustar  \0")),
        ("ar", b"!<arch>\n".to_vec()),
        ("cab", b"MSCF\x00\x00\x00\x00".to_vec()),
        ("cpio newc", b"070701".to_vec()),
        ("cpio odc", b"070707".to_vec()),
        ("binary cpio", cpio),
        ("binary cpio of the other order", cpio_of_the_other_order),
        ("rpm", b"\xed\xab\xee\xdb".to_vec()),
        ("ISO image", marked(0x9100, 0x8001, b"CD001")),
    ];
    contents
        .into_iter()
        .map(|(what, content)| row(format!("{what} inside"), Code::NestedArchive, archive_with(content)))
        .collect()
}

fn trailers() -> Vec<Row> {
    let zip = Zip::app().bytes();
    let gif = b"GIF89a and some pixels".to_vec();
    let adjusted = Zip::app().with(|zip| zip.prefix = gif.clone()).bytes();
    let long = [vec![b'-'; 300_000], zip.clone()].concat();
    let comment = [long.clone(), vec![b'-'; 60_000]].concat();
    let many = (0..3000).fold(Zip::app(), |zip, number| zip.file(format!("{number}.txt"), "x")).bytes();
    // The end record has no numbers; the preceding ZIP64 record's numbers count.
    let zip64 = |record: bool, sentinels: bool| {
        let directory = u64::try_from(zip.len() - 22).unwrap();
        let mut end = End { entries: Some(0), size: Some(0), offset: Some(0), ..End::default() };
        if sentinels {
            end = End { entries: Some(u16::MAX), size: Some(u32::MAX), offset: Some(u32::MAX), ..end };
        }
        let locator = [&b"PK\x06\x07"[..], &[0; 4], &directory.to_le_bytes(), &[1, 0, 0, 0]].concat();
        let record = if record { [&b"PK\x06\x06\x2c"[..], &[0; 51]].concat() } else { Vec::new() };
        [
            gif.clone(),
            Zip::app().with(|zip| (zip.after_directory, zip.end) = ([record, locator].concat(), end)).bytes(),
        ]
        .concat()
    };
    let padded = [zip64(true, true), vec![b' '; 65_535]].concat();
    let bytes = [
        ("a picture and a zip of ZIP64", zip64(true, true)),
        ("a picture and a zip of ZIP64 whose end record says nothing", zip64(true, false)),
        ("a picture and a zip of ZIP64 whose record is elsewhere", zip64(false, true)),
        ("a picture and a zip of ZIP64 before 64 KiB", padded.clone()),
        ("300 KB and a zip of ZIP64 before 64 KiB", [vec![b'-'; 300_000], padded].concat()),
        ("a picture and a zip", [gif.clone(), zip.clone()].concat()),
        ("a picture and a zip with adjusted offsets", adjusted),
        ("a zip after 300 KB", long),
        ("a zip before 60 KB", comment),
        ("a zip whose directory is long", [gif.clone(), many].concat()),
        ("a zip and a line", [gif, zip, b"\n".to_vec()].concat()),
        ("a disk image", marked(4096, 4096 - 512, b"koly")),
    ];
    bytes.into_iter().map(|(what, content)| row(what, Code::NestedArchive, archive_with(content))).collect()
}

fn programs() -> Vec<Row> {
    let contents: [(&str, &[u8]); 16] = [
        ("ELF", b"\x7fELF\x02\x01"),
        ("PE", b"MZ\x90\x00\x03"),
        ("bare MZ", b"MZ"),
        ("Mach-O 32", b"\xfe\xed\xfa\xce"),
        ("Mach-O 64", b"\xfe\xed\xfa\xcf"),
        ("Mach-O 32, little-endian", b"\xce\xfa\xed\xfe"),
        ("Mach-O 64, little-endian", b"\xcf\xfa\xed\xfe"),
        ("Java class", b"\xca\xfe\xba\xbe\x00\x00\x00\x41"),
        ("fat Mach-O, little-endian", b"\xbe\xba\xfe\xca"),
        ("DEX", b"dex\n035\0"),
        ("bitcode", b"BC\xc0\xde"),
        ("wrapped bitcode", b"\xde\xc0\x17\x0b"),
        ("OLE", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"),
        ("shortcut", b"\x4c\x00\x00\x00\x01\x14\x02\x00\x00\x00\x00\x00\xc0\x00\x00\x00\x00\x00\x00\x46"),
        ("shell script", b"#!/bin/sh\n"),
        ("node script", b"#!/usr/bin/env node\n"),
    ];
    contents
        .into_iter()
        .map(|(what, content)| row(format!("program: {what}"), Code::Executable, archive_with(content)))
        .collect()
}

fn extensions() -> Vec<Row> {
    let archives = [
        "zip", "jar", "war", "apk", "xpi", "crx", "docx", "xlsx", "pptx", "odt", "epub", "whl", "tar", "tgz",
        "gz", "bz2", "xz", "zst", "7z", "rar", "cab", "cpio", "rpm", "iso", "dmg", "ZIP",
    ];
    let programs = [
        "exe", "dll", "so", "dylib", "msi", "bat", "cmd", "ps1", "vbs", "scr", "com", "sh", "app", "deb",
        "desktop", "Exe",
    ];
    let rows = |extensions: &[&str], code: Code| -> Vec<Row> {
        let named = |extension: &&str| {
            let bytes = Zip::app().file(format!("sub/file.{extension}"), "text").bytes();
            row(format!("extension {extension}"), code, bytes)
        };
        extensions.iter().map(named).collect()
    };
    [rows(&archives, Code::NestedArchive), rows(&programs, Code::Executable)].into_iter().flatten().collect()
}

#[test]
fn nested_archives_and_programs_are_rejected() {
    all_are_refused(&rows());
}

#[test]
fn texts_and_pictures_that_only_look_like_archives_are_accepted() {
    let contents: [(&str, Vec<u8>); 12] = [
        ("a.wasm", b"\0asm\x01\0\0\0".to_vec()),
        ("b.js", b"const end = 'PK\\x05\\x06'; // PK and ustar".to_vec()),
        ("c.txt", b"BZh is the mark of bzip2".to_vec()),
        ("d.txt", b"PK is not a mark".to_vec()),
        // An end record without a directory, as an archiver's source code may contain it.
        ("e.bin", [b"PK\x05\x06".as_slice(), &[0; 40]].concat().into_iter().rev().collect()),
        (
            "f.bin",
            [b"0123PK\x05\x06\0\0\0\0\x01\0\x01\0".as_slice(), &[200, 0, 0, 0, 0, 0, 0, 0, 0, 0]].concat(),
        ),
        ("g.png", b"\x89PNG\r\n\x1a\n".to_vec()),
        ("h.bin", b"\x71\xc7 and something else, which is not a name after a header".to_vec()),
        ("i.txt", Vec::new()),
        ("j.css", b"/*! ustar */".to_vec()),
        ("k.woff2", b"wOF2".to_vec()),
        ("l.txt", marked(4096, 4096 - 511, b"koly")),
    ];
    let zip = contents.iter().fold(Zip::app(), |zip, (name, content)| zip.file(name, content));
    let bundle = accepted(&zip.bytes());
    assert_eq!(bundle.files.len(), contents.len() + 1);
    assert!(bundle.wasm);
}

#[test]
fn types_follow_the_extension() {
    for (path, expected) in [
        ("index.html", "text/html; charset=utf-8"),
        ("a/APP.JS", "text/javascript; charset=utf-8"),
        ("a.xhtml", "text/plain; charset=utf-8"),
        ("a.svg", "image/svg+xml"),
        ("a.json", "application/json; charset=utf-8"),
        ("a.wasm", "application/wasm"),
        ("a.unknown", bundle::OTHER),
        ("js", bundle::OTHER),
        ("a.js/b", bundle::OTHER),
    ] {
        assert_eq!(media_type(path), expected, "{path}");
    }
}
