//! Archives that inflate to much: memory stays bounded, nothing is written, and the deadline holds.

use std::io::{Cursor, Seek as _, SeekFrom, Write as _};
use std::time::Duration;

use bundle::{CheckError, Code, Limits, Verdict};
use chrono::DateTime;
use flate2::{Compress, Compression, FlushCompress};
use kernel::{ManualClock, SystemClock};

use crate::build::{Item, Zip};

const MIB: usize = 1024 * 1024;

/// Zeros of this many MiB, deflated: one block again and again.
fn zeros(mib: usize) -> Vec<u8> {
    let mut block = Vec::with_capacity(MIB);
    let mut compress = Compress::new(Compression::best(), false);
    compress.compress_vec(&vec![0; MIB], &mut block, FlushCompress::Full).unwrap();
    // A last block without content.
    [block.repeat(mib), vec![3, 0]].concat()
}

/// The most memory that this process has had.
fn peak() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() * 1024
}

/// Checks an archive in a file; returns the first code and how much memory that took.
fn cost(bytes: Vec<u8>) -> (Option<Code>, usize) {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&bytes).unwrap();
    file.seek(SeekFrom::Start(0)).unwrap();
    drop(bytes);
    let before = peak();
    let verdict =
        bundle::check(&mut file, &Limits::HIGHEST, &SystemClock::new(), Duration::from_secs(60)).unwrap();
    let code = match verdict {
        Verdict::Accepted(_) => None,
        Verdict::Refused(findings) => Some(findings[0].code),
    };
    (code, peak() - before)
}

#[test]
fn bombs_take_little_memory() {
    let bomb = zeros(2048);
    let lying = |size: u32| {
        Zip::app()
            .item(Item::stored(b"a.bin", b"").packed(8, bomb.clone()).both(|header| header.size = size))
            .bytes()
    };
    let part = zeros(25);
    let parts = (0..60).fold(Zip::app(), |zip, number| {
        let item = Item::stored(format!("{number}.bin").as_bytes(), b"").packed(8, part.clone());
        zip.item(item.both(|header| {
            header.size = u32::try_from(25 * MIB).unwrap();
            header.crc = 0x5a5a_5a5a;
        }))
    });
    let many = (0..20_000)
        .fold(Zip::app(), |zip, number| zip.item(Item::stored(format!("{number:0>200}").as_bytes(), b"x")));
    for (what, bytes, code) in [
        ("2 GiB in one file", lying(2 << 30), Code::FileTooLarge),
        ("2 GiB that say 10 bytes", lying(10), Code::FileTooLarge),
        ("60 files of 25 MiB", parts.bytes(), Code::CrcMismatch),
        ("20,001 files with long names", many.bytes(), Code::TooManyFiles),
    ] {
        let (found, memory) = cost(bytes);
        assert_eq!(found, Some(code), "{what}");
        assert!(memory < 128 * MIB, "{what}: {memory} bytes");
    }
}

#[test]
fn a_check_ends_at_its_deadline() {
    /// A reader in which time passes.
    struct Slow(Cursor<Vec<u8>>, ManualClock);

    impl std::io::Read for Slow {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            self.1.advance(Duration::from_secs(1));
            self.0.read(buffer)
        }
    }

    impl std::io::Seek for Slow {
        fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
            self.0.seek(to)
        }
    }

    let clock = ManualClock::new(DateTime::UNIX_EPOCH);
    let zip = (0..20).fold(Zip::app(), |zip, number| zip.file(number.to_string(), "x"));
    let mut slow = Slow(Cursor::new(zip.bytes()), clock.clone());
    let result = bundle::check(&mut slow, &Limits::DEFAULT, &clock, Duration::from_secs(30));
    assert!(matches!(result, Err(CheckError::Overdue)), "{result:?}");
}

#[test]
fn an_archive_that_cannot_be_read_is_an_error() {
    struct Broken(Cursor<Vec<u8>>);

    impl std::io::Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("the disk is gone"))
        }
    }

    impl std::io::Seek for Broken {
        fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
            self.0.seek(to)
        }
    }

    let mut broken = Broken(Cursor::new(Zip::app().bytes()));
    let result = bundle::check(&mut broken, &Limits::DEFAULT, &SystemClock::new(), bundle::TIME);
    assert!(
        matches!(&result, Err(CheckError::Io(error)) if error.to_string() == "the disk is gone"),
        "{result:?}"
    );
}
