//! The smallest files with each format's real structure.

use media::{Detector, Media};

/// Detects a file in pieces of this size, and checks that an early refusal is final.
pub(crate) fn detect_in(bytes: &[u8], name: &str, piece: usize) -> Option<Media> {
    let mut detector = Detector::new();
    let mut refused = false;
    for part in bytes.chunks(piece) {
        detector.push(part);
        assert!(detector.is_refused() || !refused, "{name} was rejected and is now accepted");
        refused = detector.is_refused();
    }
    let media = detector.finish(name);
    assert!(!refused || media.is_none(), "{name} was rejected and is now {media:?}");
    media
}

/// Detects a file as a whole, byte by byte, and in pieces of 7 bytes.
pub(crate) fn detect(bytes: &[u8], name: &str) -> Option<Media> {
    let whole = detect_in(bytes, name, bytes.len().max(1));
    for piece in [1, 7] {
        assert_eq!(detect_in(bytes, name, piece), whole, "{name} in pieces of {piece}");
    }
    whole
}

pub(crate) fn join(parts: &[&[u8]]) -> Vec<u8> {
    parts.concat()
}

fn u16s(number: usize) -> [u8; 2] {
    u16::try_from(number).unwrap().to_le_bytes()
}

fn u32s(number: usize) -> [u8; 4] {
    u32::try_from(number).unwrap().to_le_bytes()
}

/// A local header with stored data.
pub(crate) fn local(name: &str, data: &[u8]) -> Vec<u8> {
    let size = u32s(data.len());
    let start =
        [b"PK\x03\x04\x14\0\0\0\0\0\0\0\0\0\0\0\0\0".as_slice(), &size, &size, &u16s(name.len()), &[0, 0]];
    [start.concat().as_slice(), name.as_bytes(), data].concat()
}

/// A ZIP with its directory.
pub(crate) fn zip(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let (mut file, mut directory) = (Vec::new(), Vec::new());
    for (name, data) in entries {
        let (offset, header) = (u32s(file.len()), local(name, data));
        file.extend_from_slice(&header);
        directory.extend_from_slice(b"PK\x01\x02\x14\0");
        directory.extend_from_slice(&header[4..30]);
        directory.extend_from_slice(&[0; 10]);
        directory.extend_from_slice(&offset);
        directory.extend_from_slice(name.as_bytes());
    }
    let count = u16s(entries.len());
    let end = [
        b"PK\x05\x06\0\0\0\0".as_slice(),
        &count,
        &count,
        &u32s(directory.len()),
        &u32s(file.len()),
        &[0, 0],
    ];
    join(&[&file, &directory, &end.concat()])
}

/// An office document with this main part.
pub(crate) fn office(part: &str) -> Vec<u8> {
    zip(&[("[Content_Types].xml", b"<Types/>"), ("_rels/.rels", b"<Relationships/>"), (part, b"<x/>")])
}

/// An EBML element of at most 126 bytes.
pub(crate) fn element(id: &[u8], data: &[u8]) -> Vec<u8> {
    join(&[id, &[0x80 | u8::try_from(data.len()).unwrap()], data])
}

/// A live recording: segment and cluster have unknown sizes.
pub(crate) fn webm(doc_type: &[u8], tracks: &[(u8, &[u8])]) -> Vec<u8> {
    let entries: Vec<Vec<u8>> = tracks
        .iter()
        .map(|(kind, codec)| {
            let members = [element(b"\xd7", &[1]), element(b"\x83", &[*kind]), element(b"\x86", codec)];
            element(b"\xae", &members.concat())
        })
        .collect();
    let head =
        element(b"\x1a\x45\xdf\xa3", &[element(b"\x42\x86", &[1]), element(b"\x42\x82", doc_type)].concat());
    join(&[
        &head,
        b"\x18\x53\x80\x67\x01\xff\xff\xff\xff\xff\xff\xff",
        &element(b"\xec", &[0; 100]),
        &element(b"\x16\x54\xae\x6b", &entries.concat()),
        b"\x1f\x43\xb6\x75\xff",
        &element(b"\xe7", &[0]),
        &element(b"\xa3", b"\x81\0\0\x80\x83\x81\x01 V_VP8"),
    ])
}

