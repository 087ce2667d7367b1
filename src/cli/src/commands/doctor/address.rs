//! The listen address: free, used by this service or by another program; and whether the service there is ready.

use std::net::{IpAddr, TcpListener};

use config::Config;
use net::Host;
use serde_json::Value;
use server::StartError;

use super::report::Finding;
use super::web::{SOON, Web};

const ADDRESS: &str = "address";
const READINESS: &str = "readiness";

pub(super) struct AddressProbe {
    /// The base URL for requests to a service on this machine.
    base: String,
    port: u16,
    speaks_tls: bool,
    listen: Result<(), StartError>,
    service: Service,
}

/// The program that responds at the address.
#[derive(Debug, PartialEq, Eq)]
enum Service {
    Silent,
    /// Another program.
    Other,
    /// A Callboard's components, each with a reason if it is not ready.
    Ours(Vec<(String, Option<String>)>),
}

impl AddressProbe {
    pub(super) fn is_ours(&self) -> bool {
        matches!(self.service, Service::Ours(_))
    }
}

pub(super) async fn probe(config: &Config, web: &Web) -> AddressProbe {
    let port = config.http.port;
    let place = place(&config.http.host, port);
    let speaks_tls = config.http.tls.is_some();
    let public = config.http.public_base_url.as_ref().and_then(|base| base.url().host());
    let base = match public.filter(|_| speaks_tls) {
        Some(public) => under_its_name(&public.to_owned(), &place, port),
        None if speaks_tls => format!("https://{place}"),
        None => format!("http://{place}"),
    };
    // Probe before binding: the bind would take the port.
    let service = if port == 0 { Service::Silent } else { ask(&base, &place, web).await };
    AddressProbe { base, port, speaks_tls, listen: server::may_listen(config), service }
}

/// Replaces an unspecified address such as `0.0.0.0` by loopback, which always exists.
fn place(host: &str, port: u16) -> String {
    match host.parse::<IpAddr>() {
        Ok(IpAddr::V4(address)) if address.is_unspecified() => format!("127.0.0.1:{port}"),
        Ok(IpAddr::V6(address)) if address.is_unspecified() => format!("[::1]:{port}"),
        Ok(IpAddr::V6(address)) => format!("[{address}]:{port}"),
        _ => format!("{host}:{port}"),
    }
}

/// The certificate is for the public name, but requests go to the local address because the name may lead to a proxy. A
/// public IP address is used only if this machine has it.
fn under_its_name(public: &Host<String>, place: &str, port: u16) -> String {
    let is_here = |address: IpAddr| TcpListener::bind((address, 0)).is_ok();
    let is_usable = match public {
        Host::Domain(_) => true,
        Host::Ipv4(address) => is_here((*address).into()),
        Host::Ipv6(address) => is_here((*address).into()),
    };
    if is_usable { format!("https://{public}:{port}") } else { format!("https://{place}") }
}

/// Requests the readiness of the local address, under the name in `base`.
async fn ask(base: &str, place: &str, web: &Web) -> Service {
    let found = tokio::net::lookup_host(place).await;
    let Some(address) = found.ok().and_then(|mut addresses| addresses.next()) else { return Service::Silent };
    let Ok(web) = web.at(address) else { return Service::Silent };
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

pub(super) fn judge(probed: &AddressProbe) -> Vec<Finding> {
    let AddressProbe { base, port, speaks_tls, listen, service } = probed;
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
    use std::sync::Arc;

    use config::Source;
    use kernel::SystemClock;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::super::report::Level;
    use super::*;

    #[test]
    fn wildcard_addresses_are_reached_at_loopback() {
        assert_eq!(place("0.0.0.0", 80), "127.0.0.1:80");
        assert_eq!(place("::", 80), "[::1]:80");
        assert_eq!(place("fe80::1", 80), "[fe80::1]:80");
        assert_eq!(place("localhost", 80), "localhost:80");
    }

    #[test]
    fn the_https_url_has_the_public_name_and_the_local_port() {
        let url = |public: &str| under_its_name(&Host::parse(public).unwrap(), "127.0.0.1:8443", 8443);
        assert_eq!(url("chat.example.com"), "https://chat.example.com:8443");
        assert_eq!(url("127.0.0.1"), "https://127.0.0.1:8443");
        // An address of another machine.
        assert_eq!(url("192.0.2.1"), "https://127.0.0.1:8443");
    }

    #[tokio::test]
    async fn the_local_address_is_requested_with_the_public_name() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let place = listener.local_addr().unwrap();
        let answering = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = [0; 1024];
            let length = stream.read(&mut head).await.unwrap();
            let body = r#"{"parts": {"actors": {"ready": true}}}"#;
            let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
            stream.write_all(answer.as_bytes()).await.unwrap();
            String::from_utf8_lossy(&head[..length]).into_owned()
        });
        let web = Web::new(Arc::new(SystemClock::new())).unwrap();
        let base = format!("http://chat.example.com:{}", place.port());
        let service = ask(&base, &place.to_string(), &web).await;
        assert_eq!(service, Service::Ours(vec![("actors".to_owned(), None)]));
        assert!(answering.await.unwrap().contains("host: chat.example.com:"));
    }

    #[test]
    fn a_port_in_use_whose_certificate_is_not_trusted_is_a_warning() {
        let other = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = other.local_addr().unwrap().port();
        let source =
            Source::from_pairs([("HOME", "/home/ada".to_owned()), ("SERVICE_PORT", port.to_string())]);
        let config = Config::load(&source).unwrap();
        for (speaks_tls, level) in [(true, Level::Warning), (false, Level::Problem)] {
            let findings = judge(&AddressProbe {
                base: "https://x".to_owned(),
                port,
                speaks_tls,
                listen: server::may_listen(&config),
                service: Service::Silent,
            });
            let levels: Vec<Level> = findings.iter().map(|finding| finding.level).collect();
            assert_eq!(levels, [level, Level::Skipped], "{findings:?}");
        }
    }

    #[test]
    fn only_a_body_with_parts_is_callboard_and_unready_parts_are_problems() {
        for other in ["{}", "[]", r#"{"parts": {"a": 1}}"#] {
            assert_eq!(parts(&serde_json::from_str(other).unwrap()), None, "{other}");
        }
        let body =
            r#"{"parts": {"actors": {"ready": true}, "database": {"ready": false, "reason": "gone"}}}"#;
        let service = Service::Ours(parts(&serde_json::from_str(body).unwrap()).unwrap());
        let findings = judge(&AddressProbe {
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
