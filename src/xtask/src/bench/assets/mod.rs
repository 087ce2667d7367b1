//! Hosted app files, compared with nginx serving the same files.

mod load;
mod nginx;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use super::hosted::{Answer, App, Request, ask};
use super::outcome::{Gates, Outcome};
use super::process::{cpu_alone, cpu_with_children};
use super::server::{self, Server, count, pause, percentile};
use crate::cluster::{self, Cluster};
use load::Load;
use nginx::Nginx;

/// The minimum ratio to nginx's requests per second.
const MIN_RATIO: f64 = 0.5;
/// Connections, each with one request at a time.
const CONNECTIONS: [usize; 2] = [8, 32];
/// Measurements of each server, alternating; the median counts.
const ROUNDS: usize = 5;
const SMALL: usize = 2 << 10;
const LARGE: usize = 1 << 20;
const SCRIPT: &str = "/assets/app-4f1c9a2e.js";
const MEDIA: &str = "/assets/media-b07d31c5.js";
const PAGE: &str = "/index.html";
const GZIP: &str = "Accept-Encoding: gzip\r\n";
/// Polls until the compressed forms must be ready.
const ENCODED_POLLS: u32 = 600;
/// CPU figures leave out ended threads, and the threads that checked the upload end after ten idle seconds.
const IDLE_THREADS: Duration = Duration::from_secs(12);
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// A requested file.
struct AssetCase {
    name: &'static str,
    path: &'static str,
    /// Additional header lines.
    headers: &'static str,
    /// Whether the case has a gate.
    is_judged: bool,
}

const CASES: [AssetCase; 4] = [
    AssetCase { name: "script, 2 KiB", path: SCRIPT, headers: "", is_judged: true },
    AssetCase { name: "script, gzip", path: SCRIPT, headers: GZIP, is_judged: true },
    AssetCase { name: "file, 1 MiB", path: MEDIA, headers: "", is_judged: true },
    AssetCase { name: "document", path: "/", headers: GZIP, is_judged: false },
];

pub(super) fn run(target: &Path, seconds: u64) -> Result<()> {
    ensure!(seconds > 0, "at least a second");
    let binaries = cluster::binaries().context("no PostgreSQL server programs")?;
    let cluster = Cluster::start_on_disk(binaries, &target.join("bench-postgres.log"))?;
    let (service, _) = server::callboard(target, &cluster)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let folder = target.join(format!("bench-nginx-{}", std::process::id()));
    let (host, nginx) = runtime.block_on(start(&service, &folder))?;
    runtime.block_on(pause(IDLE_THREADS));
    let servers = Servers { service: &service, nginx: &nginx, cluster: &cluster, host };
    println!(
        "\n{:<14} {:>4} {:<10} {:>11} {:>8} {:>8} {:>15} {:>9} {:>9}",
        "", "at", "", "requests/s", "p50 ms", "p99 ms", "CPU ms/request", "server", "database"
    );
    let mut gates = Gates::default();
    for case in &CASES {
        let body = runtime.block_on(servers.same_bytes(case))?;
        for at in CONNECTIONS {
            let (theirs, ours) = servers.compare(case, body, at, Duration::from_secs(seconds))?;
            let ratio = ours / theirs;
            let found = format!("{}, {at} connections: {ratio:.2} of nginx", case.name);
            if case.is_judged {
                gates
                    .add(Outcome::from_passed(ratio >= MIN_RATIO), format!("{found} (at least {MIN_RATIO})"));
            } else {
                println!("  {found} (no gate)");
            }
        }
    }
    gates.print();
    gates.conclude()
}

/// Publishes the app, and starts nginx with its files and their compressed forms. Returns the app's host.
async fn start(service: &Server, folder: &Path) -> Result<(String, Nginx)> {
    let files = [(PAGE, page()), (SCRIPT, text(SMALL)), (MEDIA, text(LARGE))];
    let files = files.map(|(path, bytes)| (path.trim_start_matches('/').to_owned(), bytes));
    let contents: Vec<(&str, &[u8])> =
        files.iter().map(|(path, bytes)| (path.as_str(), bytes.as_slice())).collect();
    let app = App::create(&service.address, "bench").await?;
    let deployment = app.deploy(&service.address, &contents).await?;
    app.publish(&service.address, &deployment).await?;
    let mut beside = files.to_vec();
    for (path, file) in [("/", PAGE), (SCRIPT, SCRIPT)] {
        let file = file.trim_start_matches('/');
        beside.push((format!("{file}.gz"), compressed(&service.address, &app.host(), path).await?));
    }
    let port = service.address.rsplit(':').next().unwrap_or_default();
    Ok((format!("{}:{port}", app.host()), Nginx::start(folder, &beside)?))
}

