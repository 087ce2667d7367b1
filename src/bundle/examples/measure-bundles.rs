//! Measures checks of the largest bundles: duration and resident memory growth. `cargo xtask bench bundles`.
#![allow(
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a program that measures"
)]

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use bundle::{Limits, TIME, Verdict};
use kernel::{Clock as _, SystemClock};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

const MIB: usize = 1024 * 1024;
/// Archive size without the directory: the default limit of a service.
const ARCHIVE: usize = 49 * MIB;
const AIM: Duration = Duration::from_secs(3);
const AIM_MIB: usize = 128;

/// A deterministic pseudorandom generator.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        let mut bytes: Vec<u8> = (0..count / 8 + 1).flat_map(|_| self.next().to_le_bytes()).collect();
        bytes.truncate(count);
        bytes
    }

    /// Words from a small vocabulary; compresses to about a quarter.
    fn text(&mut self, count: usize) -> String {
        let mut text = String::new();
        while text.len() < count {
            let word = self.next() % 4_096;
            text.push_str(&format!("w{word:x} "));
        }
        text.truncate(count);
        text
    }

    fn page(&mut self, count: usize) -> String {
        let mut page = "<!doctype html><title>Page</title><script>start()</script>".to_owned();
        while page.len() < count {
            let (class, text) = (self.next() % 512, self.text(60));
            page.push_str(&format!("<div class=\"c{class}\"><a href=\"/a/{class}\">{text}</a></div>\n"));
        }
        page
    }
}

/// The kind of files in a bundle.
#[derive(Clone, Copy)]
enum Content {
    Pictures,
    Scripts,
    Pages,
}

const CONTENTS: [(&str, Content); 3] =
    [("pictures", Content::Pictures), ("scripts", Content::Scripts), ("pages", Content::Pages)];

/// Writes an archive of about [`ARCHIVE`] bytes, or with as many files or bytes as allowed.
fn write(path: &Path, content: Content) {
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    let mut writer = ZipWriter::new(File::create(path).unwrap());
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
    writer.start_file("index.html", options).unwrap();
    writer.write_all(numbers.page(20_000).as_bytes()).unwrap();
    let (mut expanded, most) = (20_000, 199 * MIB);
    for number in 0..4_990 {
        let (name, bytes) = match content {
            Content::Pictures => ("png", numbers.bytes(60_000)),
            Content::Scripts => ("js", numbers.text(40_000).into_bytes()),
            Content::Pages => ("html", numbers.page(40_000).into_bytes()),
        };
        expanded += bytes.len();
        let size = usize::try_from(std::fs::metadata(path).unwrap().len()).unwrap();
        if expanded > most || size > ARCHIVE {
            break;
        }
        writer.start_file(format!("assets/{number}.{name}"), options).unwrap();
        writer.write_all(&bytes).unwrap();
    }
    writer.finish().unwrap();
}

/// This process's peak memory.
fn peak() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() * 1024
}

/// Checks an archive repeatedly, in a process that has done nothing else.
fn measure(name: &str, path: &Path, checks: usize) {
    let clock = SystemClock::new();
    let before = peak();
    let mut times = Vec::new();
    let mut sizes = (0, 0, 0);
    for _ in 0..checks {
        let began = clock.monotonic();
        let verdict = bundle::check(&mut File::open(path).unwrap(), &Limits::DEFAULT, &clock, TIME).unwrap();
        times.push(clock.monotonic().saturating_sub(began));
        let Verdict::Accepted(accepted) = verdict else { panic!("{name} is refused: {verdict:?}") };
        sizes = (accepted.size, accepted.expanded_size, accepted.files.len());
    }
    let grown = (peak() - before) / MIB;
    times.sort_unstable();
    let at = |percent: usize| times[(times.len() * percent).div_ceil(100).max(1) - 1];
    let (size, expanded, files) = sizes;
    println!(
        "{name:<10} {:>4} MiB, {:>4} MiB expanded, {files:>5} files: p50 {:.2} s, p99 {:.2} s, memory {grown} MiB more",
        size >> 20,
        expanded >> 20,
        at(50).as_secs_f64(),
        at(99).as_secs_f64(),
    );
    assert!(at(99) <= AIM && grown <= AIM_MIB, "the aims are {} s and {AIM_MIB} MiB", AIM.as_secs());
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [name, path, checks] = arguments.as_slice() {
        return measure(name, Path::new(path), checks.parse().unwrap());
    }
    let checks = arguments.first().map_or("100", String::as_str);
    let folder = tempfile::tempdir().unwrap();
    for (name, content) in CONTENTS {
        let path = folder.path().join(name);
        write(&path, content);
        let program = std::env::current_exe().unwrap();
        let status = Command::new(program).arg(name).arg(&path).arg(checks).status().unwrap();
        assert!(status.success(), "{name}");
    }
}
