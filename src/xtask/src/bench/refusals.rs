//! Measures how long the service takes to reject bad tokens, alternating between the kinds: the time must not
//! distinguish an unknown token from a formerly valid one.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::server::{self, count, now};
use crate::cluster::{self, Cluster};

const BOOTSTRAP: &str = "bench-bootstrap-0123456789abcdef0123456789abcdef";
/// Requests for the warm-up.
const WARMING: usize = 300;
/// The p-value below which two samples count as different.
const SIGNIFICANCE: f64 = 0.001;
/// Milliseconds that medians may always differ by, whatever the percentage.
const APART: f64 = 0.050;

pub(super) fn run(target: &Path, requests: usize) -> Result<()> {
    let binaries = cluster::binaries().context("no PostgreSQL server programs")?;
    let cluster = Cluster::start_on_disk(binaries, &target.join("bench-postgres.log"))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(measure(target, &cluster, requests))
}

async fn measure(target: &Path, cluster: &Cluster, requests: usize) -> Result<()> {
    let (service, _) = server::callboard_with(
        target,
        cluster,
        &[
            ("SERVICE_AUTH_MODE", "required"),
            ("SERVICE_AUTH_BOOTSTRAP_SERVICE_TOKEN", BOOTSTRAP),
            ("SERVICE_AUTH_RATE_LIMIT_IP", "0"),
            ("SERVICE_AUTH_RATE_LIMIT_IDENTITY", "0"),
            ("SERVICE_LOG", "error"),
        ],
    )?;
    let kinds = tokens(&service.address).await?;
    let mut connection = TcpStream::connect(&service.address).await?;
    connection.set_nodelay(true)?;
    let mut taken: Vec<Vec<Duration>> = kinds.iter().map(|_| Vec::new()).collect();
    let per_kind = requests / kinds.len();
    for turn in 0..per_kind + WARMING {
        // Each kind comes first equally often.
        for step in 0..kinds.len() {
            let at = (turn + step) % kinds.len();
            let (Some((_, request)), Some(times)) = (kinds.get(at), taken.get_mut(at)) else { continue };
            let time = refused(&mut connection, request).await?;
            if turn >= WARMING {
                times.push(time);
            }
        }
    }
    println!("\n{per_kind} requests of each kind, alternating over one connection");
    let mut medians = Vec::new();
    for ((name, _), times) in kinds.iter().zip(&taken) {
        let [p50, p95] = [50, 95].map(|percent| server::percentile(times.clone(), percent));
        println!("  {name:<44} {p50:.4} ms (p95 {p95:.4})");
        medians.push(p50);
    }
    for (a, (name, _)) in kinds.iter().enumerate() {
        for (b, (other, _)) in kinds.iter().enumerate().skip(a + 1) {
            let (Some(first), Some(second)) = (taken.get(a), taken.get(b)) else { continue };
            let (Some(of_a), Some(of_b)) = (medians.get(a), medians.get(b)) else { continue };
            let apart = (of_a - of_b).abs();
            let p = mann_whitney(first, second);
            let good = (apart < APART || apart < of_a * 0.05) && p >= SIGNIFICANCE;
            let verdict = if good { "alike" } else { "APART" };
            println!("  {name} / {other}: medians {:.1} µs apart, p = {p:.4}: {verdict}", apart * 1e3);
        }
    }
    Ok(())
}

