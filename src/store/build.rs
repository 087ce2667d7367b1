//! `embed_migrations!` reads the folder at compile time and does not watch it. The fingerprint names the tests'
//! template database, so that a changed migration gets a new one.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::Path;

fn main() {
    let folder = Path::new("../../migrations");
    println!("cargo:rerun-if-changed={}", folder.display());
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path().join("up.sql"))
        .filter(|path| path.is_file())
        .collect();
    files.sort();
    let mut hasher = DefaultHasher::new();
    for file in files {
        println!("cargo:rerun-if-changed={}", file.display());
        file.to_string_lossy().hash(&mut hasher);
        std::fs::read(&file).unwrap_or_default().hash(&mut hasher);
    }
    println!("cargo:rustc-env=MIGRATIONS_FINGERPRINT={:016x}", hasher.finish());
}
