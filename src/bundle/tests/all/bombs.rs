//! Archives that inflate to large sizes: memory stays bounded, nothing is written, and the deadline holds.

use std::fs::File;
use std::io::{Cursor, SeekFrom, Write as _};
use std::process::Command;
use std::time::Duration;

use bundle::{CheckError, Code, Limits, Verdict};
use chrono::DateTime;
use flate2::{Compress, Compression, FlushCompress};
use kernel::{ManualClock, SystemClock};

use crate::build::{Item, Zip};

const MIB: usize = 1024 * 1024;

/// This many MiB of zeros, deflated as one repeated block.
fn zeros(mib: usize) -> Vec<u8> {
    let mut block = Vec::with_capacity(MIB);
    let mut compress = Compress::new(Compression::best(), false);
    compress.compress_vec(&vec![0; MIB], &mut block, FlushCompress::Full).unwrap();
    // A last block without content.
    [block.repeat(mib), vec![3, 0]].concat()
}

/// The peak memory of this process since [`reset_peak`].
fn peak() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() * 1024
}

/// Resets the peak memory to the current memory.
fn reset_peak() {
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
}

/// Names the archive for the measuring process. A process that has built the archive would have free memory, which
/// hides the check's usage.
const MEASURING_PROCESS: &str = "CALLBOARD_TEST_MEASURES";

/// Checks an archive in a separate process; the check is refused with `code` and takes less than `most` bytes. `test`
/// is the test's name.
#[expect(clippy::print_stdout, reason = "`--no-capture` shows what a check takes")]
fn costs(test: &str, most: usize, code: Option<Code>, bytes: impl FnOnce() -> Vec<u8>) {
    let Some(archive) = std::env::var_os(MEASURING_PROCESS) else {
        let mut archive = tempfile::NamedTempFile::new().unwrap();
        archive.write_all(&bytes()).unwrap();
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "--nocapture", test]).env(MEASURING_PROCESS, archive.path());
        let output = command.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains("1 passed"), "{output:?}");
        println!("{}", text.lines().find(|line| line.ends_with(" KiB")).unwrap_or_default());
        return;
    };
    let mut file = File::open(archive).unwrap();
    reset_peak();
    let before = peak();
    // Time does not advance, so the whole bundle is read even on a slow machine.
    let clock = ManualClock::new(DateTime::UNIX_EPOCH);
    let verdict = bundle::check(&mut file, &Limits::HIGHEST, &clock, bundle::TIME).unwrap();
    let memory = peak() - before;
    let found = match verdict {
        Verdict::Accepted(_) => None,
        Verdict::Refused(findings) => Some(findings[0].code),
    };
    println!("{test}: {} KiB", memory / 1024);
    assert_eq!(found, code);
    assert!(memory < most, "{memory} bytes");
}

/// A service's memory limit.
const SERVICE_MEMORY_LIMIT: usize = 128 * MIB;

/// 2 GiB of zeros in a file that declares another size.
fn lying(size: u32) -> Vec<u8> {
    Zip::app()
        .item(Item::stored(b"a.bin", b"").packed(8, zeros(2048)).both(|header| header.size = size))
        .bytes()
}

#[test]
fn a_file_of_2_gib_takes_little_memory() {
    let test = "bombs::a_file_of_2_gib_takes_little_memory";
    costs(test, 8 * MIB, Some(Code::FileTooLarge), || lying(2 << 30));
}

#[test]
fn a_file_of_2_gib_that_declares_10_bytes_takes_little_memory() {
    let test = "bombs::a_file_of_2_gib_that_declares_10_bytes_takes_little_memory";
    costs(test, 8 * MIB, Some(Code::FileTooLarge), || lying(10));
}

#[test]
fn many_files_of_25_mib_take_little_memory() {
    let parts = || {
        let part = zeros(25);
        (0..60).fold(Zip::app(), |zip, number| {
            let item = Item::stored(format!("{number}.bin").as_bytes(), b"").packed(8, part.clone());
            zip.item(item.both(|header| {
                header.size = u32::try_from(25 * MIB).unwrap();
                header.crc = 0x5a5a_5a5a;
            }))
        })
    };
    let test = "bombs::many_files_of_25_mib_take_little_memory";
    costs(test, 8 * MIB, Some(Code::CrcMismatch), || parts().bytes());
}

