//! A connection that checks bytes before the HTTP library reads them, and requires its client to read.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use actix_http::ServiceConfig;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep_until};
use tokio_util::sync::WaitForCancellationFutureOwned;

use super::LINGER;
use super::admission::Admission;
use super::inbound::Inbound;
use super::peer::{SendTracker, acknowledged_bytes, acknowledgements, now};
use super::socket::Socket;
use crate::http::{Answered, ClientEnd, Interim, Refusal, Surplus};
use crate::ws::ReadEnd;

/// Maximum time that a client may read nothing of the sent bytes.
const WRITE_STALL_LIMIT: Duration = Duration::from_secs(60);

/// The interval between kernel queries about a stalled client's reading.
const STALL_CHECK_EVERY: Duration = Duration::from_secs(5);

pub(super) struct Connection {
    stream: Socket,
    end: ReadEnd,
    client_end: ClientEnd,
    inbound: Inbound,
    interim: Interim,
    answered: Answered,
    admission: Admission,
    /// Completes when the connection is evicted.
    evicted: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
    /// The unsent rest of an interim response.
    interim_left: &'static [u8],
    /// Whether the end of the output has been sent.
    is_shut: bool,
    /// The timeout for reading the remaining input afterwards.
    linger: Option<Pin<Box<Sleep>>>,
    /// Whether bytes were written since the last flush.
    has_written: bool,
    writing: Stall,
    /// Stalls of flushes. TLS buffers written bytes until a flush. A flush ends only when the buffer is empty, which
    /// may never happen while a client reads.
    flushing: Stall,
    sent: SendTracker,
}

impl Connection {
    pub(super) fn new(stream: Socket, config: ServiceConfig, admission: Admission) -> Self {
        let evicted = admission.evicted().map(|evicted| Box::pin(evicted.cancelled_owned()));
        Self {
            stream,
            end: ReadEnd::default(),
            client_end: ClientEnd::default(),
            inbound: Inbound::new(config),
            interim: Interim::default(),
            answered: Answered::default(),
            admission,
            evicted,
            interim_left: &[],
            is_shut: false,
            linger: None,
            has_written: false,
            writing: Stall::default(),
            flushing: Stall::default(),
            sent: SendTracker::default(),
        }
    }

    pub(super) fn end(&self) -> ReadEnd {
        self.end.clone()
    }

    pub(super) fn client_end(&self) -> ClientEnd {
        self.client_end.clone()
    }

    pub(super) fn refusal(&self) -> Refusal {
        self.inbound.refusal().clone()
    }

    pub(super) fn interim(&self) -> Interim {
        self.interim.clone()
    }

    pub(super) fn answered(&self) -> Answered {
        self.answered.clone()
    }

    pub(super) fn surplus(&self) -> Surplus {
        Surplus(self.admission.evicted().is_some())
    }

