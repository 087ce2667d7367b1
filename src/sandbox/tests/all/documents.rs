//! Documents: the text of valid ones, and the problems of damaged and hostile ones.

use std::io::{Cursor, Write as _};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lopdf::{Document, Object, Stream, dictionary};
use sandbox::{DocumentKind, DocumentLimits, DocumentProblem, DocumentText, Sandbox, SandboxError};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use crate::sandbox;

const LIMITS: DocumentLimits = DocumentLimits { time: Duration::from_secs(60), pages: 100, text: 1 << 20 };

type ReadResult = Result<Result<DocumentText, DocumentProblem>, SandboxError>;

async fn read(sandbox: &Sandbox, kind: DocumentKind, bytes: &[u8], limits: DocumentLimits) -> ReadResult {
    sandbox.read_document(kind, STANDARD.encode(bytes), limits).await
}

async fn pdf(sandbox: &Sandbox, bytes: &[u8]) -> Result<DocumentText, DocumentProblem> {
    read(sandbox, DocumentKind::Pdf, bytes, LIMITS).await.unwrap()
}

async fn docx(sandbox: &Sandbox, bytes: &[u8]) -> Result<DocumentText, DocumentProblem> {
    read(sandbox, DocumentKind::Docx, bytes, LIMITS).await.unwrap()
}

/// A PDF with these page contents. Each page has the fonts `F` (Helvetica, all glyphs 500 wide) and `W` (two-byte
/// codes), and the form `X`, which draws itself recursively.
fn made(pages: &[&str]) -> Vec<u8> {
    let mut document = Document::with_version("1.5");
    let tree = document.new_object_id();
    let map = "/CIDInit /ProcSet findresource begin\n12 dict begin\nbegincmap\n/CIDSystemInfo\n<< /Registry (Adobe) /Ordering (UCS) \
               /Supplement 0 >> def\n/CMapName /Adobe-Identity-UCS def\n/CMapType 2 def\n1 begincodespacerange\n<0000> <FFFF>\n\
               endcodespacerange\n2 beginbfchar\n<0001> <00D6>\n<0002> <4E16>\nendbfchar\nendcmap\nCMapName currentdict /CMap \
               defineresource pop\nend\nend\n";
    let map = document.add_object(Stream::new(dictionary! {}, map.as_bytes().to_vec()));
    let inner = document.add_object(dictionary! {
        "Type" => "Font", "Subtype" => "CIDFontType2", "BaseFont" => "W", "DW" => 1000, "W" => vec![1.into(), 2.into(), 600.into()],
    });
    let wide = document.add_object(dictionary! {
        "Type" => "Font", "Subtype" => "Type0", "BaseFont" => "W", "Encoding" => "Identity-H", "ToUnicode" => map,
        "DescendantFonts" => vec![inner.into()],
    });
    let widths: Vec<Object> = (0..256).map(|_| 500.into()).collect();
    let plain = document.add_object(dictionary! {
        "Type" => "Font", "Subtype" => "Type1", "BaseFont" => "Helvetica", "Encoding" => "WinAnsiEncoding",
        "FirstChar" => 0, "LastChar" => 255, "Widths" => widths,
    });
    let resources = document.new_object_id();
    let form = dictionary! { "Type" => "XObject", "Subtype" => "Form", "Resources" => resources };
    let form = document.add_object(Stream::new(form, b"BT /F 10 Tf 0 0 Td (form) Tj ET /X Do".to_vec()));
    let fonts = dictionary! { "F" => plain, "W" => wide };
    let forms = dictionary! { "X" => form };
    document.objects.insert(resources, dictionary! { "Font" => fonts, "XObject" => forms }.into());
    let mut kids: Vec<Object> = Vec::new();
    for content in pages {
        let mut stream = Stream::new(dictionary! {}, content.as_bytes().to_vec());
        let _ = stream.compress();
        let content = document.add_object(stream);
        let page = dictionary! { "Type" => "Page", "Parent" => tree, "Contents" => content, "Resources" => resources };
        kids.push(document.add_object(page).into());
    }
    let count = i64::try_from(kids.len()).unwrap();
    document.objects.insert(tree, dictionary! { "Type" => "Pages", "Kids" => kids, "Count" => count }.into());
    let catalog = document.add_object(dictionary! { "Type" => "Catalog", "Pages" => tree });
    document.trailer.set("Root", catalog);
    let mut bytes = Vec::new();
    document.save_to(&mut bytes).unwrap();
    bytes
}