fn sized(kind: &[u8], data: &[u8]) -> Vec<u8> {
    join(&[&u32::try_from(data.len() + 8).unwrap().to_be_bytes(), kind, data])
}

pub(crate) fn mp4(brand: &[u8; 4], handlers: &[&[u8; 4]]) -> Vec<u8> {
    let tracks: Vec<Vec<u8>> = handlers
        .iter()
        .map(|handler| {
            let handler = sized(b"hdlr", &join(&[&[0; 8], *handler, &[0; 13]]));
            sized(b"trak", &sized(b"mdia", &handler))
        })
        .collect();
    // The tracks can follow the data.
    let data = sized(b"mdat", &[0x55; 9_000]);
    join(&[&sized(b"ftyp", &join(&[brand, &[0; 4], brand])), &data, &sized(b"moov", &tracks.concat())])
}

/// An Ogg page; flag 2 marks the first one in its stream.
pub(crate) fn page(flags: u8, packet: &[u8]) -> Vec<u8> {
    join(&[b"OggS\0", &[flags], &[0; 20], &[1, u8::try_from(packet.len()).unwrap()], packet])
}

/// MPEG 1 frames: layer III, 128 kbit/s, 44.1 kHz.
pub(crate) fn frames(count: usize) -> Vec<u8> {
    let mut frame = vec![0; 417];
    frame[..4].copy_from_slice(b"\xff\xfb\x90\x64");
    frame.repeat(count)
}

pub(crate) fn riff(form: &[u8], chunk: &[u8]) -> Vec<u8> {
    join(&[b"RIFF", &u32s(form.len() + chunk.len()), form, chunk])
}

pub(crate) fn pdf() -> Vec<u8> {
    b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj<</Type/Catalog>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n".to_vec()
}

const DOCX: &str = "word/document.xml";
const ODT: &[u8] = b"application/vnd.oasis.opendocument.text";

/// Every type, with a neutral name unless the type is a text.
pub(crate) fn all() -> Vec<(Media, &'static str, Vec<u8>)> {
    let png = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89".to_vec();
    vec![
        (Media::Text, "a.txt", b"plain text".to_vec()),
        (Media::Markdown, "a.md", b"# Title".to_vec()),
        (Media::Csv, "a.csv", b"a;b\n1;2\n".to_vec()),
        (Media::Json, "a.json", b"{\"a\": 1}".to_vec()),
        (Media::Pdf, "a", pdf()),
        (Media::Png, "a.html", png),
        (Media::Jpeg, "a.txt", b"\xff\xd8\xff\xe0\0\x10JFIF\0\x01\x01\0\0\x01\0\x01\0\0\xff\xd9".to_vec()),
        (Media::Gif, "a", b"GIF89a\x01\0\x01\0\x80\0\0\0\0\0\xff\xff\xff;".to_vec()),
        (Media::Webp, "a", riff(b"WEBP", b"VP8L\x0d\0\0\0\x2f\0\0\0\x10\x07\x10\x11\x11\x88\x88\xfe\x07")),
        (Media::Webm, "a", webm(b"webm", &[(2, b"A_OPUS")])),
        (Media::Mp4, "a", mp4(b"M4A ", &[b"soun"])),
        (Media::Ogg, "a", page(2, b"OpusHead\x01\x01\x38\x01\x80\xbb\0\0\0\0\0")),
        (Media::Mp3, "a", frames(3)),
        (
            Media::Wav,
            "a",
            riff(b"WAVE", b"fmt \x10\0\0\0\x01\0\x01\0\x44\xac\0\0\x88\x58\x01\0\x02\0\x10\0data\0\0\0\0"),
        ),
        (Media::Flac, "a", join(&[b"fLaC\x80\0\0\x22", &[0x10; 34]])),
        (Media::Docx, "a.zip", office(DOCX)),
        (Media::Xlsx, "a", office("xl/workbook.xml")),
        (Media::Pptx, "a", office("ppt/presentation.xml")),
        (Media::Odt, "a", zip(&[("mimetype", ODT), ("content.xml", b"<x/>")])),
    ]
}
