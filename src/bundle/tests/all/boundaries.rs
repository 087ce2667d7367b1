//! Each limit: just below it, at it and just above it.

use bundle::{Code, Limits, Verdict};

use crate::build::{Item, Zip, check, deflate};
use crate::hostile::{Row, all_are_refused, row};

const SMALL: Limits = Limits { compressed: 4096, expanded: 3000, files: 5, file: 1000, depth: 4 };

fn code(bytes: &[u8]) -> Option<Code> {
    match check(bytes, &SMALL) {
        Verdict::Accepted(_) => None,
        Verdict::Refused(findings) => Some(findings[0].code),
    }
}

/// Checks a limit at these three sizes.
fn around(limit: usize, above: Code, build: impl Fn(usize) -> Vec<u8>) {
    let codes = [limit - 1, limit, limit + 1].map(|size| code(&build(size)));
    assert_eq!(codes, [None, None, Some(above)], "{}", above.as_str());
}

/// Rows that use the default limits.
pub(crate) fn rows() -> Vec<Row> {
    let deep = |depth: usize| vec!["a"; depth].join("/");
    let long = [vec!["a".repeat(250); 4].join("/"), "b".repeat(21)].join("/");
    let many = (0..5001)
        .fold(Zip::app(), |zip, number| zip.item(Item::stored(format!("{number}").as_bytes(), b"x")));
    let directory = (0..130).fold(Zip::app(), |zip, number| {
        let item = Item::stored(format!("{number}").as_bytes(), b"x");
        zip.item(item.central(|header| header.extra = crate::build::extra(0xa11e, &[0; 65_000])))
    });
    let zeros = deflate(&vec![0; 25 * 1024 * 1024]);
    let large = |name: &str, more: bool| {
        let mut content = vec![0; 25 * 1024 * 1024];
        if more {
            content.push(0);
        }
        let packed = if more { deflate(&content) } else { zeros.clone() };
        Item::stored(name.as_bytes(), &content).packed(8, packed)
    };
    let expanded = (0..9).fold(Zip::app(), |zip, number| zip.item(large(&number.to_string(), false)));
    let lying = large("a.bin", true).both(|header| header.size = 10);
    vec![
        row("33 names", Code::PathTooDeep, Zip::app().file(deep(33), "x").bytes()),
        row("a path of 1,025 bytes", Code::PathTooLong, Zip::app().file(long, "x").bytes()),
        row("a name of 256 bytes", Code::PathTooLong, Zip::app().file("a".repeat(256), "x").bytes()),
        row("5,002 files", Code::TooManyFiles, many.bytes()),
        row("a directory above 8 MiB", Code::DirectoryTooLarge, directory.bytes()),
        row("a file above 25 MiB", Code::FileTooLarge, Zip::app().item(large("a.bin", true)).bytes()),
        row("a file above 25 MiB that says 10 bytes", Code::FileTooLarge, Zip::app().item(lying).bytes()),
        row("files above 200 MiB", Code::ExpandedTooLarge, expanded.bytes()),
        row("an archive above 50 MiB", Code::BundleTooLarge, vec![0; 50 * 1024 * 1024 + 1]),
    ]
}

#[test]
fn archives_above_the_default_limits_are_rejected() {
    all_are_refused(&rows());
}

#[test]
fn the_size_of_the_archive_has_a_limit() {
    // Extra fields enlarge the archive without other effects.
    let padded = |length: usize| {
        let padding = crate::build::extra(0xa11e, &vec![0; length]);
        Zip::app().item(Item::stored(b"a.bin", b"x").local(|header| header.extra = padding)).bytes()
    };
    let empty = padded(0).len();
    around(4096, Code::BundleTooLarge, |size| padded(size - empty));
}

#[test]
fn all_files_together_have_a_limit() {
    let page = "<!doctype html><title>App</title><p>Hello".len();
    around(3000, Code::ExpandedTooLarge, |size| {
        let mut rest = size - page;
        let mut zip = Zip::app();
        for name in ["a.bin", "b.bin", "c.bin"] {
            let part = rest.min(1000);
            rest -= part;
            zip = zip.file(name, vec![b'x'; part]);
        }
        zip.bytes()
    });
}

