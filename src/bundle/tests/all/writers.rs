//! Archives from common writers, each accepted with the same files.

use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::build::accepted;

const FILES: [(&str, &str); 4] = [
    ("index.html", "<!doctype html>\r\n<title>App</title>\r\n<p>Hello"),
    ("assets/app.js", "console.log('a long enough line to compress, to compress, to compress');"),
    ("assets/img/leer.txt", ""),
    ("ünïcode/ä.css", "p { color: red }"),
];

/// A folder with the files.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (path, content) in FILES {
        let path = folder.path().join("app").join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    folder
}

fn is_complete(archive: &[u8], files: &[(&str, &str)]) {
    let bundle = accepted(archive);
    let mut expected: Vec<(&str, u64)> =
        files.iter().map(|(path, content)| (*path, u64::try_from(content.len()).unwrap())).collect();
    expected.sort_unstable();
    let found: Vec<(&str, u64)> = bundle.files.iter().map(|file| (file.path.as_str(), file.size)).collect();
    assert_eq!(found, expected);
}

/// A test whose tool is missing fails with the install command.
fn needs(name: &str) {
    if let Ok(line) = std::env::var(format!("CALLBOARD_MISSING_{name}")) {
        panic!("{name} is missing: run `{line}`");
    }
}

fn output(command: &mut Command) -> Vec<u8> {
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output().unwrap();
    assert!(output.status.success(), "{command:?}");
    output.stdout
}

/// Runs a script that writes the archive to a path or, with `-`, to standard output.
fn script(program: &str, name: &str, form: &str) -> Vec<u8> {
    let folder = folder();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/others").join(name);
    let to = folder.path().join("app.zip");
    let mut command = Command::new(program);
    command.arg(script).arg(form).arg(folder.path().join("app")).arg(&to);
    if let Ok(tools) = std::env::var("CALLBOARD_ARCHIVERS") {
        command.env("NODE_PATH", tools);
    }
    let printed = output(&mut command);
    if to.exists() { std::fs::read(to).unwrap() } else { printed }
}

#[test]
fn archives_of_python_are_accepted() {
    needs("PYTHON3");
    for form in ["deflated", "stored", "pipe", "folders"] {
        is_complete(&script("python3", "write.py", form), &FILES);
    }
}

/// Runs Info-ZIP in the folder `app`.
fn info_zip(folder: &TempDir, arguments: &[&str]) -> Vec<u8> {
    let to = folder.path().join("app.zip");
    let mut command = Command::new("zip");
    command
        .env("LC_ALL", "C.UTF-8")
        .current_dir(folder.path().join("app"))
        .args(arguments)
        .arg("-q")
        .arg(&to);
    output(command.arg("."));
    std::fs::read(to).unwrap()
}

#[test]
fn archives_of_info_zip_are_accepted() {
    needs("ZIP");
    for arguments in [&["-r"][..], &["-r", "-X"], &["-r", "-0"], &["-r", "-9", "-D"]] {
        let folder = folder();
        std::fs::remove_dir_all(folder.path().join("app/ünïcode")).unwrap();
        is_complete(&info_zip(&folder, arguments), &FILES[..3]);
    }
}

/// It writes UTF-8 on Linux, but does not say so.
#[test]
fn non_ascii_names_of_info_zip_are_rejected() {
    needs("ZIP");
    let findings = crate::build::refused(&info_zip(&folder(), &["-r"]));
    assert!(findings.iter().all(|finding| finding.code == bundle::Code::NameNotUtf8) && !findings.is_empty());
}

#[test]
fn archives_of_jszip_are_accepted() {
    needs("ARCHIVERS");
    for form in ["jszip", "jszip-stream", "jszip-store"] {
        is_complete(&script("node", "write.cjs", form), &FILES);
    }
}

#[test]
fn archives_of_archiver_are_accepted() {
    needs("ARCHIVERS");
    for form in ["archiver", "archiver-store"] {
        is_complete(&script("node", "write.cjs", form), &FILES);
    }
}

#[test]
fn archives_of_yazl_and_fflate_are_accepted() {
    needs("ARCHIVERS");
    for form in ["yazl", "fflate"] {
        is_complete(&script("node", "write.cjs", form), &FILES);
    }
}

#[test]
fn archives_of_the_crate_zip_are_accepted() {
    use std::io::{Cursor, Write as _};
    use zip::write::SimpleFileOptions;
    use zip::{CompressionMethod, ZipWriter};

    for method in [CompressionMethod::Stored, CompressionMethod::Deflated] {
        let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
        let options = SimpleFileOptions::default().compression_method(method);
        writer.add_directory("assets/", options).unwrap();
        for (path, content) in FILES {
            writer.start_file(path, options).unwrap();
            writer.write_all(content.as_bytes()).unwrap();
        }
        is_complete(&writer.finish().unwrap().into_inner(), &FILES);
    }
}
