//! Files in `deploy/` whose programs no test starts: validated by the programs' own checkers.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use super::{replace_text, require_program, run, shipped, text_of};

#[test]
fn the_systemd_unit_is_valid_and_hardened() {
    require_program("systemd-analyze");
    let folder = tempfile::tempdir().unwrap();
    let unit = folder.path().join("callboard.service");
    let mut text = text_of("callboard.service");
    // The verification requires the program to exist.
    replace_text(&mut text, "/usr/local/bin/callboard", "/bin/true");
    fs::write(&unit, &text).unwrap();
    let output = run(Command::new("systemd-analyze").arg("verify").arg("--man=no").arg(&unit));
    assert_eq!(output, "", "{output}");
    // Fails for an exposure above 4.0.
    run(Command::new("systemd-analyze").args(["security", "--offline=true", "--threshold=40"]).arg(&unit));
    // The system calls that sandbox workers need (decision 11) are allowed.
    let allowed = allowed_calls();
    for call in ["seccomp", "prctl", "setrlimit", "prlimit64", "setpriority", "clone", "clone3", "execve"] {
        assert!(allowed.contains(call), "{call}");
    }
    for call in ["mount", "ptrace", "bpf", "keyctl", "setuid", "chown"] {
        assert!(!allowed.contains(call), "{call}");
    }
}

/// The system calls that the unit's filter allows.
fn allowed_calls() -> BTreeSet<String> {
    let mut allowed = BTreeSet::new();
    for line in text_of("callboard.service").lines() {
        let Some(list) = line.strip_prefix("SystemCallFilter=") else { continue };
        let (denies, list) = list.strip_prefix('~').map_or((false, list), |list| (true, list));
        for call in list.split_whitespace().flat_map(calls_in) {
            if denies {
                allowed.remove(&call);
            } else {
                allowed.insert(call);
            }
        }
    }
    allowed
}

/// A call, or the calls in a set.
fn calls_in(name: &str) -> Vec<String> {
    if !name.starts_with('@') {
        return vec![name.to_owned()];
    }
    let listed = run(Command::new("systemd-analyze").args(["syscall-filter", name]));
    let lines =
        listed.lines().skip(1).map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.flat_map(calls_in).collect()
}

#[test]
fn the_compose_file_is_valid_and_names_every_required_secret() {
    require_program("docker-compose");
    // Its paths are relative to its own folder.
    let folder = tempfile::tempdir().unwrap();
    for part in ["deploy", "target/image"] {
        fs::create_dir_all(folder.path().join(part)).unwrap();
    }
    let file = folder.path().join("deploy/compose.yaml");
    fs::copy(shipped("compose.yaml"), &file).unwrap();
    let config = |variables: &str| {
        fs::write(folder.path().join("deploy/.env"), variables).unwrap();
        let mut command = Command::new("docker-compose");
        command.arg("-f").arg(&file).arg("config").current_dir(folder.path().join("deploy")).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.output().unwrap()
    };
    let example = text_of("compose.env.example");
    let names: Vec<&str> = example
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.strip_suffix('='))
        .collect();
    let environment = names.iter().map(|name| format!("{name}=of-{name}\n")).collect::<Vec<_>>().concat();
    let valid = config(&environment);
    let (errors, resolved) = (String::from_utf8_lossy(&valid.stderr), String::from_utf8_lossy(&valid.stdout));
    assert!(valid.status.success(), "{errors}");
    for name in &names {
        assert!(resolved.contains(&format!("of-{name}")), "{name} is not used: {resolved}");
    }
    for name in names.iter().take(5) {
        let lines: Vec<&str> = environment.lines().filter(|line| !line.starts_with(name)).collect();
        let without = lines.join("\n");
        let refused = config(&without);
        let errors = String::from_utf8_lossy(&refused.stderr);
        assert!(
            !refused.status.success() && errors.contains(name) && errors.contains("deploy/.env"),
            "{name}: {errors}"
        );
    }
}

#[test]
fn every_variable_in_the_files_is_a_service_variable() {
    let variables = fs::read_to_string(shipped("../src/config/src/variables.toml")).unwrap();
    for file in [
        "compose.yaml",
        "compose.env.example",
        "callboard.service",
        "Containerfile",
        "nginx.conf",
        "haproxy.cfg",
        "Caddyfile",
    ] {
        let text = text_of(file);
        let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        for name in words.filter(|word| word.starts_with("SERVICE_")) {
            assert!(variables.contains(&format!("name = \"{name}\"")), "{file}: {name}");
        }
    }
}
