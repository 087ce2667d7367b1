//! A client with two addresses: if one fails, it uses the other.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::super::hosted::{Answer, Broken, Request, ask};
use super::super::server::pause;
use super::super::splitmix::splitmix;
use super::content::{self, files, page};
use super::found::{SwitchCounts, add};

/// A reader's pause between two pages.
const PAUSE: Duration = Duration::from_millis(15);

pub(super) struct PageReader {
    pub(super) found: Arc<SwitchCounts>,
    pub(super) addresses: [String; 2],
    pub(super) host: String,
    /// The position in its pseudorandom sequence.
    pub(super) place: u64,
    /// Releases whose pages it has seen; the bench takes minutes, so each was loaded within the last hour.
    pub(super) seen: Vec<u64>,
}

impl PageReader {
    pub(super) async fn keep_reading(mut self) {
        while !self.found.ends.load(Ordering::SeqCst) {
            if let Some(number) = self.page().await {
                self.files(number).await;
                if self.seen.last() != Some(&number) {
                    self.seen.push(number);
                }
                let any = usize::try_from(self.random()).unwrap_or(usize::MAX) % self.seen.len();
                if let Some(earlier) = self.seen.get(any).copied() {
                    self.files(earlier).await;
                }
            }
            pause(PAUSE).await;
        }
    }

    fn random(&mut self) -> u64 {
        self.place = self.place.wrapping_add(1);
        // 31 bits, which fit into any integer type used here.
        splitmix(self.place) >> 33
    }

    /// Loads the page. Returns its release if it is complete and was active.
    async fn page(&mut self) -> Option<u64> {
        let before = self.found.now();
        let answer = self.read("/").await?;
        add(&self.found.pages);
        let number = content::number(&answer.body)
            .filter(|number| answer.body == page(*number).as_bytes())
            .filter(|number| self.found.may_be_active(before, *number));
        if number.is_none() {
            add(&self.found.mixed);
        }
        number
    }

    /// Loads a page's files.
    async fn files(&mut self, number: u64) {
        for (path, content) in files(number) {
            let Some(answer) = self.read(&format!("/{path}")).await else { continue };
            add(&self.found.files);
            if answer.body != content.as_bytes() {
                add(&self.found.mixed);
            }
        }
    }

    /// Reads a path from one instance, and from the other if that fails. Returns only successful responses.
    async fn read(&mut self, path: &str) -> Option<Answer> {
        let first = usize::from(self.random() & 1 == 1);
        for which in [first, 1 - first] {
            let address = self.addresses.get(which).map_or("", String::as_str);
            match ask(address, Request::get(&self.host, path)).await {
                Ok(answer) => {
                    add(&self.found.reads);
                    match answer.status {
                        200 => return Some(answer),
                        404 => add(&self.found.missing),
                        500.. => add(&self.found.errors),
                        _ => add(&self.found.others),
                    }
                    return None;
                }
                Err(Broken::Connection) => add(&self.found.broken),
                Err(Broken::Late) => add(&self.found.late),
            }
        }
        add(&self.found.unanswered);
        None
    }
}
