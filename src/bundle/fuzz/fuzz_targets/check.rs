//! Arbitrary bytes: a check returns the same result twice, and an accepted bundle can be read.
#![no_main]

use std::io::Cursor;

use bundle::{Limits, Verdict};
use kernel::SystemClock;
use libfuzzer_sys::fuzz_target;

const LIMITS: Limits = Limits { compressed: 1 << 20, expanded: 1 << 22, files: 100, file: 1 << 21, depth: 8 };

fuzz_target!(|bytes: &[u8]| {
    let check = || bundle::check(&mut Cursor::new(bytes), &LIMITS, &SystemClock::new(), bundle::TIME);
    match (check(), check()) {
        (Ok(Verdict::Refused(first)), Ok(Verdict::Refused(second))) => assert_eq!(first, second),
        (Ok(Verdict::Accepted(first)), Ok(Verdict::Accepted(second))) => {
            assert_eq!(first.files.len(), second.files.len());
            for file in &first.files {
                let mut archive = Cursor::new(bytes);
                let mut reader = file.open(&mut archive).expect("an accepted file can be read");
                let count = std::io::copy(&mut reader, &mut std::io::sink()).expect("it is as it was checked");
                assert_eq!(count, file.size);
            }
        }
        (first, second) => panic!("{first:?} and {second:?}"),
    }
});