/// One request for each token kind.
async fn tokens(address: &str) -> Result<Vec<(&'static str, String)>> {
    let authorization = format!("Authorization: Bearer {BOOTSTRAP}\r\n");
    let wanted = json!({"name": "bench", "scopes": ["workflows:read"]}).to_string();
    let make = async || -> Result<(String, String)> {
        let made = server::post_with(address, "/api/admin/service-tokens", &authorization, &wanted).await?;
        let text = |name| made.get(name).and_then(Value::as_str).map(str::to_owned);
        Ok((text("id").context("no id")?, text("secret").context("no secret")?))
    };
    let (revoked_id, revoked) = make().await?;
    let (_, good) = make().await?;
    let path = format!("/api/admin/service-tokens/{revoked_id}/revoke");
    server::post_with(address, &path, &authorization, r#"{"reason":"bench"}"#).await?;
    let changed = |token: &str| {
        // Changes a character in the middle of the secret; the prefix and the id stay.
        let (head, tail) = token.split_at(token.len() - 20);
        let swapped = if tail.starts_with('A') { "B" } else { "A" };
        format!("{head}{swapped}{}", tail.get(1..).unwrap_or_default())
    };
    let unknown = revoked.replacen(&revoked_id.replace('-', ""), "0123456789abcdef0123456789abcdef", 1);
    ensure!(unknown != revoked && changed(&good) != good, "the changed tokens equal the originals");
    let request = |token: &str| {
        format!("GET /api/workflows HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\r\n")
    };
    Ok(vec![
        ("unknown", request(&unknown)),
        ("known prefix and id", request(&changed(&good))),
        ("revoked", request(&revoked)),
    ])
}

async fn refused(connection: &mut TcpStream, request: &str) -> Result<Duration> {
    let mut answer = Vec::with_capacity(2048);
    let began = now();
    connection.write_all(request.as_bytes()).await?;
    loop {
        ensure!(connection.read_buf(&mut answer).await? > 0, "the connection was closed");
        if is_whole(&answer) {
            break;
        }
    }
    let taken = began.elapsed();
    ensure!(answer.starts_with(b"HTTP/1.1 401"), "{}", String::from_utf8_lossy(&answer));
    Ok(taken)
}

/// Whether the head and the body's `Content-Length` bytes have arrived.
fn is_whole(answer: &[u8]) -> bool {
    let text = String::from_utf8_lossy(answer);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let mut lines = head.lines().filter_map(|line| line.split_once(": "));
    let length = lines.find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    length.and_then(|(_, length)| length.parse::<usize>().ok()).is_some_and(|length| body.len() >= length)
}

/// The two-sided p-value of the Mann-Whitney U test, by its normal approximation. Ties are not corrected for, because
/// they are rare among nanoseconds.
fn mann_whitney(first: &[Duration], second: &[Duration]) -> f64 {
    let mut all: Vec<(Duration, bool)> = first.iter().map(|time| (*time, true)).collect();
    all.extend(second.iter().map(|time| (*time, false)));
    all.sort_unstable_by_key(|(time, _)| *time);
    let mut ranks = 0.0;
    let mut from = 0;
    for group in all.chunk_by(|(a, _), (b, _)| a == b) {
        let middle = count(from) + f64::midpoint(1.0, count(group.len()));
        ranks += middle * count(group.iter().filter(|(_, of_first)| *of_first).count());
        from += group.len();
    }
    let (n, m) = (count(first.len()), count(second.len()));
    let u = ranks - n * (n + 1.0) / 2.0;
    let deviation = (n * m * (n + m + 1.0) / 12.0).sqrt();
    let z = (u - n * m / 2.0).abs() / deviation;
    // The tails of the normal distribution (Abramowitz and Stegun 26.2.17, error below 1e-7).
    let t = 1.0 / (1.0 + 0.231_641_9 * z);
    let coefficients = [0.319_381_530, -0.356_563_782, 1.781_477_937, -1.821_255_978, 1.330_274_429];
    let series = coefficients.iter().rev().fold(0.0, |sum, c| (sum + c) * t);
    (2.0 * (-z * z / 2.0).exp() / std::f64::consts::TAU.sqrt() * series).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_distributions_are_distinguished_from_shifted_ones() {
        let times =
            |from: u64| (0..500).map(|n| Duration::from_nanos(from + n * 7919 % 500)).collect::<Vec<_>>();
        assert!(mann_whitney(&times(0), &times(0)) > 0.9);
        assert!(mann_whitney(&times(0), &times(100)) < 1e-6);
        assert!(is_whole(b"HTTP/1.1 401 x\r\nContent-Length: 2\r\n\r\nok") && !is_whole(b"HTTP/1.1 401\r\n"));
    }
}
