//! Refused and accepted names.

use bundle::Code;

use crate::build::{Item, Zip, accepted, extra, refused};
use crate::documents::ticking_for;
use crate::hostile::{Row, all_are_refused, row};

fn named(name: impl AsRef<[u8]>) -> Vec<u8> {
    Zip::app().file(name, "x").bytes()
}

/// A bundle with a page and these files.
fn files(names: &[&str]) -> Vec<u8> {
    names.iter().fold(Zip::app(), |zip, name| zip.file(name, "x")).bytes()
}

fn changed(change: impl FnOnce(Item) -> Item) -> Vec<u8> {
    Zip::app().item(change(Item::stored(b"a.css", b"x"))).bytes()
}

pub(crate) fn rows() -> Vec<Row> {
    [paths(), encodings(), collisions(), kinds_of_entries(), junk(), reserved(), index(), sensitive()]
        .into_iter()
        .flatten()
        .collect()
}

fn all(code: Code, names: &[&str]) -> Vec<Row> {
    names.iter().map(|name| row(format!("{} {name:?}", code.as_str()), code, named(name))).collect()
}

fn paths() -> Vec<Row> {
    let mut rows = all(
        Code::UnsafePath,
        &[
            "../x.js",
            "a/../x.js",
            "a/..",
            "..",
            ".",
            "./x.js",
            "a/./x.js",
            "a//x.js",
            "//server/share/x.js",
            "/x.js",
            "/etc/passwd",
            "\\x.js",
            "a\\x.js",
            "..\\x.js",
            "\\\\server\\x.js",
            "C:x.js",
            "C:/x.js",
            "c:\\x.js",
            "~/x.js",
            "~root/x.js",
            "a:stream",
            "a.js::$DATA",
            "a*.js",
            "a?.js",
            "a\".js",
            "a<.js",
            "a>.js",
            "a|.js",
            "a.",
            "a ",
            "a./x.js",
            "a /x.js",
            "con",
            "CON",
            "con.js",
            "a/PRN.txt",
            "aux.html",
            "nul",
            "nul.tar.js",
            "com0",
            "com1.js",
            "COM9",
            "lpt0",
            "lpt1",
            "lpt9.css",
            "com¹",
            "com².js",
            "LPT³",
            "conin$",
            "CONOUT$.js",
            "con .js",
            "ＣＯＮ",
            "a\0.js",
            "a\n.js",
            "a\r.js",
            "a\t.js",
            "a\u{1b}[2J",
            "a\u{7f}",
            "a\u{80}",
            "a\u{9b}1m",
            "a\u{85}.js",
            "a\u{202e}sj.exe",
            "a\u{202a}",
            "a\u{2066}b\u{2069}",
            "a\u{200e}",
            "a\u{200b}b",
            "a\u{200d}b",
            "a\u{ad}b",
            "\u{feff}a",
            "a\u{61c}",
            "a\u{2028}b",
            "a\u{2029}b",
            "a\u{fffd}",
            "a\u{fffe}",
            "a\u{ffff}",
            "a\u{fdd0}",
            "a\u{1ffff}",
            "a\u{e0041}",
            "a\u{180e}",
            "a%2e%2e/x.js",
            "%2E%2E/x.js",
            "a%2fb",
            "a%5Cb",
            "a%00.js",
            "",
            "/",
            "a//",
        ],
    );
    let other = [&[1_u8][..], &[0; 4], b"../x.js"].concat();
    let other_name = changed(|item| item.both(|header| header.extra = extra(0x7075, &other)));
    rows.push(row("another Unicode name", Code::UnsafePath, other_name));
    let local = changed(|item| item.local(|header| header.extra = extra(0x7075, &other)));
    rows.push(row("another Unicode name in the local header", Code::UnsafePath, local));
    rows
}

fn encodings() -> Vec<Row> {
    let bad: [&[u8]; 6] =
        [b"a\xff.js", b"\x80", b"\xc3", b"\xc0\xae.js", b"a\xed\xa0\x80", b"\xf4\x90\x80\x80"];
    let mut rows: Vec<Row> = bad
        .iter()
        .map(|name| row(format!("name not UTF-8: {name:x?}"), Code::NameNotUtf8, named(name)))
        .collect();
    let unmarked = changed(|item| item.both(|header| header.name = "ä.css".into()));
    rows.push(row("not marked as UTF-8", Code::NameNotUtf8, unmarked));
    rows.push(row(
        "CP437",
        Code::NameNotUtf8,
        changed(|item| item.both(|header| header.name = b"\x84.css".to_vec())),
    ));
    rows.extend(all(
        Code::PathNotNormalized,
        &["a\u{308}.js", "e\u{301}/x.js", "\u{212b}.js", "\u{1100}\u{1161}.js"],
    ));
    rows
}

