//! A connection with or without TLS.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

use crate::http::header_lines;
use crate::tls::Tls;

/// Timeout for the client's TLS handshake.
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(10);

/// The response to a request without TLS.
const TLS_ONLY: &str = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 42\r\n\
                        Connection: close\r\n";
const TLS_ONLY_BODY: &str = "This port speaks TLS only. Use https://.\r\n";

pub(super) enum Socket {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Socket {
    /// Completes the TLS handshake if the listener has a certificate.
    ///
    /// # Errors
    /// If the client does not speak TLS or takes too long.
    #[expect(
        clippy::disallowed_methods,
        reason = "a client connects in real time, whatever clock the service has"
    )]
    pub(super) async fn accept(stream: TcpStream, tls: Option<&Tls>) -> io::Result<Self> {
        let Some(tls) = tls else { return Ok(Self::Plain(stream)) };
        tokio::time::timeout(HANDSHAKE_LIMIT, handshake(stream, tls)).await?
    }

    /// The underlying TCP connection.
    pub(super) fn tcp(&self) -> &TcpStream {
        match self {
            Self::Plain(stream) => stream,
            Self::Tls(stream) => stream.get_ref().0,
        }
    }
}

async fn handshake(mut stream: TcpStream, tls: &Tls) -> io::Result<Socket> {
    let mut first = [0];
    stream.peek(&mut first).await?;
    // No TLS handshake starts with an uppercase letter, but HTTP requests do.
    if first.iter().all(u8::is_ascii_uppercase) {
        let answer = format!("{TLS_ONLY}{}\r\n{TLS_ONLY_BODY}", header_lines());
        stream.write_all(answer.as_bytes()).await?;
        // Closing with unread bytes would reset the connection before the client reads the response.
        stream.shutdown().await?;
        tokio::io::copy(&mut tokio::io::AsyncReadExt::take(&mut stream, 64 * 1024), &mut tokio::io::sink())
            .await?;
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a request without TLS"));
    }
    Ok(Socket::Tls(Box::new(tls.acceptor().accept(stream).await?)))
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Tls(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Tls(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write_vectored(context, parts),
            Self::Tls(stream) => Pin::new(stream).poll_write_vectored(context, parts),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Plain(stream) => stream.is_write_vectored(),
            Self::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(context),
            Self::Tls(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn a_request_without_tls_gets_the_common_headers() {
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let folder = tempfile::TempDir::new().unwrap();
        let files = config::Tls { cert: folder.path().join("cert.pem"), key: folder.path().join("key.pem") };
        std::fs::write(&files.cert, certificate.self_signed(&key).unwrap().pem()).unwrap();
        std::fs::write(&files.key, key.serialize_pem()).unwrap();
        let tls = Tls::load(&files).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (client, accepted) =
            tokio::join!(TcpStream::connect(listener.local_addr().unwrap()), listener.accept());
        let mut client = client.unwrap();
        let ask = async {
            client.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
            client.shutdown().await.unwrap();
            let mut answer = String::new();
            client.read_to_string(&mut answer).await.unwrap();
            answer
        };
        let (socket, answer) = tokio::join!(Socket::accept(accepted.unwrap().0, Some(&tls)), ask);
        assert!(socket.is_err());
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{head}");
        let length = format!("\r\nContent-Length: {}\r\n", body.len());
        assert!(body == TLS_ONLY_BODY && head.contains(&length), "{answer}");
        for line in [
            "content-security-policy: default-src 'none'; sandbox",
            "x-frame-options: DENY",
            "cache-control: private, no-store",
            "x-content-type-options: nosniff",
        ] {
            assert!(head.contains(&format!("\r\n{line}")), "{line}: {head}");
        }
    }
}
