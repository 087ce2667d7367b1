//! A certificate chain and its private key, from two PEM files.

use std::path::Path;

use rustls::crypto::ring;
use rustls::pki_types::pem::{Error as PemError, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;

/// Unusable files. Each message names the variable to check.
#[derive(Debug, thiserror::Error)]
pub enum PairError {
    /// The chain cannot be read.
    #[error("SERVICE_TLS_CERT: {0}")]
    Cert(String),
    /// The key cannot be read.
    #[error("SERVICE_TLS_KEY: {0}")]
    Key(String),
    /// The key belongs to another certificate.
    #[error("SERVICE_TLS_KEY is not the key of the first certificate in SERVICE_TLS_CERT")]
    Mismatch,
    /// The TLS library rejects them.
    #[error("SERVICE_TLS_CERT and SERVICE_TLS_KEY cannot be used: {0}")]
    Unusable(String),
}

/// Reads both files.
///
/// # Errors
/// [`PairError`] with the file and the problem.
pub(super) fn read(files: &config::Tls) -> Result<CertifiedKey, PairError> {
    let chain = CertificateDer::pem_file_iter(&files.cert)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| PairError::Cert(describe(&files.cert, &error)))?;
    if chain.is_empty() {
        return Err(PairError::Cert(describe(&files.cert, &PemError::NoItemsFound)));
    }
    let key = PrivateKeyDer::from_pem_file(&files.key)
        .map_err(|error| PairError::Key(describe(&files.key, &error)))?;
    CertifiedKey::from_der(chain, key, &ring::default_provider()).map_err(|error| match error {
        rustls::Error::InconsistentKeys(_) => PairError::Mismatch,
        other => PairError::Unusable(other.to_string()),
    })
}

fn describe(path: &Path, error: &PemError) -> String {
    let path = path.display();
    match error {
        PemError::Io(error) => format!("{path} cannot be read: {error}"),
        PemError::NoItemsFound => format!("{path} contains no PEM section of this kind"),
        // The error's own text contains the line, which may be a key.
        _ => format!("{path} is not valid PEM"),
    }
}
