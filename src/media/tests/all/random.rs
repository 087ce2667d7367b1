//! Any bytes in any pieces.

use media::{Detector, file_name};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

use crate::samples::{all, detect_in};

const NAMES: [&str; 3] = ["a", "a.md", "a.json"];

fn beginnings() -> impl Strategy<Value = Vec<u8>> {
    let marks: [&[u8]; 12] = [
        b"",
        b"<!--",
        b"-->",
        b"<",
        b"%PDF-1.",
        b"PK\x03\x04",
        b"PK\x01\x02",
        b"hdlr\0\0\0\0\0\0\0\0vide",
        b"\xff\xfb\x90",
        b"OggS\0\x02",
        b"\xef\xbb\xbf",
        b"\xd0\xcf\x11\xe0",
    ];
    let part = prop_oneof![
        vec(any::<u8>(), 0..40),
        (0..marks.len()).prop_map(move |at| marks[at].to_vec()),
        "[ -~é\n]{0,20}".prop_map(String::into_bytes),
        any::<Index>().prop_map(|at| at.get(&all()).2.clone()),
        (any::<u8>(), 0_usize..5_000).prop_map(|(byte, count)| vec![byte; count]),
    ];
    vec(part, 0..5).prop_map(|parts| parts.concat())
}

fn check(bytes: &[u8], cuts: &[Index]) -> Result<(), TestCaseError> {
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
    cuts.sort_unstable();
    for name in NAMES {
        let whole = detect_in(bytes, name, bytes.len().max(1));
        let (mut detector, mut from, mut refused) = (Detector::new(), 0, false);
        for cut in cuts.iter().copied().chain([bytes.len()]) {
            detector.push(&bytes[from..cut]);
            prop_assert!(detector.is_refused() || !refused);
            (from, refused) = (cut, detector.is_refused());
        }
        let media = detector.finish(name);
        prop_assert_eq!(media, whole);
        prop_assert!(!refused || media.is_none());
    }
    Ok(())
}

proptest! {
    #[test]
    fn pieces_do_not_change_the_type(bytes in beginnings(), cuts in vec(any::<Index>(), 0..12)) {
        check(&bytes, &cuts)?;
        prop_assert_eq!(detect_in(&bytes, "a", 1), detect_in(&bytes, "a", bytes.len().max(1)));
    }

    #[test]
    fn damaged_files_do_not_panic(
        at in any::<Index>(), changes in vec((any::<Index>(), any::<u8>()), 1..8), cuts in vec(any::<Index>(), 0..6),
    ) {
        let mut bytes = at.get(&all()).2.clone();
        for (place, byte) in changes {
            *place.get_mut(&mut bytes) = byte;
        }
        check(&bytes, &cuts)?;
    }

    #[test]
    fn texts_of_letters_are_accepted(text in "[a-zà-ÿ😀 \n]{1,300}", cut in any::<Index>()) {
        check(text.as_bytes(), &[cut])?;
        prop_assert!(detect_in(text.as_bytes(), "a", 3).is_some());
    }

    #[test]
    fn names_are_safe(raw in "(\\PC|[./\\\\ \u{0}\u{200d}\u{202e}\u{301}\u{fe0f}😀a]){0,300}") {
        let name = file_name(&raw);
        prop_assert!(!name.is_empty() && name.chars().count() <= 200);
        let unsafe_letter = |letter: char| letter.is_control() || matches!(letter, '/' | '\\' | '\u{202e}');
        prop_assert_eq!(name.find(unsafe_letter), None);
        prop_assert!(name.trim() == name && !name.ends_with('.'));
        prop_assert_eq!(file_name(&name), name);
    }
}
