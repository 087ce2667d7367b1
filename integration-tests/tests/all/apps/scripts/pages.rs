//! Serves pages that the bundle check rejects, with the policies that they would have.

use std::collections::BTreeMap;
use std::io::Cursor;
use std::net::SocketAddr;
use std::sync::Arc;

use bundle::{Document, Limits, TIME, Verdict, media_type, policy};
use integration_tests::{ReceivedRequest, TcpServer};
use kernel::SystemClock;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::apps::archive;

/// The probe in each page's head: it records scripts that ran, policy violations, and when both are final.
pub(super) const PROBE: &str = "window.ran = []; window.blocked = []; window.finished = false;
addEventListener('securitypolicyviolation', (event) => blocked.push(event.effectiveDirective + ' ' + event.blockedURI));
addEventListener('load', () => {
  for (const one of document.querySelectorAll('template.clone')) document.body.append(one.content.cloneNode(true));
  requestAnimationFrame(() => setTimeout(() => requestAnimationFrame(() => { window.finished = true; })));
});";

/// A served page.
struct Page {
    content_type: &'static str,
    policy: String,
    content: Vec<u8>,
}

/// Pages by path.
#[derive(Default)]
pub(super) struct Pages(BTreeMap<String, Page>);

impl Pages {
    /// Only the probe.
    pub(super) fn with_probe() -> Self {
        let (content_type, policy) = ("text/javascript", bundle::FILE_POLICY.to_owned());
        let probe = Page { content_type, policy, content: PROBE.into() };
        Self(BTreeMap::from([("/probe.js".to_owned(), probe)]))
    }

    /// Adds a page that the check rejects, with a policy that allows these inline scripts.
    pub(super) fn add_refused(&mut self, path: &str, content: Vec<u8>, hashes: &[String]) {
        let all = [("index.html", content.as_slice())];
        let mut bytes = Cursor::new(archive(&all));
        let verdict = bundle::check(&mut bytes, &Limits::DEFAULT, &SystemClock::new(), TIME).unwrap();
        assert!(matches!(verdict, Verdict::Refused(_)), "{path}: {}", String::from_utf8_lossy(&content));
        let policy = policy(&Document { hashes, frame_ancestors: &[], wasm: false });
        self.0.insert(format!("/{path}"), Page { content_type: media_type(path), policy, content });
    }

    /// Starts listening.
    pub(super) async fn serve(self) -> SocketAddr {
        let pages = Arc::new(self);
        TcpServer::start(move |stream| Arc::clone(&pages).answer(stream)).await.address
    }

    async fn answer(self: Arc<Self>, mut stream: TcpStream) -> Option<()> {
        let request = ReceivedRequest::read(&mut stream, &mut Vec::new()).await?;
        let path = request.head.split(' ').nth(1)?;
        let answer = match self.0.get(path) {
            Some(Page { content_type, policy, content }) => {
                let head = format!(
                    "HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\ncontent-security-policy: {policy}\r\n\
                     x-content-type-options: nosniff\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                    content.len()
                );
                [head.as_bytes(), content].concat()
            }
            None => b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n".to_vec(),
        };
        stream.write_all(&answer).await.ok()?;
        stream.shutdown().await.ok()
    }
}
