//! The address: free, ours already, or somebody else's; and whether the service there is ready.

use std::net::IpAddr;

use config::Config;
use serde_json::Value;
use server::StartError;

use super::report::Finding;
use super::web::{SOON, Web};

const ADDRESS: &str = "address";
const READINESS: &str = "readiness";

pub(super) struct Probed {
    /// Where a service on this machine is asked.
    base: String,
    port: u16,
    speaks_tls: bool,
    listen: Result<(), StartError>,
    service: Service,
}

/// Who answers there.
#[derive(Debug, PartialEq, Eq)]
enum Service {
    Silent,
    /// Another program.
    Other,
    /// Each part of a Callboard, with the reason when it is not ready.
    Ours(Vec<(String, Option<String>)>),
}

impl Probed {
    pub(super) fn is_ours(&self) -> bool {
        matches!(self.service, Service::Ours(_))
    }
}

pub(super) async fn probe(config: &Config, web: &Web) -> Probed {
    let port = config.http.port;
    let place = place(&config.http.host, port);
    // A certificate is for the public name, so the service is asked under it.
    let public = config.http.public_base_url.as_ref().map(|base| base.as_str().to_owned());
    let speaks_tls = config.http.tls.is_some();
    let base =
        if speaks_tls { public.unwrap_or(format!("https://{place}")) } else { format!("http://{place}") };
    // Asked first: while we try to listen nobody else could.
    let service = if port == 0 { Service::Silent } else { ask(&base, web).await };
    Probed { base, port, speaks_tls, listen: server::may_listen(config), service }
}

/// `0.0.0.0` is every address; loopback is the one that is always there.
fn place(host: &str, port: u16) -> String {
    match host.parse::<IpAddr>() {
        Ok(IpAddr::V4(address)) if address.is_unspecified() => format!("127.0.0.1:{port}"),
        Ok(IpAddr::V6(address)) if address.is_unspecified() => format!("[::1]:{port}"),
        Ok(IpAddr::V6(address)) => format!("[{address}]:{port}"),
        _ => format!("{host}:{port}"),
    }
}

async fn ask(base: &str, web: &Web) -> Service {
    let Ok(answer) = web.get(&format!("{base}/readyz"), SOON, None).await else { return Service::Silent };
    let Ok(body) = answer.bytes().await else { return Service::Other };
    serde_json::from_slice(&body).ok().and_then(|body| parts(&body)).map_or(Service::Other, Service::Ours)
}

fn parts(body: &Value) -> Option<Vec<(String, Option<String>)>> {
    let parts = body.get("parts")?.as_object()?;
    let part = |(name, part): (&String, &Value)| {
        let ready = part.get("ready")?.as_bool()?;
        let reason = part.get("reason").and_then(Value::as_str).unwrap_or("it gives no reason");
        Some((name.clone(), (!ready).then(|| reason.to_owned())))
    };
    parts.iter().map(part).collect()
}

pub(super) fn judge(probed: &Probed) -> Vec<Finding> {
    let Probed { base, port, speaks_tls, listen, service } = probed;
    let address = match (listen, service) {
        (Err(error @ StartError::Exposure(_)), _) => Finding::refusal(ADDRESS, &error.to_string()),
        (_, Service::Ours(_)) => Finding::ok(ADDRESS, format!("the service answers at {base}")),
        (Err(StartError::Listen(_)), Service::Silent) if *speaks_tls => Finding::warning(
            ADDRESS,
            format!(
                "port {port} is in use, but nothing answers at {base} with a certificate that this machine trusts"
            ),
            "if it is this service, set SERVICE_PUBLIC_BASE_URL to a name in its certificate, or SSL_CERT_FILE to the \
             authority that signed it; else set SERVICE_PORT",
        ),
        (Err(error), _) => Finding::refusal(ADDRESS, &error.to_string()),
        (Ok(()), _) if *port == 0 => Finding::ok(ADDRESS, "a free port will be picked (SERVICE_PORT=0)"),
        (Ok(()), _) => Finding::ok(ADDRESS, format!("port {port} is free")),
    };
    let mut findings = vec![address];
    match service {
        Service::Ours(parts) => {
            findings.extend(parts.iter().map(|(name, reason)| ready(name, reason.as_deref())))
        }
        _ if *port == 0 => {
            findings.push(Finding::skipped(
                READINESS,
                "with SERVICE_PORT=0 the address of the service is unknown",
            ));
        }
        _ => findings.push(Finding::skipped(
            READINESS,
            "no service runs at the configured address; `callboard serve` starts one",
        )),
    }
    findings
}

fn ready(part: &str, reason: Option<&str>) -> Finding {
    match reason {
        None => Finding::ok(READINESS, format!("{part} is ready")),
        Some(reason) => Finding::problem(
            READINESS,
            format!("{part} is not ready: {reason}"),
            "the service's log says why; it becomes ready again automatically when the cause is removed",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::report::Level;
    use super::*;

    #[test]
    fn a_service_is_asked_where_it_answers() {
        assert_eq!(place("0.0.0.0", 80), "127.0.0.1:80");
        assert_eq!(place("::", 80), "[::1]:80");
        assert_eq!(place("fe80::1", 80), "[fe80::1]:80");
        assert_eq!(place("localhost", 80), "localhost:80");
    }

    #[test]
    fn only_a_body_with_parts_is_ours_and_a_part_that_is_not_ready_is_a_problem() {
        for other in ["{}", "[]", r#"{"parts": {"a": 1}}"#] {
            assert_eq!(parts(&serde_json::from_str(other).unwrap()), None, "{other}");
        }
        let body =
            r#"{"parts": {"actors": {"ready": true}, "database": {"ready": false, "reason": "gone"}}}"#;
        let service = Service::Ours(parts(&serde_json::from_str(body).unwrap()).unwrap());
        let findings = judge(&Probed {
            base: "http://x".to_owned(),
            port: 1,
            speaks_tls: false,
            listen: Ok(()),
            service,
        });
        let levels: Vec<Level> = findings.iter().map(|finding| finding.level).collect();
        assert_eq!(levels, [Level::Ok, Level::Ok, Level::Problem]);
        assert_eq!(findings[2].message, "database is not ready: gone");
    }
}
