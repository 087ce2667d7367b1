//! A tunnel to a TLS proxy for clients that speak plain HTTP.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto};

/// Connects one client to a proxy: from an address, under a server name, with a trusted authority.
pub(super) struct Tunnel {
    pub(super) address: SocketAddr,
}

impl Tunnel {
    pub(super) async fn open(from: IpAddr, proxy: SocketAddr, name: &str, authority: &[u8]) -> Self {
        let (connector, name) = (trusting(authority), ServerName::try_from(name.to_owned()).unwrap());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((mut near, _)) = listener.accept().await {
                let (connector, name) = (connector.clone(), name.clone());
                tokio::spawn(async move {
                    near.set_nodelay(true).unwrap();
                    match connect(from, proxy, &connector, name).await {
                        Ok(mut far) => drop(copy_bidirectional(&mut near, &mut far).await),
                        Err(error) => panic!("no TLS with the proxy: {error}"),
                    }
                });
            }
        });
        Self { address }
    }
}

/// Whether a proxy speaks TLS for a server name.
pub(super) async fn speaks_tls(proxy: SocketAddr, name: &str, authority: &[u8]) -> bool {
    // The file may be incomplete.
    if CertificateDer::from_pem_slice(authority).is_err() {
        return false;
    }
    let name = ServerName::try_from(name.to_owned()).unwrap();
    connect(Ipv4Addr::LOCALHOST.into(), proxy, &trusting(authority), name).await.is_ok()
}

fn trusting(authority: &[u8]) -> TlsConnector {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(authority).unwrap()).unwrap();
    let provider = Arc::new(crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    TlsConnector::from(Arc::new(config.with_root_certificates(roots).with_no_client_auth()))
}

async fn connect(
    from: IpAddr,
    proxy: SocketAddr,
    connector: &TlsConnector,
    name: ServerName<'static>,
) -> io::Result<TlsStream<TcpStream>> {
    let socket = TcpSocket::new_v4()?;
    socket.bind((from, 0).into())?;
    let far = socket.connect(proxy).await?;
    far.set_nodelay(true)?;
    connector.connect(name, far).await
}
