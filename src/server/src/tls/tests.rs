//! A certificate that changes while in use.

use std::fs::{File, FileTimes};
use std::path::Path;

use kernel::ManualClock;
use rcgen::{CertificateParams, KeyPair};
use tempfile::TempDir;

use super::*;

/// Writes a new pair. Its files are `age` seconds newer than the first ones, because file system clocks are coarse.
fn write(folder: &Path, age: u64) -> Vec<u8> {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let certificate = params.self_signed(&key).unwrap();
    put(folder, "cert.pem", &certificate.pem(), age);
    put(folder, "key.pem", &key.serialize_pem(), age);
    certificate.der().to_vec()
}

fn put(folder: &Path, name: &str, text: &str, age: u64) {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000 + age);
    File::options().write(true).open(path).unwrap().set_times(FileTimes::new().set_modified(time)).unwrap();
}

fn in_use(tls: &Tls) -> Vec<u8> {
    tls.current.state.read().pair.cert.first().unwrap().to_vec()
}

#[tokio::test]
async fn changed_files_are_loaded_within_a_minute_if_usable() {
    let folder = TempDir::new().unwrap();
    let path = folder.path();
    let first = write(path, 0);
    let tls = Tls::load(&config::Tls { cert: path.join("cert.pem"), key: path.join("key.pem") }).unwrap();
    let clock = ManualClock::new(chrono::DateTime::UNIX_EPOCH);
    let watching = tokio::spawn(tls.clone().watch(Arc::new(clock.clone())));
    let problem = || tls.current.state.read().problem.clone();
    let until = async |done: &dyn Fn() -> bool| {
        for _ in 0..100_000 {
            if done() {
                return;
            }
            clock.advance(CHECK_EVERY);
            tokio::task::yield_now().await;
        }
        panic!("not loaded: {:?}", problem());
    };
    assert_eq!((in_use(&tls), problem()), (first, None));
    let second = write(path, 1);
    until(&|| in_use(&tls) == second).await;
    // Only one of the two files was replaced.
    put(path, "key.pem", &KeyPair::generate().unwrap().serialize_pem(), 2);
    until(&|| tls.is_outdated()).await;
    assert_eq!(in_use(&tls), second);
    std::fs::remove_file(path.join("cert.pem")).unwrap();
    until(&|| problem().is_some_and(|problem| problem.contains("cert.pem cannot be read"))).await;
    assert_eq!(in_use(&tls), second);
    let third = write(path, 3);
    until(&|| in_use(&tls) == third && problem().is_none()).await;
    // Files that were damaged and repaired with their old times; changing a mode, for example, changes no time.
    let [cert, key] = ["cert.pem", "key.pem"].map(|name| std::fs::read_to_string(path.join(name)).unwrap());
    put(path, "key.pem", "damaged", 4);
    until(&|| tls.is_outdated()).await;
    put(path, "cert.pem", &cert, 3);
    put(path, "key.pem", &key, 4);
    until(&|| problem().is_none()).await;
    watching.abort();
}

#[test]
fn errors_contain_no_line_of_the_file() {
    let folder = TempDir::new().unwrap();
    let path = folder.path();
    write(path, 0);
    let files = config::Tls { cert: path.join("cert.pem"), key: path.join("key.pem") };
    let key = std::fs::read_to_string(&files.key).unwrap();
    let secret = key.lines().nth(1).unwrap();
    // Keys that lost their line ends in an environment variable.
    for damaged in [key.replace('\n', " "), key.replace('\n', "\\n"), key.replace("-----END", "-----")] {
        std::fs::write(&files.key, &damaged).unwrap();
        let error = Tls::load(&files).err().unwrap();
        for text in [error.to_string(), format!("{error:?}")] {
            let bytes = format!("{:?}", secret.as_bytes());
            assert!(!text.contains(secret) && !text.contains(bytes.trim_matches(['[', ']'])), "{text}");
        }
    }
}
