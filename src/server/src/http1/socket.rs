//! A connection with or without TLS.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

use crate::tls::Tls;

/// How long a client may take for its handshake.
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(10);

/// The answer to a request without TLS.
const TLS_ONLY: &str = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 42\r\n\
                        Connection: close\r\n\r\nThis port speaks TLS only. Use https://.\r\n";

pub(super) enum Socket {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Socket {
    /// Completes the handshake of a connection, if the listener has a certificate.
    ///
    /// # Errors
    /// If the client does not speak TLS, or takes too long.
    #[expect(
        clippy::disallowed_methods,
        reason = "a client connects in real time, whatever clock the service has"
    )]
    pub(super) async fn accept(stream: TcpStream, tls: Option<&Tls>) -> io::Result<Self> {
        let Some(tls) = tls else { return Ok(Self::Plain(stream)) };
        tokio::time::timeout(HANDSHAKE_LIMIT, handshake(stream, tls)).await?
    }

    /// The connection below.
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
    // A handshake begins with another byte.
    if first.iter().all(u8::is_ascii_uppercase) {
        stream.write_all(TLS_ONLY.as_bytes()).await?;
        // Closing with unread bytes would reset the connection before the client reads the answer.
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