fn collisions() -> Vec<Row> {
    let pairs: [&[&str]; 15] = [
        &["a.js", "a.js"],
        &["a.js", "A.js"],
        &["b/a.js", "B/A.js"],
        &["ß.js", "ss.js"],
        &["ß.js", "SS.js"],
        &["ﬁ.js", "fi.js"],
        &["σ.js", "ς.js"],
        &["K.js", "k.js"],
        &["①.js", "1.js"],
        &["ａ.js", "a.js"],
        &["İ.js", "i\u{307}.js"],
        &["ſ.js", "s.js"],
        &["a", "a/b"],
        &["A", "a/b/c"],
        &["INDEX.html"],
    ];
    let mut rows: Vec<Row> = pairs
        .iter()
        .map(|names| row(format!("the same: {names:?}"), Code::PathCollision, files(names)))
        .collect();
    let folder = |name: &[u8]| Item::stored(name, b"");
    let twice = Zip::app().item(folder(b"a/")).item(folder(b"a/")).bytes();
    rows.push(row("a folder twice", Code::PathCollision, twice));
    let index = Zip::app().item(folder(b"index.html/")).bytes();
    rows.push(row("a folder and a file", Code::PathCollision, index));
    for (what, name) in [("index.html", "index.html/x/"), ("INDEX.html", "INDEX.html/x/y/"), ("a", "a/b/")] {
        let zip = if what == "a" { Zip::app().file("a", "x") } else { Zip::app() };
        let below = zip.item(folder(name.as_bytes())).bytes();
        rows.push(row(format!("a folder below the file {what:?}"), Code::PathCollision, below));
    }
    rows
}

fn kinds_of_entries() -> Vec<Row> {
    let mode = |mode| changed(|item| item.mode(mode));
    let attributes = |bits| changed(|item| item.central(|header| header.attributes = bits));
    let link = |id, value: &[u8]| changed(|item| item.both(|header| header.extra = extra(id, value)));
    let folder = |item: Item| Zip::app().item(item).bytes();
    let mut rows = vec![
        row("a symbolic link", Code::Symlink, mode(0o120_777)),
        row("a symbolic link to a folder", Code::Symlink, folder(Item::stored(b"a/", b"").mode(0o120_777))),
        row("an ASi link", Code::Symlink, link(0x756e, &[0; 14])),
        row("a PKWARE link", Code::Symlink, link(0x000d, &[b'x'; 20])),
    ];
    let special = [
        ("a pipe", mode(0o010_644)),
        ("a character device", mode(0o020_644)),
        ("a block device", mode(0o060_644)),
        ("a socket", mode(0o140_644)),
        ("a whiteout", mode(0o160_644)),
        ("set-user", mode(0o104_755)),
        ("set-group", mode(0o102_755)),
        ("sticky", mode(0o101_755)),
        ("a folder's mode", mode(0o040_755)),
        ("a volume label", attributes(0x08)),
        ("a device of DOS", attributes(0x40)),
        ("a folder of DOS", attributes(0x10)),
        ("a link of NTFS", attributes(0x400)),
        ("a link of NTFS with a Unix mode", attributes(0o100_644 << 16 | 0x400)),
        ("a file's mode of a folder", folder(Item::stored(b"a/", b"").mode(0o100_644))),
        ("a folder with a content", folder(Item::stored(b"a/", b"data"))),
        ("a folder with a compressed content", folder(Item::deflated(b"a/", b"data"))),
        ("a sticky folder", folder(Item::stored(b"a/", b"").mode(0o041_777))),
    ];
    rows.extend(special.into_iter().map(|(what, bytes)| row(what, Code::SpecialFile, bytes)));
    rows
}

