//! Files that are accepted.

use media::{Detector, Media};

use crate::samples::{all, detect, frames, join, local, mp4, office, page, pdf, webm, zip};

#[test]
fn every_type_is_detected_in_pieces_of_any_size() {
    let samples = all();
    let types: Vec<Media> = samples.iter().map(|(media, ..)| *media).collect();
    assert_eq!(types, Media::ALL);
    for (media, name, bytes) in samples {
        assert_eq!(detect(&bytes, name), Some(media), "{name}");
    }
}

#[test]
fn media_types_are_found_by_name_and_belong_to_one_group() {
    for media in Media::ALL {
        assert_eq!(Media::of_mime(media.mime()), Some(media));
        assert_eq!(Media::of_mime(&format!("{}; charset=utf-8", media.mime())), Some(media));
        assert!(
            [media.is_image(), media.is_audio(), media.is_text()].into_iter().filter(|is| *is).count() <= 1
        );
        assert_eq!(media.is_image(), media.mime().starts_with("image/"));
        assert_eq!(media.is_audio(), media.mime().starts_with("audio/"));
        assert!(Media::ALL.iter().filter(|other| other.extension() == media.extension()).count() == 1);
    }
    for unknown in ["", "text/html", "image/svg+xml", "TEXT/PLAIN", "text/", "video/webm"] {
        assert_eq!(Media::of_mime(unknown), None, "{unknown}");
    }
}

#[test]
fn the_extension_distinguishes_only_texts() {
    for (name, media) in [
        ("a.MD", Media::Markdown),
        ("a.markdown", Media::Markdown),
        ("dir.csv/a", Media::Text),
        ("a.csv. ", Media::Csv),
        ("a.json", Media::Json),
        (".json", Media::Text),
        ("json", Media::Text),
        ("a.pdf", Media::Text),
        ("a.html", Media::Text),
        ("a.sh", Media::Text),
        ("", Media::Text),
    ] {
        assert_eq!(detect(b"#!/bin/sh\necho 1 < 2\n", name), Some(media), "{name}");
    }
}

#[test]
fn texts_that_start_like_other_types_stay_texts() {
    let long = "é😀\u{7ff}".repeat(3_000);
    for text in [
        "BMW is a car",
        "MZ",
        "GIF89a is a format",
        "GIFs",
        "ID3 tags",
        "OggS",
        "fLaC",
        "%PDF is a mark",
        "PK",
        "In PDF, %PDF-1.7 is first",
        "RIFF and WEBP",
        "\u{feff}with a mark",
        "<3",
        "< a",
        "<https://example.com>",
        "<hello>",
        "a <script>alert(1)</script>",
        "-->",
        "\u{1b}[1m",
        long.as_str(),
    ] {
        assert_eq!(detect(text.as_bytes(), "a"), Some(Media::Text), "{text}");
    }
}

#[test]
fn markdown_may_begin_with_fragments_of_html() {
    for text in [
        "<!-- lint: off -->\n# Title",
        "<div align=\"center\">",
        "<h1>Title</h1>",
        "<img src=\"a.png\">",
        "<a>",
    ] {
        assert_eq!(detect(text.as_bytes(), "README.md"), Some(Media::Markdown), "{text}");
        assert_eq!(detect(text.as_bytes(), "README.txt"), None, "{text}");
    }
}

#[test]
fn a_pdf_may_have_bytes_before_its_signature() {
    let ascii = b"%PDF-1.4\n1 0 obj<<>>endobj\n%%EOF";
    assert_eq!(detect(ascii, "a.txt"), Some(Media::Pdf));
    assert_eq!(detect(&join(&[b"\xef\xbb\xbf\r\n", ascii]), "a.txt"), Some(Media::Pdf));
    for before in [b"\r\n\r\n".to_vec(), b"HTTP/1.1 200 OK\r\n\r\n".to_vec(), vec![0xee; 1_019]] {
        assert_eq!(detect(&join(&[&before, &pdf()]), "a"), Some(Media::Pdf));
    }
}

#[test]
fn many_audio_forms_are_detected() {
    let tagged = join(&[b"ID3\x04\0\0\0\0\0\x0a", &[0; 10], &frames(2)]);
    assert_eq!(detect(&tagged, "a"), Some(Media::Mp3));
    assert_eq!(detect(&frames(1), "a"), Some(Media::Mp3));
    for brand in [b"isom", b"mp42", b"iso5"] {
        assert_eq!(detect(&mp4(brand, &[b"soun", b"text"]), "a"), Some(Media::Mp4));
    }
    for packet in [b"\x01vorbis\0\0\0\0".as_slice(), b"\x7fFLAC\x01\0\0\x01fLaC", b"Speex   1.2"] {
        assert_eq!(detect(&page(2, packet), "a"), Some(Media::Ogg));
    }
    let skeleton = join(&[&page(2, b"fishead\0\x03\0"), &page(2, b"OpusHead\x01"), &page(0, b"\x80theora")]);
    assert_eq!(detect(&skeleton, "a"), Some(Media::Ogg));
    assert_eq!(detect(&webm(b"webm\0\0", &[(2, b"A_VORBIS"), (17, b"S_TEXT/UTF8")]), "a"), Some(Media::Webm));
}

#[test]
fn office_documents_are_detected_by_their_parts() {
    assert_eq!(detect(&office("word/document2.xml"), "a"), Some(Media::Docx));
    // An embedded workbook has its own headers.
    let sheet = office("xl/workbook.xml");
    let entries: [(&str, &[u8]); 3] =
        [("[Content_Types].xml", b""), ("word/embeddings/a.xlsx", &sheet), ("word/document.xml", b"")];
    assert_eq!(detect(&zip(&entries), "a"), Some(Media::Docx));
    // Without a directory the headers before the data count.
    let headers = join(&[&local("[Content_Types].xml", b"\xff\x9c"), &local("word/document.xml", b"")]);
    assert_eq!(detect(&headers, "a"), Some(Media::Docx));
}

#[test]
fn a_header_may_be_cut_anywhere() {
    let file = office("ppt/presentation.xml");
    for at in 0..file.len() {
        let mut detector = Detector::default();
        detector.push(&file[..at]);
        detector.push(&file[at..]);
        assert_eq!(detector.finish("a"), Some(Media::Pptx), "{at}");
    }
}
