//! The modules without page access, tested where tests are fast: in Node.

use std::path::Path;
use std::process::Command;

#[test]
fn the_unit_tests_of_the_modules_pass() {
    if let Ok(line) = std::env::var("CALLBOARD_MISSING_NODE") {
        panic!("Node is not here; this gets it: {line}");
    }
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("pages");
    let files = std::fs::read_dir(&tests).unwrap().map(|file| file.unwrap().path());
    let files: Vec<_> = files.filter(|file| file.to_string_lossy().ends_with(".test.js")).collect();
    assert!(files.len() >= 3, "{files:?}");
    let output = Command::new("node").arg("--test").args(&files).output().expect("node starts");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("# fail 0") || text.contains("fail 0"), "{text}");
}