/// Other readers extract the files that the service drops.
fn junk() -> Vec<Row> {
    let mut rows = all(
        Code::UnsafePath,
        &[
            "__MACOSX/../../evil.html",
            "__MACOSX/a\\b",
            "__MACOSX/\0x",
            "__MACOSX//x",
            "__MACOSX/./x",
            "__MACOSX/nul",
            "/.DS_Store",
            "../.DS_Store",
            "a/../../.DS_Store",
            "C:/.DS_Store",
            "x//Thumbs.db",
            "..\\..\\Thumbs.db/.DS_Store",
        ],
    );
    let item = |name: &[u8]| Item::stored(name, b"/etc/passwd");
    let one = |item: Item| Zip::app().item(item).bytes();
    for (what, name) in
        [("a folder", &b"__MACOSX/l"[..]), ("a file", b".DS_Store"), ("a file below", b"a/Thumbs.db")]
    {
        let link = one(item(name).mode(0o120_777));
        rows.push(row(format!("a link as {what} of a desktop"), Code::Symlink, link));
        let pipe = one(item(name).mode(0o010_644));
        rows.push(row(format!("a pipe as {what} of a desktop"), Code::SpecialFile, pipe));
    }
    let content = one(Item::stored(b"__MACOSX/", b"data"));
    rows.push(row("a folder of a desktop with a content", Code::SpecialFile, content));
    for (what, names) in [
        ("twice", &[".DS_Store", ".DS_Store"][..]),
        ("in two cases", &["A/.DS_Store", "a/.DS_Store"]),
        ("below a file", &["a/.DS_Store", "a"]),
        ("below a dropped file", &[".DS_Store", ".DS_Store/Thumbs.db"]),
    ] {
        rows.push(row(format!("a file of a desktop {what}"), Code::PathCollision, files(names)));
    }
    let other = [&[1, 0, 0, 0, 0][..], b"evil.html"].concat();
    let name = one(item(b".DS_Store").both(|header| header.extra = extra(0x7075, &other)));
    rows.push(row("a file of a desktop with another name", Code::UnsafePath, name));
    rows
}

fn reserved() -> Vec<Row> {
    all(
        Code::ReservedPath,
        &[
            "__service",
            "__service/x.js",
            "__Service/x.js",
            "__SERVICE",
            "＿＿service/x.js",
            "__ſervice/x.js",
            "%5f%5fservice/x.js",
            "%5F_service/x.js",
            ".well-known/security.txt",
            ".Well-Known/x",
            "_headers",
            "_redirects",
            "_worker.js",
            "_Headers",
            "_worker.js/index.js",
            "Service.App.json",
            "SERVICE.APP.JSON",
            "service.app.json/x",
            "ｓervice.app.json",
        ],
    )
}

fn index() -> Vec<Row> {
    let only = |names: &[&str]| names.iter().fold(Zip::default(), |zip, name| zip.file(name, "x")).bytes();
    let bytes = [
        ("an empty archive", Zip::default().bytes()),
        ("a folder around everything", only(&["dist/index.html", "dist/a.js"])),
        ("an index in upper case", only(&["INDEX.HTML"])),
        ("an index of another type", only(&["index.htm"])),
        ("an index in a folder", only(&["a/index.html", "b.js"])),
        ("only junk", only(&["__MACOSX/._index.html"])),
    ];
    bytes.into_iter().map(|(what, bytes)| row(what, Code::IndexMissing, bytes)).collect()
}

fn sensitive() -> Vec<Row> {
    all(
        Code::SensitiveFile,
        &[
            ".env",
            ".env.local",
            ".git/config",
            "a/.git/HEAD",
            ".htaccess",
            ".npmrc",
            "a/.ssh/x",
            "key.pem",
            "a/KEY.PEM",
            "id_rsa",
            "a/id_rsa",
            "id_ed25519",
            "cert.p12",
            "cert.pfx",
        ],
    )
}

#[test]
fn unsafe_or_ambiguous_names_are_rejected() {
    all_are_refused(&rows());
}

#[test]
fn ordinary_names_are_accepted() {
    let names = [
        "assets/app.3f2a1.js",
        "a b.css",
        "ä/ö.css",
        "日本語.txt",
        "a~b.js",
        "vendors~main.js",
        "console.js",
        "com10.js",
        "lpt.js",
        "nullable.js",
        "a..b.js",
        "...x/y".trim_start_matches('.'),
        "a+b,c;d=e@f.js",
        "(a)[b]{c}'d'!.js",
        "100%.txt",
        "a%20b.js",
        "$lib.js",
        "sub/_headers",
        "sub/service.app.json",
        "A/x.js",
        "a/y.js",
        "emoji-😀.png",
        "key.ts",
        "pem.js",
        "#a.js",
    ];
    let bundle = accepted(&files(&names));
    assert_eq!(bundle.files.len(), names.len() + 1);
    assert!(bundle.files.is_sorted_by(|a, b| a.path < b.path));
}

