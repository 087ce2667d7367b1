//! `cargo xtask layers`: checks the workspace against the tables of `rules.rs`, and prints one line per finding.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use cargo_metadata::{DependencyKind, Metadata};

use crate::rules::{ARROWS, BANS, FOR_TESTS, FORBIDDEN, From, ONLY, TOP};
use crate::{language, named, sources};

/// The input of the checks, small enough to construct in a test.
#[derive(Default)]
struct Graph {
    members: Vec<Member>,
    /// All crates in the resolved graph: name, major, minor.
    resolved: Vec<(String, u64, u64)>,
}

struct Member {
    name: String,
    needs: Vec<Need>,
}

struct Need {
    name: String,
    kind: DependencyKind,
    /// Whether it is a package of this workspace. The name is not enough: crates.io also has a `config`.
    inside: bool,
}

/// # Errors
/// If there are findings, which it prints.
pub(crate) fn run(workspace: &Metadata, lower: bool) -> Result<()> {
    let root = workspace.workspace_root.as_std_path();
    let mut findings = check(&graph(workspace)?);
    let (found, language) = sources::check(root)?;
    findings.extend(found);
    if lower {
        return language.lower(root);
    }
    findings.extend(language.findings());
    findings.extend(language::check_new_commits(root));
    findings.extend(named::check(root)?);
    for finding in &findings {
        println!("{finding}");
    }
    ensure!(findings.is_empty(), "layers: {} finding(s), listed above", findings.len());
    Ok(())
}

fn graph(workspace: &Metadata) -> Result<Graph> {
    let members = workspace.workspace_packages().into_iter().map(|package| Member {
        name: package.name.to_string(),
        needs: package
            .dependencies
            .iter()
            .map(|d| Need { name: d.name.clone(), kind: d.kind, inside: d.path.is_some() })
            .collect(),
    });
    // `packages` also contains crates that no enabled feature uses.
    let resolve = workspace.resolve.as_ref().context("cargo metadata gave no resolved graph")?;
    let used: BTreeSet<_> = resolve.nodes.iter().map(|node| &node.id).collect();
    let resolved = workspace.packages.iter().filter(|package| used.contains(&package.id));
    Ok(Graph {
        members: members.collect(),
        resolved: resolved.map(|p| (p.name.to_string(), p.version.major, p.version.minor)).collect(),
    })
}

fn check(graph: &Graph) -> Vec<String> {
    let mut findings = Vec::new();
    for member in &graph.members {
        arrows(member, &mut findings);
        outside(member, &mut findings);
    }
    for (name, major, minor) in &graph.resolved {
        for rule in FORBIDDEN.iter().filter(|rule| rule.name == name) {
            if rule.below.is_none_or(|limit| (*major, *minor) < limit) {
                let why = rule.why;
                findings.push(format!(
                    "{name} {major}.{minor} is in the graph: {why} (`cargo tree -i {name}` shows its dependents)"
                ));
            }
        }
    }
    findings
}

fn arrows(member: &Member, findings: &mut Vec<String>) {
    let name = member.name.as_str();
    if !TOP.contains(&name) && !ARROWS.iter().any(|(package, _)| *package == name) {
        findings.push(format!(
            "{name}: not in the table of src/xtask/src/rules.rs; add it with its dependencies"
        ));
        return;
    }
    let allowed = reach(name);
    for need in member.needs.iter().filter(|need| need.inside) {
        // A package may depend on itself in its tests, to enable a feature such as test-util.
        let for_tests = need.name == name || FOR_TESTS.contains(&need.name.as_str());
        let by_tests = for_tests && need.kind == DependencyKind::Development;
        if !by_tests && !allowed.contains(need.name.as_str()) {
            findings.push(format!(
                "{name} -> {}{}: not allowed by src/xtask/src/rules.rs",
                need.name,
                tag(need.kind)
            ));
        }
    }
}

/// Everything `package` may import: the transitive closure of its arrows.
fn reach(package: &str) -> BTreeSet<&'static str> {
    if TOP.contains(&package) {
        return ARROWS.iter().map(|(name, _)| *name).collect();
    }
    let mut found = BTreeSet::new();
    let mut open = direct(package).to_vec();
    while let Some(next) = open.pop() {
        if found.insert(next) {
            open.extend(direct(next));
        }
    }
    found
}

fn direct(package: &str) -> &'static [&'static str] {
    ARROWS.iter().find(|(name, _)| *name == package).map_or(&[], |(_, to)| to)
}

fn outside(member: &Member, findings: &mut Vec<String>) {
    let name = member.name.as_str();
    for need in member.needs.iter().filter(|need| !need.inside) {
        let only = ONLY.iter().find(|(package, _)| *package == name).map(|(_, crates)| crates);
        if need.kind != DependencyKind::Development
            && let Some(only) = only
            && !only.contains(&need.name.as_str())
        {
            findings.push(format!("{name} uses {}: it may use only {}", need.name, only.join(", ")));
        }
        for ban in BANS.iter().filter(|ban| matches(ban.crates, &need.name)) {
            let hit = match ban.from {
                From::These(packages) => packages.contains(&name),
                From::AllBut(packages) => !packages.contains(&name),
            };
            if hit {
                findings.push(format!("{name} uses {}{}: {}", need.name, tag(need.kind), ban.why));
            }
        }
    }
}

fn matches(pattern: &str, name: &str) -> bool {
    pattern.strip_suffix('*').map_or(pattern == name, |start| name.starts_with(start))
}

