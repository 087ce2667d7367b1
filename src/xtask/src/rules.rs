//! The tables of `cargo xtask layers`. A change here changes the architecture: explain it in docs/adr.

/// Allowed imports between packages. Arrows are transitive: `server` may import `store` because `actors` may.
/// A package may be listed before it exists; an existing package that is not listed is rejected.
pub(crate) const ARROWS: &[(&str, &[&str])] = &[
    ("kernel", &[]),
    ("media", &[]),
    ("wire", &[]),
    ("config", &["auth", "kernel", "wire"]),
    ("auth", &["kernel", "wire"]),
    ("schema", &["wire"]),
    ("bundle", &["kernel", "schema", "wire"]),
    ("sandbox", &["kernel"]),
    ("net", &["kernel", "wire"]),
    ("store", &["auth", "kernel", "wire"]),
    ("models", &["net", "kernel", "wire"]),
    ("practice", &["models", "kernel"]),
    ("engine", &["models", "sandbox", "schema", "media", "net", "kernel", "wire"]),
    ("diagram", &["engine"]),
    ("training", &["engine"]),
    ("worlds", &[]),
    ("actors", &["store", "engine", "training"]),
    ("control", &["auth", "kernel", "media", "sandbox", "store", "wire"]),
    ("server", &["actors", "auth", "bundle", "config", "control", "diagram", "media", "net", "practice"]),
    ("client", &["kernel", "wire"]),
    ("callboard", &["client", "server"]),
];

/// The modules of each package, lowest first: a module must not import a later one.
pub(crate) const MODULES: &[(&str, &[&str])] = &[
    (
        "actors/src/",
        &[
            "text",
            "plans",
            "clock_watch",
            "runtime",
            "streams",
            "lanes",
            "run",
            "kinds",
            "triggers",
            "delivery",
            "encodings",
            "jobs",
            "system",
            "support",
        ],
    ),
    (
        "src/engine/src/",
        &[
            "error",
            "cache",
            "canonical",
            "channel",
            "fenced",
            "limits",
            "meter",
            "graph",
            "tags",
            "template",
            "credentials",
            "check",
            "redact",
            "schema",
            "records",
            "search",
            "execute",
            "functions",
            "cut",
            "outbound",
            "document",
            "mcp",
            "outbox",
            "nodes",
            "compile",
            "diff",
            "references",
            "effects",
            "addresses",
            "inspection",
            "runnable_config",
        ],
    ),
    (
        "src/bundle/src/",
        &[
            "unicode",
            "code",
            "limits",
            "hints",
            "error",
            "finding",
            "deadline",
            "archive",
            "names",
            "kinds",
            "contents",
            "policy",
            "markup",
            "manifest",
            "accepted",
            "documents",
            "check",
            "declared",
        ],
    ),
    (
        "src/store/src/",
        &[
            "error",
            "schema",
            "data_dir",
            "database",
            "embedded",
            "system",
            "blobs",
            "runs",
            "chat",
            "batch",
            "training",
            "workflows",
            "people",
            "rollouts",
            "search",
            "triggers",
            "vault",
            "apps",
            "testing",
        ],
    ),
    (
        "src/server/src/",
        &[
            "exposure",
            "body_budget",
            "open_files",
            "cdn",
            "tokens",
            "oidc",
            "ws",
            "tls",
            "listener",
            "http",
            "http1",
            "keys",
            "sign_in",
            "running",
            "boot",
            "logging",
        ],
    ),
    (
        "src/control/src/",
        &[
            "slug",
            "handle",
            "refusal",
            "rights",
            "sign_in",
            "app_sign_in",
            "members",
            "tokens",
            "triggers",
            "uploads",
            "vault",
            "visitors",
            "workflows",
            "versions",
            "rollouts",
            "apps",
            "workspaces",
        ],
    ),
];
/// Packages that may import any package, and that no package may import.
pub(crate) const TOP: &[&str] = &["integration-tests", "xtask"];

/// Packages that the tests of any package may use.
pub(crate) const FOR_TESTS: &[&str] = &["practice", "worlds"];

/// Packages with a fixed list of outside crates; their tests may use more.
pub(crate) const ONLY: &[(&str, &[&str])] = &[("wire", &["serde", "serde_json", "schemars", "strsim"])];

/// An outside crate (a `*` at the end matches any ending), and the packages that must not use it.
pub(crate) struct Ban {
    pub(crate) crates: &'static str,
    pub(crate) from: From,
    pub(crate) why: &'static str,
}

/// The packages that a [`Ban`] applies to.
pub(crate) enum From {
    These(&'static [&'static str]),
    AllBut(&'static [&'static str]),
}

/// Packages that use HTTP, actors and SQL only through traits that they define.
const PURE: &[&str] = &["models", "practice", "engine", "diagram", "training", "auth", "schema", "bundle"];

pub(crate) const BANS: &[Ban] = &[
    Ban { crates: "actix*", from: From::These(PURE), why: "it knows no actors and no HTTP" },
    Ban { crates: "tokio-postgres*", from: From::These(PURE), why: "it knows no database" },
    Ban { crates: "diesel*", from: From::AllBut(&["store"]), why: "SQL lives in `store` alone" },
    Ban {
        crates: "actix*",
        from: From::These(&["control"]),
        why: "decisions know no HTTP and no actors' runtime",
    },
    Ban { crates: "actix-web*", from: From::These(&["actors"]), why: "HTTP lives in `server`" },
    Ban {
        crates: "actix-web-actors",
        from: From::AllBut(&["server"]),
        why: "one file of `server` is its single user",
    },
];

/// A crate that must not be in the dependency graph; `below` limits the rule to versions below major.minor.
pub(crate) struct Forbidden {
    pub(crate) name: &'static str,
    pub(crate) below: Option<(u64, u64)>,
    pub(crate) why: &'static str,
}

const fn forbidden(name: &'static str, why: &'static str) -> Forbidden {
    Forbidden { name, below: None, why }
}

/// deny.toml has the same list for cargo-deny; a test compares the two.
pub(crate) const FORBIDDEN: &[Forbidden] = &[
    forbidden("openssl", "TLS is rustls with ring"),
    forbidden("openssl-sys", "TLS is rustls with ring"),
    forbidden("native-tls", "TLS is rustls with ring"),
    forbidden("aws-lc-rs", "the crypto provider is ring"),
    forbidden("aws-lc-sys", "the crypto provider is ring"),
    forbidden("pq-sys", "PostgreSQL is spoken without libpq"),
    forbidden("libsqlite3-sys", "the only database is PostgreSQL"),
    forbidden("zstd-sys", "a C build; turn the defaults of the actix crates off"),
    forbidden("actix-governor", "its licence is GPL"),
    Forbidden { name: "ring", below: Some((0, 17)), why: "older ones are unmaintained" },
    Forbidden { name: "jsonwebtoken", below: Some((11, 0)), why: "CVE-2026-25537" },
];

/// Maximum lines of a source file. A longer file usually contains two things and should be split.
pub(crate) const MAX_LINES: usize = 450;
