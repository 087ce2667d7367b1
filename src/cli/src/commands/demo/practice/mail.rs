//! The simulated mail server: prints each mail instead of delivering it.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

use super::services::told;

/// Maximum printed bytes per mail.
const SHOWN: usize = 2_000;

/// Starts the server; returns its address.
pub(super) async fn start() -> io::Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let address = listener.local_addr()?;
    actix_rt::spawn(async move {
        loop {
            if let Ok((stream, _)) = listener.accept().await {
                actix_rt::spawn(serve(stream));
            }
        }
    });
    Ok(address)
}

/// Accepts mails until the sender disconnects.
async fn serve(stream: TcpStream) -> io::Result<()> {
    let (read, mut write) = stream.into_split();
    let mut lines = BufReader::new(read).lines();
    write.write_all(b"220 simulated\r\n").await?;
    while let Some(line) = lines.next_line().await? {
        let verb = line.to_ascii_uppercase();
        let answer: &[u8] = match verb.split_whitespace().next() {
            Some("EHLO") => b"250-simulated\r\n250 8BITMIME\r\n",
            Some("DATA") => {
                write.write_all(b"354 send the mail\r\n").await?;
                let mut mail = String::new();
                while let Some(line) = lines.next_line().await?.filter(|line| line != ".") {
                    if mail.len() < SHOWN {
                        mail.push_str(line.strip_prefix('.').unwrap_or(&line));
                        mail.push('\n');
                    }
                }
                told(&format!("A mail:\n{}", mail.trim_end()));
                b"250 taken\r\n"
            }
            Some("QUIT") => return write.write_all(b"221 bye\r\n").await,
            _ => b"250 ok\r\n",
        };
        write.write_all(answer).await?;
    }
    Ok(())
}
