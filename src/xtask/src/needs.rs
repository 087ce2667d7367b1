//! The tests' requirements on the machine: one table; each item is found or, if possible, installed.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::{cluster, run};

/// One requirement: add a line to [`NEEDS`] and tests may rely on it, or on `CALLBOARD_MISSING_<NAME>`.
struct Need {
    name: &'static str,
    /// Whether it is installed, by trying it.
    found: fn(&Path) -> bool,
    install: Install,
    why: &'static str,
}

enum Install {
    /// Debian packages, for root on a machine with apt-get.
    Apt(&'static str),
    /// A crate with a binary.
    Cargo(&'static str),
    /// [`NPM_PACKAGES`], installed below `target`.
    Npm,
    /// pip arguments with the packages, and their folder below `target`.
    Pip(&'static str, &'static [&'static str]),
}

/// Accessibility rules, run in the pages; another implementation of signed tokens; an OpenID provider; and archive
/// writers. Installed together, because npm removes all packages that it is not given.
const NPM_PACKAGES: [&str; 7] = [
    "axe-core@4.14.1",
    "jose@6.2.17",
    "oidc-provider@9.13.3",
    "archiver@7.0.1",
    "fflate@0.8.3",
    "jszip@3.10.2",
    "yazl@3.3.1",
];
/// Another implementation of signed tokens, and its cryptography package.
const PYJWT_PACKAGES: &[&str] = &["PyJWT==2.15.1", "cryptography==50.0.2"];
/// The ChatKit protocol models, without the packages that only its server needs.
const CHATKIT_PACKAGES: &[&str] = &[
    "--no-deps",
    "openai-chatkit==1.6.5",
    "pydantic==2.12.5",
    "pydantic-core==2.41.5",
    "annotated-types==0.8.0",
    "typing-extensions==4.16.0",
    "typing-inspection==0.4.5",
    "jinja2==3.1.6",
    "markupsafe==3.0.4",
];
/// The folder below the workspace root.
const TOOLS: &str = "target/xtask/tools";
/// Paths within [`TOOLS`].
const AXE_FILE: &str = "node_modules/axe-core/axe.min.js";
const JOSE_FOLDER: &str = "node_modules/jose";
const PROVIDER_FOLDER: &str = "node_modules/oidc-provider";
const NODE_FOLDER: &str = "node_modules";
const ARCHIVERS: [&str; 4] = ["archiver", "fflate", "jszip", "yazl"];
const PYTHON_FOLDER: &str = "python";
const CHATKIT_FOLDER: &str = "chatkit";

const NEEDS: &[Need] = &[
    Need {
        name: "postgres",
        found: |_| cluster::binaries().is_some(),
        install: Install::Apt("postgresql"),
        why: "every test with a database",
    },
    Need {
        name: "cargo-nextest",
        found: |_| runs("cargo-nextest"),
        install: Install::Cargo("cargo-nextest"),
        why: "the test runner",
    },
    Need {
        name: "python3",
        found: |_| runs("python3"),
        install: Install::Apt("python3 python3-pip"),
        why: "tests that check the service as an external client",
    },
    Need {
        name: "node",
        found: |_| runs("node") && runs("npm"),
        install: Install::Apt("nodejs npm"),
        why: "the test that fetches PostgreSQL through npm",
    },
    Need {
        name: "openssl",
        found: |_| run::on_path("openssl").is_some(),
        install: Install::Apt("openssl"),
        why: "the certificate of the tests with TLS",
    },
    Need {
        name: "chromium",
        found: |_| runs("chromium") && runs("chromedriver"),
        install: Install::Apt("chromium chromium-driver"),
        why: "the tests of the pages",
    },
    Need {
        name: "certutil",
        found: |_| run::on_path("certutil").is_some(),
        install: Install::Apt("libnss3-tools"),
        why: "the tests of apps in a browser that trusts the authority of dev-tls",
    },
    Need {
        name: "axe",
        found: |root| tool(root, AXE_FILE).is_file(),
        install: Install::Npm,
        why: "the tests of the pages' accessibility",
    },
    Need {
        name: "jose",
        found: |root| tool(root, JOSE_FOLDER).join("package.json").is_file(),
        install: Install::Npm,
        why: "the test that compares token verification with another implementation",
    },
    Need {
        name: "oidc-provider",
        found: |root| tool(root, PROVIDER_FOLDER).join("package.json").is_file(),
        install: Install::Npm,
        why: "the test that signs in with a third-party provider",
    },
    Need {
        name: "archivers",
        found: |root| {
            let folder = tool(root, NODE_FOLDER);
            ARCHIVERS.iter().all(|name| folder.join(name).join("package.json").is_file())
        },
        install: Install::Npm,
        why: "the tests that read archives of other tools",
    },
    Need {
        name: "zip",
        found: |_| run::on_path("zip").is_some(),
        install: Install::Apt("zip"),
        why: "the test that reads archives of Info-ZIP",
    },
    Need {
        name: "pyjwt",
        found: |root| imports(&tool(root, PYTHON_FOLDER), "jwt, cryptography"),
        install: Install::Pip(PYTHON_FOLDER, PYJWT_PACKAGES),
        why: "the test that compares token verification with a third implementation",
    },
    Need {
        name: "chatkit",
        found: |root| imports(&tool(root, CHATKIT_FOLDER), "chatkit.types"),
        install: Install::Pip(CHATKIT_FOLDER, CHATKIT_PACKAGES),
        why: "the test that parses chat output with the models of the ChatKit protocol",
    },
    Need {
        name: "script",
        found: |_| run::on_path("script").is_some(),
        install: Install::Apt("bsdutils"),
        why: "the terminal of the tests that press keys",
    },
    Need {
        name: "nginx",
        found: |_| run::on_path("nginx").is_some(),
        install: Install::Apt("nginx-light"),
        why: "the test of deploy/nginx.conf",
    },
    Need {
        name: "haproxy",
        found: |_| run::on_path("haproxy").is_some(),
        install: Install::Apt("haproxy"),
        why: "the test of deploy/haproxy.cfg",
    },
    Need {
        name: "caddy",
        found: |_| run::on_path("caddy").is_some(),
        install: Install::Apt("caddy"),
        why: "the test of deploy/Caddyfile",
    },
    Need {
        name: "systemd-analyze",
        found: |_| run::on_path("systemd-analyze").is_some(),
        install: Install::Apt("systemd"),
        why: "the test of deploy/callboard.service",
    },
    Need {
        name: "buildah",
        found: |_| run::on_path("buildah").is_some(),
        install: Install::Apt("buildah"),
        why: "the test of deploy/Containerfile",
    },
    Need {
        name: "docker-compose",
        found: |_| run::on_path("docker-compose").is_some(),
        install: Install::Apt("docker-compose"),
        why: "the test of deploy/compose.yaml",
    },
];

const NPM_INSTALL: [&str; 5] = ["install", "--no-save", "--no-audit", "--ignore-scripts", "--prefix"];

const PIP_INSTALL: [&str; 8] = [
    "-m",
    "pip",
    "install",
    "--quiet",
    "--disable-pip-version-check",
    "--root-user-action=ignore",
    "--upgrade",
    "--target",
];

fn tool(root: &Path, path: &str) -> PathBuf {
    root.join(TOOLS).join(path)
}

/// Finds or installs every need. A missing one does not fail here: the returned variables make the tests that need it
/// fail with the one line that helps. Also returns installed files' paths.
pub(crate) fn provide(root: &Path) -> Vec<(String, String)> {
    let apt = run::is_root() && run::on_path("apt-get").is_some();
    let mut updated = false;
    let mut variables = Vec::new();
    for need in NEEDS.iter().filter(|need| !(need.found)(root)) {
        println!("{} is not here ({})", need.name, need.why);
        let tried = match need.install {
            Install::Apt(_) if !apt => Ok(()),
            Install::Apt(packages) => apt_install(packages, &mut updated),
            Install::Cargo(name) => run::run(run::command("cargo").args(["install", "--locked", name])),
            Install::Npm => run::run(
                run::command("npm").current_dir(root).args(NPM_INSTALL).arg(TOOLS).args(NPM_PACKAGES),
            ),
            Install::Pip(folder, packages) => {
                let folder = tool(root, folder);
                run::run(run::command("python3").args(PIP_INSTALL).arg(folder).args(packages))
            }
        };
        if let Err(error) = tried {
            eprintln!("{error:#}");
        }
        if !(need.found)(root) {
            println!("MISSING {}: {}", need.name, need.install.line());
            variables.push((variable(need.name), need.install.line()));
        }
    }
    let tools = [
        ("CALLBOARD_AXE", AXE_FILE),
        ("CALLBOARD_JOSE", JOSE_FOLDER),
        ("CALLBOARD_OIDC_PROVIDER", PROVIDER_FOLDER),
        ("CALLBOARD_ARCHIVERS", NODE_FOLDER),
        ("CALLBOARD_PYJWT", PYTHON_FOLDER),
        ("CALLBOARD_CHATKIT", CHATKIT_FOLDER),
    ];
    let named = tools.map(|(name, path)| (name.to_owned(), tool(root, path).display().to_string()));
    variables.extend(named);
    variables
}

impl Install {
    /// The command that a person types to install it.
    fn line(&self) -> String {
        match self {
            Self::Apt(packages) => {
                format!("apt-get update && apt-get install -y --no-install-recommends {packages}")
            }
            Self::Cargo(name) => format!("cargo install --locked {name}"),
            Self::Npm => format!("npm {} {TOOLS} {}", NPM_INSTALL.join(" "), NPM_PACKAGES.join(" ")),
            Self::Pip(folder, packages) => {
                let (how, what) = (PIP_INSTALL.join(" "), packages.join(" "));
                format!("python3 {how} {TOOLS}/{folder} {what}")
            }
        }
    }
}

fn apt_install(packages: &str, updated: &mut bool) -> Result<()> {
    if !*updated {
        run::run(run::command("apt-get").args(["update", "-qq"]))?;
        *updated = true;
    }
    let mut install = run::command("apt-get");
    install.env("DEBIAN_FRONTEND", "noninteractive").args([
        "install",
        "-y",
        "-qq",
        "--no-install-recommends",
    ]);
    run::run(install.args(packages.split_whitespace()))
}

/// Being on the `PATH` is not enough: a version manager's shim may have no program.
fn runs(program: &str) -> bool {
    run::output(run::command(program).arg("--version")).is_ok()
}

/// Whether Python can import these modules from a folder.
fn imports(folder: &Path, modules: &str) -> bool {
    let import = format!("import {modules}");
    run::output(run::command("python3").env("PYTHONPATH", folder).args(["-B", "-c", &import])).is_ok()
}

fn variable(name: &str) -> String {
    format!("CALLBOARD_MISSING_{}", name.to_uppercase().replace('-', "_"))
}

/// Whether a CI runner started this process.
pub(crate) fn in_ci() -> bool {
    env::var("CI").is_ok_and(|ci| ci == "true" || ci == "1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_need_has_its_own_variable_and_a_line_to_type() {
        let mut names: Vec<_> = NEEDS.iter().map(|need| variable(need.name)).collect();
        assert_eq!(
            names,
            [
                "CALLBOARD_MISSING_POSTGRES",
                "CALLBOARD_MISSING_CARGO_NEXTEST",
                "CALLBOARD_MISSING_PYTHON3",
                "CALLBOARD_MISSING_NODE",
                "CALLBOARD_MISSING_OPENSSL",
                "CALLBOARD_MISSING_CHROMIUM",
                "CALLBOARD_MISSING_CERTUTIL",
                "CALLBOARD_MISSING_AXE",
                "CALLBOARD_MISSING_JOSE",
                "CALLBOARD_MISSING_OIDC_PROVIDER",
                "CALLBOARD_MISSING_ARCHIVERS",
                "CALLBOARD_MISSING_ZIP",
                "CALLBOARD_MISSING_PYJWT",
                "CALLBOARD_MISSING_CHATKIT",
                "CALLBOARD_MISSING_SCRIPT",
                "CALLBOARD_MISSING_NGINX",
                "CALLBOARD_MISSING_HAPROXY",
                "CALLBOARD_MISSING_CADDY",
                "CALLBOARD_MISSING_SYSTEMD_ANALYZE",
                "CALLBOARD_MISSING_BUILDAH",
                "CALLBOARD_MISSING_DOCKER_COMPOSE",
            ]
        );
        names.dedup();
        assert_eq!(names.len(), NEEDS.len());
        assert_eq!(
            Install::Apt("nodejs npm").line(),
            "apt-get update && apt-get install -y --no-install-recommends nodejs npm"
        );
    }

    #[test]
    fn a_missing_program_does_not_run() {
        assert!(!runs("no-such-program-of-callboard"));
    }
}
