//! The HTTP/1.1 listener, which checks each connection before the HTTP library reads it.

mod admission;
mod connection;
mod framing;
mod inbound;
mod peer;
mod requests;
mod socket;

use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use actix_http::error::DispatchError;
use actix_http::{Extensions, HttpService, Protocol, ServiceConfig};
use actix_service::{ServiceFactoryExt, fn_service, map_config};
use actix_web::dev::{AppConfig, Server};
use tokio::net::TcpStream;

use crate::http::{self, App};
use crate::open_files::OpenFiles;
use crate::tls::Tls;
use admission::Admissions;
use connection::Connection;
use socket::Socket;

/// Maximum time to read unneeded input after the response, such as the rest of a body. Closing with unread bytes would
/// reset the connection before the client, or a proxy, reads the response.
const LINGER: Duration = Duration::from_secs(5);

/// Server options.
pub(crate) struct Options {
    /// Worker threads.
    pub(crate) workers: usize,
    /// Maximum seconds that a shutdown waits for open connections.
    pub(crate) shutdown_timeout: u64,
    /// The open file limit.
    pub(crate) files: OpenFiles,
    /// The listener's certificate; `None` without TLS.
    pub(crate) tls: Option<Tls>,
}

/// Serves the application on a listener.
///
/// # Errors
/// If the listener cannot be used.
pub(crate) fn serve(app: &App, listener: TcpListener, options: &Options) -> io::Result<Server> {
    let (app, address) = (app.clone(), listener.local_addr()?);
    let builder = Server::build()
        .workers(options.workers)
        // `Admissions` limits connections instead; a worker at its limit would leave the next ones waiting.
        .max_concurrent_connections(usize::MAX)
        // Streams stay open until running turns have had time to end.
        .shutdown_timeout(options.shutdown_timeout)
        .disable_signals();
    let shutdown = builder.graceful_shutdown_signal();
    let unparsable = Arc::new(AtomicU64::new(0));
    let admissions = Admissions::new(options.files);
    let tls = options.tls.clone();
    let server = builder.listen("callboard", listener, move || {
        let (tls, admissions) = (tls.clone(), admissions.clone());
        let (shutdown, unparsable) = (shutdown.clone(), Arc::clone(&unparsable));
        let config = ServiceConfig::default();
        let requests = HttpService::build()
            .client_disconnect_timeout(LINGER)
            // `inbound` handles late heads.
            .client_request_timeout(Duration::ZERO)
            .on_connect_ext(|connection: &Connection, extensions: &mut Extensions| {
                extensions.insert(connection.end());
                extensions.insert(connection.client_end());
                extensions.insert(connection.refusal());
                extensions.insert(connection.interim());
                extensions.insert(connection.answered());
                extensions.insert(connection.surplus());
            })
            .graceful_shutdown_signal(move || {
                let shutdown = shutdown.clone();
                async move { shutdown.notified().await }
            })
            .local_addr(address)
            .finish(map_config(http::application(app.clone()), |()| AppConfig::default()))
            .map_err(move |error| note(&error, &unparsable));
        fn_service(move |stream: TcpStream| {
            let (tls, config, admission) = (tls.clone(), config.clone(), admissions.admit());
            async move {
                // Otherwise a turn over a kept-alive connection takes 40 ms longer.
                let _ = stream.set_nodelay(true);
                let peer = stream.peer_addr().ok();
                let socket = Socket::accept(stream, tls.as_ref()).await;
                let socket = socket.map_err(|error| tracing::debug!(%error, "connection refused"))?;
                Ok((Connection::new(socket, config, admission), Protocol::Http1, peer))
            }
        })
        .and_then(requests)
    })?;
    Ok(server.run())
}

/// Logs a connection that ended with an error. Any client can cause one, so it is a single `debug` line. It includes a
/// count if the library rejects input that passed our own checks.
fn note(error: &DispatchError, unparsable: &AtomicU64) {
    if let DispatchError::Parse(error) = error {
        let total = unparsable.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        tracing::debug!(%error, total, "malformed request rejected");
    } else {
        tracing::debug!(%error, "connection broke");
    }
}
