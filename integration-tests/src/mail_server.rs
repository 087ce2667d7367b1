//! A mail server that stores the mails it receives.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use crate::{TcpServer, until};

/// A received mail.
#[derive(Debug, Clone)]
pub struct Mail {
    /// The envelope sender.
    pub from: String,
    /// All envelope recipients.
    pub to: Vec<String>,
    /// Headers and text.
    pub data: String,
}

impl Mail {
    /// The line that has only six digits.
    ///
    /// # Panics
    /// When there is not exactly one.
    #[must_use]
    pub fn code(&self) -> String {
        let is_code = |line: &&str| line.len() == 6 && line.bytes().all(|b| b.is_ascii_digit());
        let codes: Vec<&str> = self.data.lines().filter(is_code).collect();
        assert_eq!(codes.len(), 1, "{}", self.data);
        codes[0].to_owned()
    }

    /// The line that has only a link.
    #[must_use]
    pub fn link(&self) -> Option<String> {
        self.data.lines().find(|line| line.starts_with("http")).map(str::to_owned)
    }

    /// A header's value.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let head = self.data.split("\n\n").next().unwrap_or_default();
        let mut pairs = head.lines().filter_map(|line| line.split_once(": "));
        pairs.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}

#[derive(Default)]
struct MailServerState {
    mails: Vec<Mail>,
    /// The reply to every recipient, if set.
    refusal: Option<String>,
    /// The replies to some recipients.
    answers: BTreeMap<String, String>,
    /// Whether a complete mail gets no reply.
    silent: bool,
    /// Whether the connection ends after a complete mail.
    hangs_up: bool,
}

/// A mail server on a free port.
pub struct MailServer {
    /// The listening side.
    pub server: TcpServer,
    kept: Arc<Mutex<MailServerState>>,
}

impl MailServer {
    /// Starts a mail server.
    ///
    /// # Panics
    /// Without a free port.
    pub async fn start() -> Self {
        let kept = Arc::<Mutex<MailServerState>>::default();
        let state = Arc::clone(&kept);
        Self { server: TcpServer::start(move |stream| serve(stream, Arc::clone(&state))).await, kept }
    }

    /// The value for `SERVICE_SMTP_URL`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("smtp://{}", self.server.address)
    }

    /// Sends this reply to every recipient, until set to `None`.
    pub fn refuse(&self, line: Option<&str>) {
        self.kept.lock().expect("no panic").refusal = line.map(str::to_owned);
    }

    /// Sends this reply to one recipient, until set to `None`; an empty line means no reply.
    pub fn refuse_one(&self, recipient: &str, line: Option<&str>) {
        let answers = &mut self.kept.lock().expect("no panic").answers;
        match line {
            Some(line) => answers.insert(recipient.to_owned(), line.to_owned()),
            None => answers.remove(recipient),
        };
    }

    /// Accepts mails without a reply.
    pub fn be_silent(&self, silent: bool) {
        self.kept.lock().expect("no panic").silent = silent;
    }

    /// Accepts mails and closes the connection without a reply.
    pub fn hang_up(&self, hang_up: bool) {
        self.kept.lock().expect("no panic").hangs_up = hang_up;
    }

    /// All mails so far.
    ///
    /// # Panics
    /// Never.
    #[must_use]
    pub fn mails(&self) -> Vec<Mail> {
        self.kept.lock().expect("no panic").mails.clone()
    }

    /// The mail with this number, counted from 1, once it has arrived.
    pub async fn mail(&self, number: usize) -> Mail {
        until("a mail to come", async || self.mails().len() >= number).await;
        self.mails()[number - 1].clone()
    }
}

async fn serve(stream: TcpStream, kept: Arc<Mutex<MailServerState>>) -> Option<()> {
    let (read, mut write) = stream.into_split();
    let mut lines = BufReader::new(read).lines();
    write.write_all(b"220 here\r\n").await.ok()?;
    let mut mail = Mail { from: String::new(), to: Vec::new(), data: String::new() };
    while let Some(line) = lines.next_line().await.ok()? {
        let verb = line.to_ascii_uppercase();
        let answer = if verb.starts_with("EHLO") {
            "250-here\r\n250 8BITMIME".to_owned()
        } else if let Some(from) = verb.strip_prefix("MAIL FROM:") {
            mail.from = address(&line[line.len() - from.len()..]);
            "250 ok".to_owned()
        } else if let Some(to) = verb.strip_prefix("RCPT TO:") {
            let to = address(&line[line.len() - to.len()..]);
            let kept = kept.lock().expect("no panic");
            let refusal = kept.answers.get(&to).or(kept.refusal.as_ref()).cloned();
            // A rejected recipient gets no mail, even if the client sends DATA.
            if refusal.is_none() {
                mail.to.push(to);
            }
            refusal.unwrap_or_else(|| "250 ok".to_owned())
        } else if verb == "DATA" {
            write.write_all(b"354 send the mail\r\n").await.ok()?;
            while let Some(line) = lines.next_line().await.ok()? {
                if line == "." {
                    break;
                }
                mail.data.push_str(line.strip_prefix('.').unwrap_or(&line));
                mail.data.push('\n');
            }
            let mut kept = kept.lock().expect("no panic");
            kept.mails.push(mail.clone());
            mail = Mail { from: String::new(), to: Vec::new(), data: String::new() };
            if kept.hangs_up {
                return None;
            }
            if kept.silent { String::new() } else { "250 taken".to_owned() }
        } else if verb == "RSET" {
            mail = Mail { from: String::new(), to: Vec::new(), data: String::new() };
            "250 ok".to_owned()
        } else if verb == "QUIT" {
            write.write_all(b"221 bye\r\n").await.ok()?;
            return Some(());
        } else {
            "250 ok".to_owned()
        };
        if !answer.is_empty() {
            write.write_all(format!("{answer}\r\n").as_bytes()).await.ok()?;
        }
    }
    Some(())
}

fn address(text: &str) -> String {
    text.split(['<', '>']).nth(1).unwrap_or(text).to_owned()
}