/// A file's compressed form, which the service prepares after the publish.
async fn compressed(address: &str, host: &str, path: &str) -> Result<Vec<u8>> {
    for _ in 0..ENCODED_POLLS {
        let answer = ask(address, Request { headers: GZIP, ..Request::get(host, path) }).await?;
        if answer.header("content-encoding") == Some("gzip") {
            return Ok(answer.body);
        }
        pause(POLL_INTERVAL).await;
    }
    bail!("{path} has no compressed form after a minute")
}

/// Both servers under measurement.
struct Servers<'a> {
    service: &'a Server,
    nginx: &'a Nginx,
    cluster: &'a Cluster,
    host: String,
}

impl Servers<'_> {
    /// Checks that both respond alike. Returns the body's length in bytes.
    async fn same_bytes(&self, case: &AssetCase) -> Result<usize> {
        let request = Request { headers: case.headers, ..Request::get(&self.host, case.path) };
        let ours = ask(&self.service.address, request).await?;
        let theirs = ask(self.nginx.address(), request).await?;
        let said = |answer: &Answer| {
            let header = |name| answer.header(name).map(str::to_owned);
            (answer.status, header("content-encoding"), header("cache-control"), header("etag").is_some())
        };
        ensure!(ours.body == theirs.body, "{}: nginx sent other bytes", case.path);
        ensure!(said(&ours) == said(&theirs), "{:?} and {:?}", said(&ours), said(&theirs));
        ensure!(ours.status == 200 && ours.header("etag").is_some(), "{}: {}", case.path, ours.status);
        Ok(ours.body.len())
    }

    /// Requests per second, for nginx and for the service.
    fn compare(&self, case: &AssetCase, body: usize, at: usize, time: Duration) -> Result<(f64, f64)> {
        let load = |address: &str, time: Duration| {
            let request =
                format!("GET {} HTTP/1.1\r\nHost: {}\r\n{}\r\n", case.path, self.host, case.headers);
            Arc::new(Load { address: address.to_owned(), request, body, connections: at, time })
        };
        let (theirs, ours) = (self.nginx.address(), self.service.address.as_str());
        for address in [theirs, ours] {
            load(address, time / 4).measure()?;
        }
        let service = self.service.child.id();
        let (mut of_nginx, mut of_service) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            of_nginx.push(self.one(load(theirs, time), || cpu_with_children(self.nginx.pid()))?);
            of_service.push(self.one(load(ours, time), || cpu_alone(service))?);
        }
        let (of_nginx, of_service) = (middle(of_nginx), middle(of_service));
        of_nginx.print(case.name, at, "nginx");
        of_service.print("", at, "callboard");
        Ok((of_nginx.rate, of_service.rate))
    }

    fn one(&self, load: Arc<Load>, used: impl Fn() -> Result<f64>) -> Result<AssetFigures> {
        let postmaster = self.cluster.pid().context("the database is gone")?;
        let cpu = || -> Result<(f64, f64)> { Ok((used()?, cpu_with_children(postmaster)?)) };
        let before = cpu()?;
        let (times, took) = load.measure()?;
        let after = cpu()?;
        let requests = count(times.len());
        let each = |seconds: f64| seconds * 1e3 / requests;
        Ok(AssetFigures {
            rate: requests / took.as_secs_f64(),
            p50: percentile(times.clone(), 50),
            p99: percentile(times, 99),
            server: each(after.0 - before.0),
            database: each(after.1 - before.1),
        })
    }
}

/// One measurement's figures.
#[derive(Clone, Copy)]
struct AssetFigures {
    rate: f64,
    p50: f64,
    p99: f64,
    /// CPU milliseconds per request.
    server: f64,
    database: f64,
}

impl AssetFigures {
    fn print(&self, case: &str, at: usize, name: &str) {
        let Self { rate, p50, p99, server, database } = self;
        let cpu = server + database;
        println!(
            "{case:<14} {at:>4} {name:<10} {rate:>11.0} {p50:>8.2} {p99:>8.2} {cpu:>15.4} {server:>9.4} {database:>9.4}"
        );
    }
}

/// The figures with the median rate.
fn middle(mut figures: Vec<AssetFigures>) -> AssetFigures {
    figures.sort_by(|a, b| a.rate.total_cmp(&b.rate));
    let nothing = AssetFigures { rate: f64::NAN, p50: 0.0, p99: 0.0, server: 0.0, database: 0.0 };
    figures.get(figures.len() / 2).copied().unwrap_or(nothing)
}

/// A document that loads the script, and has an inline script.
fn page() -> Vec<u8> {
    let rows: String = (0..40).map(|n| format!("<li>Row {n} of the page</li>\n")).collect();
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Bench</title>\n\
         <script type=\"module\" src=\"{SCRIPT}\"></script></head>\n<body><ul>\n{rows}</ul>\n\
         <script>document.title = 'ready';</script></body></html>\n"
    )
    .into_bytes()
}

/// Script lines, each different.
fn text(length: usize) -> Vec<u8> {
    let lines =
        (0_u64..).map(|n| format!("export const value{n} = {};\n", n.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
    lines.flat_map(String::into_bytes).take(length).collect()
}
