//! Archives that the package writes itself.

use std::io::{Cursor, Read as _};

use bundle::{Code, Packer};

use crate::build::{accepted, refused};

const FILE: u16 = 0o100_644;

fn packed(entries: &[(&str, u16, &[u8])]) -> Vec<u8> {
    let mut packer = Packer::default();
    for (path, mode, content) in entries {
        packer.add(path.as_bytes(), *mode, content).unwrap();
    }
    packer.finish().unwrap()
}

#[test]
fn packed_files_are_accepted_and_have_the_same_archive() {
    let text = b"a()".repeat(50_000);
    let files = [("index.html", FILE, &b"<p>Hi"[..]), ("js/\u{e9}.js", FILE, &text), ("none.txt", FILE, b"")];
    let bytes = packed(&files);
    assert_eq!(bytes, packed(&files));
    let bundle = accepted(&bytes);
    assert_eq!(bundle.files.len(), files.len());
    for (file, (path, _, content)) in bundle.files.iter().zip(files) {
        let mut read = Vec::new();
        file.open(&mut Cursor::new(&bytes)).unwrap().read_to_end(&mut read).unwrap();
        assert_eq!((file.path.as_str(), read.as_slice()), (path, content));
    }
}

#[test]
fn packed_links_are_links() {
    let findings = refused(&packed(&[("a", 0o120_777, b"/etc/passwd"), ("index.html", FILE, b"<p>")]));
    assert_eq!((findings[0].code, findings[0].path.as_deref()), (Code::Symlink, Some("a")));
}