/// An archive with these members.
fn packed(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in members {
        archive.start_file(*name, SimpleFileOptions::default()).unwrap();
        archive.write_all(bytes).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

fn word(body: &str) -> Vec<u8> {
    let xml =
        format!("<?xml version=\"1.0\"?><w:document xmlns:w=\"w\"><w:body>{body}</w:body></w:document>");
    packed(&[("[Content_Types].xml", b"<Types/>"), ("word/document.xml", xml.as_bytes())])
}

#[tokio::test]
async fn pages_are_read_line_by_line() {
    let sandbox = sandbox(1);
    for (content, text) in [
        (
            "BT /F 10 Tf 50 700 Td (Hello) Tj 0 -12 Td (world) Tj 0 -30 Td (Next) Tj ET",
            "Hello\nworld\n\nNext",
        ),
        ("BT /F 10 Tf 12 TL 50 700 Td (a) Tj T* (b) Tj (c) ' 1 2 (d) \" ET", "a\nb\nc\nd"),
        // Gaps are spaces, whether the glyphs are kerned, moved or placed individually.
        ("BT /F 10 Tf 50 700 Td [(Ke) -20 (rn) -400 (ed) 30 (.)] TJ ET", "Kern ed."),
        ("BT /F 10 Tf 1 0 0 1 50 700 Tm (a) Tj 1 0 0 1 55 700 Tm (b) Tj 1 0 0 1 63 700 Tm (c) Tj ET", "ab c"),
        (
            "q 1 0 0 1 0 700 cm BT /F 10 Tf (up) Tj ET Q q 1 0 0 1 0 600 cm BT /F 10 Tf (down) Tj ET Q",
            "up\n\ndown",
        ),
        ("BT /F 10 Tf 0 1 -1 0 300 50 Tm (turned ) Tj (text) Tj ET", "turned text"),
        ("BT /W 10 Tf 50 700 Td <00010002> Tj ET", "Ö世"),
        ("BT /F 10 Tf (gr\\366\\337e) Tj ET", "größe"),
        ("1 0 0 1 50 700 cm /X Do BT /F 10 Tf 0 -20 Td (after) Tj ET", "form\n\nafter"),
        ("BT /N 10 Tf (no font) Tj ET BT (none) Tj ET Q Q", ""),
        ("", ""),
    ] {
        let result = pdf(&sandbox, &made(&[content])).await;
        let result = result.map(|read| (read.text.replace("formform", "form"), read.pages));
        // A form inside itself is drawn repeatedly, up to the depth limit.
        let result =
            result.map(|(text, pages)| (if text.contains("form") { tidy(&text) } else { text }, pages));
        assert_eq!(result, Ok((text.to_owned(), Some(1))), "{content}");
    }
    let both = made(&["BT /F 10 Tf (one) Tj ET", "BT /F 10 Tf (two) Tj ET", ""]);
    assert_eq!(pdf(&sandbox, &both).await, Ok(DocumentText { text: "one\n\u{c}two".into(), pages: Some(3) }));
}

fn tidy(text: &str) -> String {
    let mut lines: Vec<&str> =
        text.lines().map(|line| if line.starts_with("form") { "form" } else { line }).collect();
    lines.dedup();
    lines.join("\n")
}

#[tokio::test]
async fn documents_above_a_limit_are_rejected() {
    let sandbox = sandbox(1);
    let two = made(&["BT /F 10 Tf (one) Tj ET", "BT /F 10 Tf (two) Tj ET"]);
    let few = DocumentLimits { pages: 1, ..LIMITS };
    assert_eq!(read(&sandbox, DocumentKind::Pdf, &two, few).await, Ok(Err(DocumentProblem::Pages(2))));
    let short = DocumentLimits { text: 5, ..LIMITS };
    let too_large = |read: &ReadResult| {
        matches!(read, Ok(Err(DocumentProblem::TooLarge(_))) | Err(SandboxError::Memory(_)))
    };
    let long = read(&sandbox, DocumentKind::Pdf, &two, short).await;
    assert!(too_large(&long), "{long:?}");
    let long =
        read(&sandbox, DocumentKind::Docx, &word("<w:p><w:r><w:t>longer</w:t></w:r></w:p>"), short).await;
    assert!(too_large(&long), "{long:?}");
    // Bombs: a few KiB unpack to many MiB.
    let bomb = made(&[&" ".repeat(28 << 20)]);
    assert!(bomb.len() < 1 << 20);
    let large = read(&sandbox, DocumentKind::Pdf, &bomb, LIMITS).await;
    assert!(too_large(&large), "{large:?}");
    for body in
        [" ".repeat(100 << 20), "<a/>".repeat(20 << 20), format!("<w:p w:a=\"{}\"/>", "x".repeat(32 << 20))]
    {
        let large = read(&sandbox, DocumentKind::Docx, &word(&body), LIMITS).await;
        assert!(too_large(&large), "{large:?}");
    }
    let quick = DocumentLimits { time: Duration::from_millis(1), ..LIMITS };
    let slow = read(&sandbox, DocumentKind::Docx, &word(&"<a/>".repeat(1 << 18)), quick).await;
    assert!(matches!(slow, Err(SandboxError::Timeout(_))), "{slow:?}");
    assert!(pdf(&sandbox, &two).await.is_ok(), "the next document finds a worker");
}

#[tokio::test]
async fn damaged_documents_are_reported_and_do_not_end_the_worker() {
    let sandbox = sandbox(1);
    let good = made(&["BT /F 10 Tf 50 700 Td (Hello) Tj ET /X Do", "BT /W 10 Tf <0001> Tj ET"]);
    for garbage in [&b""[..], b"%PDF-1.7", b"no document", b"%PDF-1.4\n%%EOF", &[0xff; 4096]] {
        let result = pdf(&sandbox, garbage).await;
        assert!(matches!(result, Err(DocumentProblem::Damaged(_))), "{result:?}");
        let result = docx(&sandbox, garbage).await;
        assert!(matches!(result, Err(DocumentProblem::Damaged(_))), "{result:?}");
    }
    let mut random = 7_u64;
    let mut draw = |below: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        usize::try_from(random >> 33).unwrap() % below
    };
    let page = word("<w:p><w:r><w:t>Hello</w:t></w:r></w:p>");
    for round in 0..120 {
        let (kind, good) =
            if round % 2 == 0 { (DocumentKind::Pdf, &good) } else { (DocumentKind::Docx, &page) };
        let mut bytes = good.clone();
        if round % 4 < 2 {
            bytes.truncate(draw(good.len()));
        } else {
            (0..=draw(12)).for_each(|_| bytes[draw(good.len())] = u8::try_from(draw(256)).unwrap());
        }
        let result = read(&sandbox, kind, &bytes, LIMITS).await;
        assert!(result.is_ok(), "round {round}: {result:?}");
    }
    let cut = docx(&sandbox, &word("</w:body>")).await;
    assert!(
        matches!(&cut, Err(DocumentProblem::Damaged(why)) if why.contains("word/document.xml")),
        "{cut:?}"
    );
    let none = docx(&sandbox, &packed(&[("a.txt", b"a")])).await;
    assert_eq!(none, Err(DocumentProblem::Damaged("it has no word/document.xml".into())));
}

#[tokio::test]
async fn a_document_that_requires_a_password_is_an_error() {
    let sandbox = sandbox(1);
    let mut document = Document::load_mem(&made(&["BT /F 10 Tf (secret) Tj ET"])).unwrap();
    document.trailer.set(
        "ID",
        vec![Object::string_literal("0123456789abcdef"), Object::string_literal("0123456789abcdef")],
    );
    let version = |user: &'static str, document: &Document| {
        let version = lopdf::EncryptionVersion::V2 {
            document,
            owner_password: "owner",
            user_password: user,
            key_length: 128,
            permissions: lopdf::Permissions::all(),
        };
        lopdf::EncryptionState::try_from(version).unwrap()
    };
    for (user, expected) in [("user", Err(DocumentProblem::Protected)), ("", Ok("secret".to_owned()))] {
        let mut locked = document.clone();
        locked.encrypt(&version(user, &document)).unwrap();
        let mut bytes = Vec::new();
        locked.save_to(&mut bytes).unwrap();
        assert_eq!(pdf(&sandbox, &bytes).await.map(|read| read.text), expected);
    }
}

#[tokio::test]
async fn a_word_document_is_read_by_paragraph() {
    let sandbox = sandbox(1);
    let body = "<w:p><w:r><w:t>A &amp; b</w:t></w:r><w:r><w:t xml:space=\"preserve\"> &#xe9;</w:t><w:br/><w:t>c</w:t></w:r></w:p>\
                <w:p><w:pPr><w:tabs><w:tab w:val=\"left\"/></w:tabs></w:pPr><w:r><w:t>x</w:t><w:tab/><w:t>y</w:t></w:r></w:p>\
                <w:p><w:del><w:r><w:delText>gone</w:delText></w:r></w:del><w:r><w:instrText>PAGE</w:instrText></w:r></w:p>\
                <mc:AlternateContent><mc:Choice><w:p><w:r><w:t>once</w:t></w:r></w:p></mc:Choice>\
                <mc:Fallback><w:p><w:r><w:t>once</w:t></w:r></w:p></mc:Fallback></mc:AlternateContent>";
    let result = docx(&sandbox, &word(body)).await;
    assert_eq!(result, Ok(DocumentText { text: "A & b é\nc\n\nx\ty\n\nonce".into(), pages: None }));
}