fn tag(kind: DependencyKind) -> &'static str {
    match kind {
        DependencyKind::Development => " (in tests)",
        DependencyKind::Build => " (in its build script)",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use DependencyKind::{Build, Development, Normal};

    use super::*;

    fn member(name: &str, needs: &[(&str, DependencyKind, bool)]) -> Graph {
        let needs =
            needs.iter().map(|(n, kind, inside)| Need { name: (*n).into(), kind: *kind, inside: *inside });
        Graph { members: vec![Member { name: name.into(), needs: needs.collect() }], ..Graph::default() }
    }

    /// The findings for one package that imports these workspace packages.
    fn inside(name: &str, needs: &[&str]) -> Vec<String> {
        check(&member(name, &needs.iter().map(|n| (*n, Normal, true)).collect::<Vec<_>>()))
    }

    /// The findings for one package that uses an outside crate.
    fn uses(name: &str, outside: &str, kind: DependencyKind) -> Vec<String> {
        check(&member(name, &[(outside, kind, false)]))
    }

    fn resolved(name: &str, major: u64, minor: u64) -> Vec<String> {
        check(&Graph { resolved: vec![(name.into(), major, minor)], ..Graph::default() })
    }

    #[test]
    fn arrows_are_transitive() {
        assert!(
            inside("callboard", &["client", "server", "store", "sandbox", "config", "kernel"]).is_empty()
        );
        assert!(inside("server", &["store", "engine", "wire"]).is_empty());
        assert!(inside("integration-tests", &["callboard", "store", "client"]).is_empty());
        assert!(inside("xtask", &["wire"]).is_empty());
    }

    #[test]
    fn an_arrow_outside_the_table_is_rejected() {
        assert_eq!(inside("kernel", &["wire"]), ["kernel -> wire: not allowed by src/xtask/src/rules.rs"]);
        for (from, to) in [
            ("wire", "kernel"),
            ("engine", "store"),
            ("auth", "store"),
            ("client", "server"),
            ("training", "actors"),
            ("store", "engine"),
            ("store", "integration-tests"),
            ("server", "xtask"),
        ] {
            assert_eq!(inside(from, &[to]).len(), 1, "{from} -> {to}");
        }
    }

    #[test]
    fn tests_follow_the_arrows_but_may_use_their_own_package() {
        assert!(check(&member("store", &[("store", Development, true)])).is_empty());
        assert!(check(&member("actors", &[("store", Development, true)])).is_empty());
        assert_eq!(
            check(&member("engine", &[("store", Development, true)])),
            ["engine -> store (in tests): not allowed by src/xtask/src/rules.rs"]
        );
    }

    #[test]
    fn an_unknown_package_is_rejected_and_an_external_namesake_ignored() {
        assert_eq!(inside("util", &["wire"]).len(), 1);
        assert!(uses("server", "config", Normal).is_empty());
        assert!(uses("kernel", "client", Normal).is_empty());
    }

    #[test]
    fn wire_depends_only_on_serde() {
        for good in ["serde", "serde_json", "schemars", "strsim"] {
            assert!(uses("wire", good, Normal).is_empty());
        }
        assert_eq!(
            uses("wire", "chrono", Normal),
            ["wire uses chrono: it may use only serde, serde_json, schemars, strsim"]
        );
        assert_eq!(uses("wire", "cc", Build).len(), 1);
        assert!(uses("wire", "insta", Development).is_empty());
    }

    #[test]
    fn external_crates_are_limited_to_their_packages() {
        for package in ["engine", "training", "auth", "bundle"] {
            for outside in
                ["actix", "actix-rt", "diesel", "diesel-async", "tokio-postgres", "tokio-postgres-rustls"]
            {
                assert_eq!(uses(package, outside, Normal).len(), 1, "{package} uses {outside}");
                assert_eq!(uses(package, outside, Development).len(), 1, "{package} tests use {outside}");
            }
        }
        assert!(uses("actors", "actix", Normal).is_empty());
        assert_eq!(uses("actors", "actix-web", Normal), ["actors uses actix-web: HTTP lives in `server`"]);
        assert!(uses("server", "actix-web-actors", Normal).is_empty());
        assert_eq!(uses("integration-tests", "actix-web-actors", Normal).len(), 1);
        assert!(uses("store", "diesel_migrations", Normal).is_empty());
        for package in ["server", "actors", "callboard", "integration-tests", "xtask"] {
            assert_eq!(uses(package, "diesel", Development).len(), 1, "{package}");
        }
    }

    #[test]
    fn forbidden_crates_are_found_anywhere_and_old_ones_by_version() {
        for rule in FORBIDDEN.iter().filter(|rule| rule.below.is_none()) {
            assert_eq!(resolved(rule.name, 9, 9).len(), 1, "{}", rule.name);
        }
        assert_eq!(resolved("ring", 0, 16).len(), 1);
        assert!(resolved("ring", 0, 17).is_empty());
        assert_eq!(resolved("jsonwebtoken", 10, 3).len(), 1);
        assert!(resolved("jsonwebtoken", 11, 0).is_empty());
        assert!(resolved("rustls", 0, 23).is_empty());
    }

    #[test]
    fn deny_toml_forbids_the_same_crates() {
        let deny = include_str!("../../../deny.toml");
        for rule in FORBIDDEN {
            let entry = match rule.below {
                None => format!("crate = \"{}\"", rule.name),
                Some((major, minor)) => format!("crate = \"{}:<{major}.{minor}\"", rule.name),
            };
            assert!(deny.contains(&entry), "deny.toml lacks {entry}");
        }
    }

    #[test]
    fn the_table_has_no_cycle_and_no_unknown_package() {
        for (name, to) in ARROWS {
            assert!(!reach(name).contains(name), "{name} reaches itself");
            for target in *to {
                assert!(ARROWS.iter().any(|(package, _)| package == target), "{name} -> {target}");
            }
        }
    }
}
