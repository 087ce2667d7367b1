//! Files that are refused.

use media::Detector;

use crate::samples::{detect, frames, join, local, mp4, office, page, pdf, riff, webm, zip};

#[test]
fn binary_files_of_other_types_are_rejected() {
    let mut tar = vec![0; 512];
    tar[..5].copy_from_slice(b"a.pdf");
    tar[257..265].copy_from_slice(b"ustar\x0000");
    let samples: Vec<(&str, Vec<u8>)> = vec![
        ("ELF", b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3e\0".to_vec()),
        ("PE", b"MZ\x90\0\x03\0\0\0\x04\0\0\0\xff\xff\0\0".to_vec()),
        ("class", b"\xca\xfe\xba\xbe\0\0\0\x34".to_vec()),
        ("wasm", b"\0asm\x01\0\0\0".to_vec()),
        ("gzip", b"\x1f\x8b\x08\0\0\0\0\0\0\x03\x03\0\0\0\0\0\0\0\0\0".to_vec()),
        ("7z", b"7z\xbc\xaf\x27\x1c\0\x04".to_vec()),
        ("rar", b"Rar!\x1a\x07\x01\0".to_vec()),
        ("tar with a PDF", join(&[&tar, &pdf()])),
        ("ELF with a PDF", join(&[b"\x7fELF\x02\x01\x01\0", &[0; 100], &pdf()])),
        ("OLE with a PDF", join(&[b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", &[0; 100], &pdf()])),
        ("HTML with a PDF", join(&[b"<p \xff", &pdf()])),
        ("PDF after 1,024 bytes", join(&[&[0xee; 1_024], &pdf()])),
        ("PDF across 1,024 bytes", join(&[&[0xee; 1_020], &pdf()])),
        ("TIFF", b"II*\0\x08\0\0\0\0\0".to_vec()),
        ("BMP", b"BM\x46\0\0\0\0\0\0\0\x36\0\0\0".to_vec()),
        ("ICO", b"\0\0\x01\0\x01\0\x10\x10\0\0".to_vec()),
        ("PNG with line ends changed", b"\x89PNG\n\x1a\n\0\0\0\x0dIHDR".to_vec()),
        ("AVI", riff(b"AVI ", b"LIST\0\0\0\0")),
        ("HEIC", b"\0\0\0\x18ftypheic\0\0\0\0mif1heic".to_vec()),
        ("AVIF", b"\0\0\0\x1cftypavif\0\0\0\0avifmif1miaf".to_vec()),
        ("QuickTime", mp4(b"qt  ", &[b"soun"])),
        ("MP4 video", mp4(b"isom", &[b"soun", b"vide"])),
        ("M4A with video", mp4(b"M4A ", &[b"vide", b"soun"])),
        ("MP4 without tracks", mp4(b"mp42", &[])),
        ("WebM video", webm(b"webm", &[(2, b"A_OPUS"), (1, b"V_VP9")])),
        ("WebM with video as audio", webm(b"webm", &[(2, b"V_VP8")])),
        ("WebM without tracks", webm(b"webm", &[])),
        ("Matroska", webm(b"matroska", &[(2, b"A_OPUS")])),
        ("EBML", b"\x1a\x45\xdf\xa3\xff\0\0\0\0\0\0\0\0\0".to_vec()),
        ("Ogg video", join(&[&page(2, b"\x80theora\x03\x02"), &page(2, b"\x01vorbis")])),
        ("Ogg with video second", join(&[&page(2, b"\x01vorbis"), &page(2, b"\x80theora\x03\x02")])),
        ("Ogg in its middle", page(0, b"OpusHead")),
        ("AAC", b"\xff\xf1\x50\x80\x02\x1f\xfc".to_vec()),
        ("MP3 with one frame only", join(&[&frames(1), b"something else"])),
        ("UTF-16 LE", b"\xff\xfeh\0i\0".to_vec()),
        ("UTF-16 LE of CJK", b"\xff\xfe\x2d\x4e\x87\x65\x2d\x4e\x87\x65".to_vec()),
        ("UTF-16 BE", b"\xfe\xff\0h\0i".to_vec()),
        ("UTF-16 without a mark", b"h\0i\0".to_vec()),
        ("Latin-1", b"caf\xe9 au lait".to_vec()),
        ("overlong UTF-8", b"\xc0\xafetc".to_vec()),
        ("surrogate", b"a\xed\xa0\x80".to_vec()),
        ("cut UTF-8", b"a\xf0\x9f\x98".to_vec()),
        ("NUL at the end", b"text\0".to_vec()),
        ("empty", Vec::new()),
    ];
    for (what, bytes) in samples {
        for name in ["a.txt", "a.md", "a.png"] {
            assert_eq!(detect(&bytes, name), None, "{what}");
        }
    }
}

#[test]
fn zips_with_other_contents_are_rejected() {
    let docx = office("word/document.xml");
    let types: (&str, &[u8]) = ("[Content_Types].xml", b"");
    for (what, bytes) in [
        ("a ZIP", zip(&[("a.txt", b"a")])),
        ("an empty ZIP", b"PK\x05\x06\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0".to_vec()),
        ("a ZIP with a stored DOCX", zip(&[("a.docx", &docx)])),
        (
            "a JAR",
            zip(&[("META-INF/MANIFEST.MF", b"Manifest-Version: 1.0"), ("A.class", b"\xca\xfe\xba\xbe")]),
        ),
        ("no content types", zip(&[("word/document.xml", b"")])),
        ("only content types", zip(&[types])),
        ("two documents", zip(&[types, ("word/document.xml", b""), ("xl/workbook.xml", b"")])),
        ("macros", zip(&[types, ("word/document.xml", b""), ("word/vbaProject.bin", b"")])),
        ("another part", office("word/documents.xml")),
        ("EPUB", zip(&[("mimetype", b"application/epub+zip"), types, ("word/document.xml", b"")])),
        ("ODS", zip(&[("mimetype", b"application/vnd.oasis.opendocument.spreadsheet")])),
        ("OTT", zip(&[("mimetype", b"application/vnd.oasis.opendocument.text-template")])),
        ("the mimetype second", zip(&[("a", b""), ("mimetype", b"application/vnd.oasis.opendocument.text")])),
        ("half a header", local("word/document.xml", b"")[..40].to_vec()),
    ] {
        assert_eq!(detect(&bytes, "a.docx"), None, "{what}");
    }
}

#[test]
fn documents_that_a_browser_executes_are_rejected() {
    for text in [
        "<!DOCTYPE html><title>a</title>",
        "<!doctype svg>",
        "<html>",
        "<HTML lang=en>",
        "<hTmL",
        "<head>",
        "<body>",
        "<body\nonload=a()>",
        "<script>alert(1)</script>",
        "<script",
        "<script\t>",
        "<script/src=a>",
        "<iframe src=a>",
        "<svg xmlns=\"http://www.w3.org/2000/svg\"/>",
        "<svg/onload=alert(1)>",
        "<SVG>",
        "<?xml version=\"1.0\"?><a/>",
        "<?xml-stylesheet href=\"a\"?><svg/>",
        "<!ENTITY a \"b\">",
        "<!ELEMENT a>",
        "<![CDATA[a]]>",
        "<a:svg xmlns:a=\"b\">",
        "<é:svg xmlns:é=\"b\">",
        "<style>",
        "<meta http-equiv=refresh>",
        "<object data=a>",
        "<embed src=a>",
        "<base href=a>",
        "<!-- a --><svg>",
        "<!-- a -- > --> \n<!----><!-- b --->\t<html>",
        "<!--><script>-->",
        "<!---><script>-->",
        "<!-- a --!><script>-->",
        "<!-- <a> -->\n<?xml?>",
    ] {
        let padded = format!("\u{feff}\r\n\t {}{text}", "\u{a0}\u{c}".repeat(3_000));
        for name in ["a.txt", "a.md", "a.json", "a.svg"] {
            assert_eq!(detect(text.as_bytes(), name), None, "{text}");
            assert_eq!(detect(padded.as_bytes(), name), None, "{text}");
        }
    }
    let prefix = format!("<{}:svg>", "a".repeat(100));
    assert_eq!(detect(prefix.as_bytes(), "a.md"), None);
}

#[test]
fn html_fragments_are_rejected_unless_they_are_markdown() {
    for text in [
        "<h1>a</h1>",
        "<div>",
        "<p>",
        "<b>a",
        "<br/>",
        "<table>",
        "<a href=a>",
        "</a>",
        "<!-- a -->",
        "<!-- a",
    ] {
        for name in ["a.txt", "a.html", "a.csv", "a"] {
            assert_eq!(detect(text.as_bytes(), name), None, "{text}");
        }
    }
}

#[test]
fn a_certain_rejection_is_early() {
    for bytes in [
        b"<html><p>".to_vec(),
        b"\x7fELF\x02\x01\x01\0".repeat(512),
        b"\0\0\0\x18ftypheic\0\0\0\0".to_vec(),
        webm(b"matroska", &[]),
        mp4(b"isom", &[b"vide"]),
        join(&[&[b'a'; 100_000], b"\0"]),
    ] {
        let mut detector = Detector::new();
        assert!(!detector.is_refused());
        detector.push(&bytes);
        assert!(detector.is_refused());
        detector.push(&pdf());
        assert!(detector.is_refused());
    }
}