#[test]
fn one_file_has_a_limit() {
    around(1000, Code::FileTooLarge, |size| Zip::app().file("a.bin", vec![b'x'; size]).bytes());
}

#[test]
fn the_number_of_files_has_a_limit() {
    around(5, Code::TooManyFiles, |count| {
        let folder = Zip::app().item(Item::stored(b"folder/", b"")).file("__MACOSX/x", "junk");
        (1..count).fold(folder, |zip, number| zip.file(format!("{number}"), "x")).bytes()
    });
}

#[test]
fn the_depth_of_a_path_has_a_limit() {
    around(4, Code::PathTooDeep, |depth| Zip::app().file(vec!["a"; depth].join("/"), "x").bytes());
}

#[test]
fn the_length_of_a_path_and_of_its_names_have_limits() {
    around(255, Code::PathTooLong, |length| Zip::app().file("a".repeat(length), "x").bytes());
    let limits = Limits { depth: 32, ..SMALL };
    let path = |length: usize| {
        let folders = vec!["a".repeat(200); 5].join("/");
        format!("{folders}/{}", "b".repeat(length - folders.len() - 1))
    };
    let codes =
        [1023, 1024, 1025].map(|length| match check(&Zip::app().file(path(length), "x").bytes(), &limits) {
            Verdict::Accepted(_) => None,
            Verdict::Refused(findings) => Some(findings[0].code),
        });
    assert_eq!(codes, [None, None, Some(Code::PathTooLong)]);
}

#[test]
fn the_directory_has_a_limit() {
    let of = |bytes: usize| {
        // Each entry fills the directory with an extra field; the last one adds the rest.
        let directory = |zip: &Zip| -> usize {
            zip.items.iter().map(|item| 46 + item.central.name.len() + item.central.extra.len()).sum()
        };
        let padded = |name: String, length: usize| {
            let padding = crate::build::extra(0xa11e, &vec![0; length]);
            Item::stored(name.as_bytes(), b"x").central(|header| header.extra = padding)
        };
        let mut zip = Zip::app();
        for number in 0..128 {
            zip = zip.item(padded(format!("{number:03}"), 65_000));
        }
        let missing = bytes - directory(&zip) - 46 - 3 - 4;
        zip.item(padded("end".to_owned(), missing)).bytes()
    };
    let limit = 8 * 1024 * 1024;
    let codes = [limit - 1, limit, limit + 1].map(|bytes| match check(&of(bytes), &Limits::DEFAULT) {
        Verdict::Accepted(_) => None,
        Verdict::Refused(findings) => Some(findings[0].code),
    });
    assert_eq!(codes, [None, None, Some(Code::DirectoryTooLarge)]);
}

#[test]
fn a_limit_that_is_reached_first_hides_damage_after_it() {
    let damaged = Item::deflated(b"b.bin", b"x").both(|header| header.crc ^= 1);
    let large = Item::deflated(b"a.bin", &[b'x'; 1001]);
    let limit_first = Zip::app().item(large.clone()).item(damaged.clone());
    assert_eq!(code(&limit_first.bytes()), Some(Code::FileTooLarge));
    let damage_first = Zip::app().item(damaged).item(large);
    assert_eq!(code(&damage_first.bytes()), Some(Code::CrcMismatch));
}

#[test]
fn stages_precede_each_other() {
    let name = Zip::app().file("../a", "x").file("b.exe", "x");
    assert_eq!(code(&name.clone().bytes()), Some(Code::UnsafePath));
    let limit = name.clone().file("c.bin", vec![b'x'; 1001]);
    assert_eq!(code(&limit.bytes()), Some(Code::FileTooLarge));
    let damage = name.item(Item::stored(b"c.bin", b"x").both(|header| header.crc ^= 1));
    assert_eq!(code(&damage.bytes()), Some(Code::CrcMismatch));
}
