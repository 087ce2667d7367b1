//! Binds the listen address.

use std::io::ErrorKind;
use std::net::TcpListener;

use config::Config;

/// The listen address cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}: {reason}")]
pub struct ListenError {
    /// The address.
    address: String,
    /// The reason, and the setting to change.
    reason: String,
}

/// Binds the configured address.
///
/// # Errors
/// [`ListenError`] with the setting to change.
pub(crate) fn listen(config: &Config) -> Result<TcpListener, ListenError> {
    let (host, port) = (config.http.host.as_str(), config.http.port);
    TcpListener::bind((host, port)).map_err(|error| {
        let address = if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
        ListenError { address, reason: not_listening(port, &error) }
    })
}

/// The reason why binding failed, and the setting to change.
fn not_listening(port: u16, error: &std::io::Error) -> String {
    match error.kind() {
        ErrorKind::AddrInUse => format!(
            "another program already listens on port {port}; stop it, or set SERVICE_PORT to another port (0 picks a \
             free one)"
        ),
        ErrorKind::AddrNotAvailable => {
            "this machine does not have this address; set SERVICE_HOST to one of its addresses, such as 127.0.0.1"
                .to_owned()
        }
        ErrorKind::PermissionDenied => format!(
            "only root may use port {port}; set SERVICE_PORT to 1024 or higher (0 picks a \
             free one)"
        ),
        _ => format!("{error}; check SERVICE_HOST and SERVICE_PORT"),
    }
}
