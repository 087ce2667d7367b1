//! The load: keep-alive connections that send one request after another, with as little client work as possible.

use std::sync::Arc;
use std::thread::{self, available_parallelism};
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::super::server::now;

/// Bytes per read.
const READ_BYTES: usize = 256 << 10;

/// Requests for one file.
pub(super) struct Load {
    pub(super) address: String,
    pub(super) request: String,
    /// Bytes per body.
    pub(super) body: usize,
    pub(super) connections: usize,
    pub(super) time: Duration,
}

impl Load {
    /// Returns the duration of each request, and the total duration. Each core has a thread with its share of the
    /// connections.
    ///
    /// # Errors
    /// If a response is not the file.
    pub(super) fn measure(self: Arc<Self>) -> Result<(Vec<Duration>, Duration)> {
        let threads = available_parallelism().map_or(1, usize::from).min(self.connections);
        let began = now();
        let until = began + self.time;
        let threads: Vec<_> = (0..threads)
            .map(|number| {
                let connections = (number..self.connections).step_by(threads).count();
                let load = Arc::clone(&self);
                thread::spawn(move || load.thread(connections, until))
            })
            .collect();
        let mut all = Vec::new();
        for thread in threads {
            match thread.join() {
                Ok(times) => all.extend(times?),
                Err(_) => bail!("a load thread panicked"),
            }
        }
        Ok((all, began.elapsed()))
    }

    fn thread(self: Arc<Self>, connections: usize, until: Instant) -> Result<Vec<Duration>> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let mut open = JoinSet::new();
            for _ in 0..connections {
                let load = Arc::clone(&self);
                open.spawn(async move { load.connection(until).await });
            }
            let mut all = Vec::new();
            while let Some(times) = open.join_next().await {
                all.extend(times??);
            }
            Ok::<_, anyhow::Error>(all)
        })
    }

    async fn connection(&self, until: Instant) -> Result<Vec<Duration>> {
        let mut stream = TcpStream::connect(&self.address).await?;
        stream.set_nodelay(true)?;
        let (mut times, mut block) = (Vec::new(), vec![0_u8; READ_BYTES]);
        while now() < until {
            let began = now();
            stream.write_all(self.request.as_bytes()).await?;
            self.answer(&mut stream, &mut block).await?;
            times.push(began.elapsed());
        }
        Ok(times)
    }

    /// Reads one complete response.
    async fn answer(&self, stream: &mut TcpStream, block: &mut [u8]) -> Result<()> {
        let mut read = 0;
        let total = loop {
            match stream.read(block.get_mut(read..).unwrap_or_default()).await? {
                0 => bail!("the server closed the connection"),
                more => read += more,
            }
            let head = block.get(..read).unwrap_or_default();
            if let Some(end) = head.windows(4).position(|end| end == b"\r\n\r\n") {
                ensure!(head.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(head));
                break end + 4 + self.body;
            }
        };
        while read < total {
            match stream.read(block).await? {
                0 => bail!("the server closed the connection"),
                more => read += more,
            }
        }
        ensure!(read == total, "the response is longer than the file");
        Ok(())
    }
}