#[test]
fn many_files_with_long_names_take_little_memory() {
    let many = || {
        (0..20_000).fold(Zip::app(), |zip, number| {
            zip.item(Item::stored(format!("{number:0>200}").as_bytes(), b"x"))
        })
    };
    let test = "bombs::many_files_with_long_names_take_little_memory";
    costs(test, SERVICE_MEMORY_LIMIT, Some(Code::TooManyFiles), || many().bytes());
}

#[test]
fn names_that_grow_when_they_are_folded_take_little_memory() {
    // Each character folds to eighteen.
    let many = || {
        (0..3_000).fold(Zip::app(), |zip, number| {
            let folder = "\u{fdfa}".repeat(80);
            zip.item(Item::stored(format!("{number}{folder}/{folder}/{folder}/x").as_bytes(), b"x"))
        })
    };
    let test = "bombs::names_that_grow_when_they_are_folded_take_little_memory";
    costs(test, 20 * MIB, None, || many().bytes());
}

#[test]
fn names_of_very_many_folders_take_little_memory() {
    // 8 MiB of names, the maximum for a directory.
    let many = || {
        (0..120).fold(Zip::app(), |zip, number| {
            let name = format!("{number:03}{}", "/a".repeat(32_766));
            zip.item(Item::stored(name.as_bytes(), b"x"))
        })
    };
    let test = "bombs::names_of_very_many_folders_take_little_memory";
    costs(test, SERVICE_MEMORY_LIMIT, Some(Code::PathTooDeep), || many().bytes());
}

/// Checks a 5 MiB page that repeats a part.
fn page_costs(test: &str, most: usize, part: &str) {
    costs(test, most, None, || {
        let page = format!("<!doctype html>{}", part.repeat((5 * MIB - 15) / part.len()));
        Zip::default().file("index.html", page).bytes()
    });
}

#[test]
fn a_page_of_scripts_takes_little_memory() {
    let test = "bombs::a_page_of_scripts_takes_little_memory";
    page_costs(test, 48 * MIB, "<script src=a></script>");
}

#[test]
fn a_page_of_styles_takes_little_memory() {
    let test = "bombs::a_page_of_styles_takes_little_memory";
    page_costs(test, 48 * MIB, "<style>a</style>");
}

#[test]
fn a_page_of_attributes_takes_little_memory() {
    let test = "bombs::a_page_of_attributes_takes_little_memory";
    let tag: String = (0..1000).map(|number| format!(" {number}")).collect();
    page_costs(test, 48 * MIB, &format!("<p{tag}>"));
}

#[test]
fn a_page_of_text_takes_little_memory() {
    let test = "bombs::a_page_of_text_takes_little_memory";
    page_costs(test, 48 * MIB, &format!("<noscript><p>{}</noscript>", "a".repeat(80)));
}

/// A reader that advances the clock.
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

#[test]
fn reading_the_structure_ends_at_the_deadline() {
    let clock = ManualClock::new(DateTime::UNIX_EPOCH);
    // The last entry is wrong, so no further stage runs.
    let zip = (0..20).fold(Zip::app(), |zip, number| zip.file(number.to_string(), "x"));
    let zip = zip.item(Item::stored(b"z", b"x").local(|header| header.time += 1));
    let check = |seconds: u64| {
        let mut slow = Slow(Cursor::new(zip.bytes()), clock.clone());
        bundle::check(&mut slow, &Limits::DEFAULT, &clock, Duration::from_secs(seconds))
    };
    assert!(matches!(check(1_000), Ok(Verdict::Refused(_))));
    let late = check(20);
    assert!(matches!(late, Err(CheckError::Overdue)), "{late:?}");
}

#[test]
fn a_check_ends_at_its_deadline() {
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