    /// Sends the rest of an interim response.
    fn poll_interim(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.interim_left.is_empty() {
            let written = Pin::new(&mut self.stream).poll_write(context, self.interim_left);
            match ready!(self.written(context, written))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                size => self.interim_left = self.interim_left.get(size..).unwrap_or_default(),
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Reads remaining input, so that the client can read its response.
    fn poll_linger(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let timer = self.linger.get_or_insert_with(|| Box::pin(sleep_until(now() + LINGER)));
        if timer.as_mut().poll(context).is_ready() {
            return Poll::Ready(());
        }
        self.inbound.poll_discard(&mut self.stream, context).map(drop)
    }

    /// Fails if the client has vanished without closing the connection.
    fn is_there(&mut self) -> io::Result<()> {
        let time = now();
        if !self.sent.is_due(time) {
            return Ok(());
        }
        match acknowledgements(self.stream.tcp(), time) {
            Some(known) if self.sent.is_lost(time, known) => Err(io::ErrorKind::TimedOut.into()),
            _ => Ok(()),
        }
    }

    /// Returns the outcome of a write; fails if the client has read nothing for too long.
    fn written(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if written.is_ready() {
            self.sent.more(now());
            self.has_written = true;
        }
        self.writing.limit(context, written, self.stream.tcp())
    }
}

/// Detects a client that stops reading while the socket, or TLS above it, cannot accept more bytes.
#[derive(Default)]
struct Stall {
    waiting: Option<StallTimer>,
}

/// The time for which the client has read nothing, checked by a timer.
struct StallTimer {
    timer: Pin<Box<Sleep>>,
    /// Bytes acknowledged at the last check. The client acknowledges more only if it reads.
    acknowledged: Option<u64>,
    /// The time when this number was first seen.
    since: Instant,
}

impl StallTimer {
    fn begin(stream: &TcpStream) -> Self {
        let since = now();
        let timer = Box::pin(sleep_until(since + STALL_CHECK_EVERY));
        Self { timer, acknowledged: acknowledged_bytes(stream), since }
    }

    /// Ready when the client has read nothing for too long.
    fn poll_end(&mut self, context: &mut Context<'_>, stream: &TcpStream) -> Poll<()> {
        loop {
            ready!(self.timer.as_mut().poll(context));
            let (time, acknowledged) = (now(), acknowledged_bytes(stream));
            if self.acknowledged != acknowledged {
                self.acknowledged = acknowledged;
                self.since = time;
            } else if time.duration_since(self.since) >= WRITE_STALL_LIMIT {
                return Poll::Ready(());
            }
            self.timer.as_mut().reset(time + STALL_CHECK_EVERY);
        }
    }
}

impl Stall {
    /// Returns the outcome; fails if it is pending and the client has read nothing for too long.
    fn limit<T>(
        &mut self,
        context: &mut Context<'_>,
        outcome: Poll<io::Result<T>>,
        stream: &TcpStream,
    ) -> Poll<io::Result<T>> {
        if outcome.is_ready() {
            self.waiting = None;
            return outcome;
        }
        ready!(self.waiting.get_or_insert_with(|| StallTimer::begin(stream)).poll_end(context, stream));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.end.is_set() {
            return Poll::Ready(Ok(()));
        }
        if this.evicted.as_mut().is_some_and(|evicted| evicted.as_mut().poll(context).is_ready()) {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        let read = this.inbound.poll_read(&mut this.stream, context, buffer);
        if this.inbound.is_closed() {
            this.client_end.set();
        }
        read
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.is_there()?;
        ready!(self.poll_interim(context))?;
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.written(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.is_there()?;
        ready!(self.poll_interim(context))?;
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.written(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        this.is_there()?;
        if this.interim.take() {
            this.interim_left = Interim::ANSWER;
        }
        ready!(this.poll_interim(context))?;
        let flushed = Pin::new(&mut this.stream).poll_flush(context);
        ready!(this.flushing.limit(context, flushed, this.stream.tcp()))?;
        if this.answered.take() && this.inbound.answered() {
            // The library must now read the next request.
            context.waker().wake_by_ref();
        }
        if std::mem::take(&mut this.has_written) && this.inbound.may_hold_body() {
            // This may be the end of a response whose handler dropped the request body, so the library must process its
            // rest.
            context.waker().wake_by_ref();
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if !this.is_shut {
            let shut = Pin::new(&mut this.stream).poll_shutdown(context);
            ready!(this.flushing.limit(context, shut, this.stream.tcp()))?;
            this.is_shut = true;
        }
        if this.inbound.has_more() {
            ready!(this.poll_linger(context));
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use crate::open_files::OpenFiles;
    use crate::tls::Tls;

    use super::super::admission::Admissions;
    use super::super::peer::UNACKNOWLEDGED_LIMIT;
    use super::*;

    /// Drops the local tasks, which only reading requests would need.
    fn config() -> ServiceConfig {
        let tasks = tokio::task::LocalSet::new();
        let _current = tasks.enter();
        ServiceConfig::default()
    }

    fn admission() -> Admission {
        Admissions::new(OpenFiles::allowed()).admit()
    }

    async fn pair() -> (Connection, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (client, accepted) =
            tokio::join!(TcpStream::connect(listener.local_addr().unwrap()), listener.accept());
        (Connection::new(Socket::Plain(accepted.unwrap().0), config(), admission()), client.unwrap())
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_client_that_reads_nothing_acknowledges_until_its_window_is_closed() {
        let (mut connection, mut client) = pair().await;
        // More than the client's side can buffer.
        let bytes = vec![0; 64 << 20];
        let mut writing = Box::pin(connection.write_all(&bytes));
        assert!(futures_util::poll!(&mut writing).is_pending());
        drop(writing);
        let later = || now() + UNACKNOWLEDGED_LIMIT;
        assert!(connection.sent.is_due(later()));
        loop {
            let known = acknowledgements(connection.stream.tcp(), now()).unwrap();
            if !connection.sent.is_lost(later(), known) {
                break;
            }
            tokio::task::yield_now().await;
        }
        // As soon as the client reads, more is sent.
        let mut piece = vec![0; 64 << 10];
        loop {
            tokio::select! {
                written = connection.write_all(b"more") => break written.unwrap(),
                read = client.read(&mut piece) => assert!(read.unwrap() > 0),
            }
        }
    }

    /// Both ends of a TLS connection.
    async fn tls_pair() -> (Connection, tokio_rustls::client::TlsStream<TcpStream>) {
        let key = rcgen::KeyPair::generate().unwrap();
        let params = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let certificate = params.self_signed(&key).unwrap();
        let folder = tempfile::TempDir::new().unwrap();
        let files = config::Tls { cert: folder.path().join("cert.pem"), key: folder.path().join("key.pem") };
        std::fs::write(&files.cert, certificate.pem()).unwrap();
        std::fs::write(&files.key, key.serialize_pem()).unwrap();
        let tls = Tls::load(&files).unwrap();
        let mut roots = rustls::RootCertStore::empty();
        roots.add(certificate.der().clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let client = rustls::ClientConfig::builder_with_provider(provider);
        let client = client.with_safe_default_protocol_versions().unwrap();
        let client = client.with_root_certificates(roots).with_no_client_auth();
        let connector = tokio_rustls::TlsConnector::from(Arc::new(client));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (client, accepted) =
            tokio::join!(TcpStream::connect(listener.local_addr().unwrap()), listener.accept());
        let (socket, client) = tokio::join!(
            Socket::accept(accepted.unwrap().0, Some(&tls)),
            connector.connect("localhost".try_into().unwrap(), client.unwrap())
        );
        (Connection::new(socket.unwrap(), config(), admission()), client.unwrap())
    }

    #[tokio::test]
    async fn a_client_that_reads_nothing_is_disconnected_with_pending_tls_bytes() {
        let (mut connection, _client) = tls_pair().await;
        // Until both the socket and the TLS buffer are full.
        let bytes = vec![0; 64 << 20];
        {
            let mut writing = Box::pin(connection.write_all(&bytes));
            assert!(futures_util::poll!(&mut writing).is_pending());
        }
        tokio::time::pause();
        assert_eq!(connection.flush().await.unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert_eq!(connection.shutdown().await.unwrap_err().kind(), io::ErrorKind::TimedOut);
    }

    /// Writes as much as the connection accepts and flushes the rest, forever. Returns the error that ends it.
    async fn write_for_ever(connection: &mut Connection) -> io::Error {
        let bytes = vec![0; 64 << 10];
        let ended = std::future::poll_fn(|context| {
            let mut connection = Pin::new(&mut *connection);
            loop {
                match connection.as_mut().poll_write(context, &bytes) {
                    Poll::Ready(Ok(_)) => {}
                    Poll::Ready(Err(error)) => return Poll::Ready(error),
                    Poll::Pending => break,
                }
            }
            connection.as_mut().poll_flush(context).map(|flushed| flushed.unwrap_err())
        });
        ended.await
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    #[expect(clippy::disallowed_methods, reason = "the time of connections, which is paused")]
    async fn a_client_that_reads_slowly_over_tls_is_served_until_it_stops() {
        let (mut connection, mut client) = tls_pair().await;
        tokio::time::pause();
        let began = now();
        let reading = async {
            let mut piece = vec![0; 1 << 20];
            while now().duration_since(began) < 10 * WRITE_STALL_LIMIT {
                tokio::time::sleep(Duration::from_secs(20)).await;
                client.read_exact(&mut piece).await.unwrap();
            }
            std::future::pending::<()>().await;
            drop(client);
        };
        let ended = tokio::select! {
            error = write_for_ever(&mut connection) => error,
            () = reading => unreachable!(),
        };
        assert_eq!(ended.kind(), io::ErrorKind::TimedOut);
        let passed = now().duration_since(began);
        assert!((11 * WRITE_STALL_LIMIT..12 * WRITE_STALL_LIMIT).contains(&passed), "{passed:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_reads_nothing_is_disconnected() {
        let (mut connection, _client) = pair().await;
        let error = connection.write_all(&vec![0; 64 << 20]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}