#[test]
fn junk_of_desktops_is_dropped_and_listed() {
    let zip = Zip::app().file("__MACOSX/._index.html", "x").file(".DS_Store", "x").file("img/.DS_Store", "x");
    let zip = zip.file("img/Thumbs.db", b"\xd0\xcf\x11\xe0").item(Item::stored(b"__MACOSX/", b""));
    let bundle = accepted(&zip.bytes());
    assert_eq!(bundle.dropped, [".DS_Store", "__MACOSX/._index.html", "img/.DS_Store", "img/Thumbs.db"]);
    assert_eq!(bundle.files.len(), 1);
}

#[test]
fn the_first_dropped_files_are_listed() {
    let junk = |count: usize| {
        (0..count).fold(Zip::app(), |zip, number| zip.file(format!("__MACOSX/{number:04}"), "x"))
    };
    assert_eq!(accepted(&junk(100).bytes()).dropped.len(), 100);
    let dropped = accepted(&junk(257).bytes()).dropped;
    assert_eq!((dropped.len(), dropped[99].as_str()), (101, "__MACOSX/0099"));
    assert_eq!(dropped[100], "and 157 more");
}

#[test]
fn junk_files_have_a_separate_file_limit() {
    let limits = bundle::Limits { files: 3, depth: 4, ..bundle::Limits::DEFAULT };
    let code = |bytes: &[u8]| match crate::build::check(bytes, &limits) {
        bundle::Verdict::Accepted(_) => None,
        bundle::Verdict::Refused(findings) => Some(findings[0].code),
    };
    let zip = Zip::app().file("a.js", "x").file("b.js", "x");
    let zip = zip.file(".DS_Store", "x").file("__MACOSX/a", "x").file("__MACOSX/b", "x");
    assert_eq!(code(&zip.bytes()), None);
    assert_eq!(code(&zip.clone().file("__MACOSX/c", "x").bytes()), Some(Code::TooManyFiles));
    let deep = Zip::app().file("__MACOSX/a/b/c/d", "x").bytes();
    assert_eq!(code(&deep), Some(Code::PathTooDeep));
    let long = Zip::app().file(format!("__MACOSX/{}", "a".repeat(256)), "x").bytes();
    assert_eq!(code(&long), Some(Code::PathTooLong));
}

#[test]
fn the_index_in_a_folder_has_a_hint() {
    let bytes = Zip::default().file("dist/index.html", "x").file("dist/a.js", "x").bytes();
    assert!(refused(&bytes)[0].detail.contains("folder `dist`"));
    let bytes = Zip::default().file("Index.html", "x").bytes();
    assert!(refused(&bytes)[0].detail.contains("`Index.html` must have the name `index.html`"));
}

#[test]
fn paths_in_findings_cannot_drive_a_terminal() {
    let findings = refused(&named("a\u{1b}[2J\u{202e}.js"));
    assert_eq!(findings[0].path.as_deref(), Some("a\\u{1b}[2J\\u{202e}.js"));
}

#[test]
fn folders_are_compared_within_the_deadline() {
    // The first sufficient time, in clock readings.
    let looks = |name: &str| {
        let zip = Zip::app().file(name, "x").bytes();
        let is_enough = |looks: &u32| {
            let time = std::time::Duration::from_millis(50) * *looks;
            !matches!(ticking_for(&zip, time), Err(bundle::CheckError::Overdue))
        };
        (1..1_000).find(is_enough).unwrap()
    };
    assert_eq!(looks(&format!("{}x.js", "a/".repeat(30))) - looks("x.js"), 30);
}

#[test]
fn collisions_name_the_other_path() {
    let findings = refused(&files(&["b.js", "B.js", "a", "a/x.js"]));
    let found: Vec<_> =
        findings.iter().map(|one| (one.path.as_deref().unwrap(), one.detail.as_str())).collect();
    let expected =
        [("a", "Another path has the folder `a`."), ("b.js", "Some systems take the path for `B.js`.")];
    assert_eq!(found, expected);
}
