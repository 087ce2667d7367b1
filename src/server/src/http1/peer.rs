//! Detects clients that no longer acknowledge sent bytes.
//!
//! `TCP_USER_TIMEOUT` would be simpler, but it also ends connections with slow readers, because it counts bytes waiting
//! for the client's window as unacknowledged.

use std::time::Duration;

use tokio::time::Instant;

/// Maximum time that sent bytes may stay unacknowledged. Pings are sent every ten seconds, so the second one detects a
/// vanished client.
pub(super) const UNACKNOWLEDGED_LIMIT: Duration = Duration::from_millis(9_500);

/// Minimum time between two reads of the kernel's counters.
const CHECK_EVERY: Duration = Duration::from_secs(1);

/// Real time, because clients read in real time, whatever clock the service has.
#[expect(clippy::disallowed_methods, reason = "this is the time of connections")]
pub(super) fn now() -> Instant {
    Instant::now()
}

/// The kernel's view of the other end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Acknowledgements {
    /// Whether sent segments are unacknowledged. Bytes that wait for the client's window are not sent yet.
    pending: bool,
    /// The time of the last acknowledgement, including answers to probes of a closed window.
    last: Instant,
}

/// Tracks the bytes sent on a connection.
#[derive(Debug, Default)]
pub(super) struct SendTracker {
    /// The time since when bytes may be unacknowledged; `None` if all are acknowledged.
    since: Option<Instant>,
    checked: Option<Instant>,
}

impl SendTracker {
    /// Records that bytes were passed to the kernel.
    pub(super) fn more(&mut self, now: Instant) {
        self.since.get_or_insert(now);
    }

    /// Whether to query the kernel, which costs a system call.
    pub(super) fn is_due(&mut self, now: Instant) -> bool {
        let is_rested = self.checked.is_none_or(|checked| now.duration_since(checked) >= CHECK_EVERY);
        let is_due = self.since.is_some() && is_rested;
        if is_due {
            self.checked = Some(now);
        }
        is_due
    }

    /// Whether the client has vanished, because sent bytes stay unacknowledged.
    pub(super) fn is_lost(&mut self, now: Instant, known: Acknowledgements) -> bool {
        if !known.pending {
            self.since = None;
        }
        let Some(since) = self.since.as_mut() else { return false };
        *since = known.last.max(*since);
        now.duration_since(*since) >= UNACKNOWLEDGED_LIMIT
    }
}

#[cfg(target_os = "linux")]
mod kernel {
    use std::time::Duration;

    use nix::libc;
    use nix::sys::socket::getsockopt;
    use nix::{getsockopt_impl, sockopt_impl};
    use tokio::net::TcpStream;
    use tokio::time::Instant;

    use super::Acknowledgements;

    /// Words in `struct tcp_info` up to the acknowledged bytes; its layout is part of the kernel's interface.
    type Info = [u32; 32];
    /// Unacknowledged segments.
    const UNACKNOWLEDGED: usize = 6;
    /// Milliseconds since the last acknowledgement.
    const LAST_ACKNOWLEDGEMENT: usize = 14;
    /// Acknowledged bytes, in two words.
    const ACKNOWLEDGED_BYTES: usize = 30;

    sockopt_impl!(TcpInfo, GetOnly, libc::IPPROTO_TCP, libc::TCP_INFO, Info);

    pub(in super::super) fn acknowledgements(stream: &TcpStream, now: Instant) -> Option<Acknowledgements> {
        let info = getsockopt(stream, TcpInfo).ok()?;
        let ago = Duration::from_millis(info.get(LAST_ACKNOWLEDGEMENT).copied()?.into());
        Some(Acknowledgements { pending: *info.get(UNACKNOWLEDGED)? > 0, last: now.checked_sub(ago)? })
    }

    pub(in super::super) fn acknowledged_bytes(stream: &TcpStream) -> Option<u64> {
        let info = getsockopt(stream, TcpInfo).ok()?;
        let [first, second] = info.get(ACKNOWLEDGED_BYTES..)?.first_chunk()?.map(u32::to_ne_bytes);
        let [a, b, c, d] = first;
        let [e, f, g, h] = second;
        Some(u64::from_ne_bytes([a, b, c, d, e, f, g, h]))
    }
}

#[cfg(target_os = "linux")]
pub(super) use kernel::{acknowledged_bytes, acknowledgements};

/// Other systems end the connection by their own rules.
#[cfg(not(target_os = "linux"))]
pub(super) fn acknowledgements(_stream: &tokio::net::TcpStream, _now: Instant) -> Option<Acknowledgements> {
    None
}

#[cfg(not(target_os = "linux"))]
pub(super) fn acknowledged_bytes(_stream: &tokio::net::TcpStream) -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(n: u64) -> Instant {
        now() + Duration::from_secs(1_000 + n)
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_acknowledges_nothing_is_lost_at_the_second_ping() {
        let mut sent = SendTracker::default();
        assert!(!sent.is_due(second(0)), "nothing was sent");
        sent.more(second(0));
        let silent = Acknowledgements { pending: true, last: second(0) - Duration::from_secs(60) };
        assert!(sent.is_due(second(5)) && !sent.is_lost(second(5), silent));
        assert!(!sent.is_due(second(5)), "not before the interval");
        assert!(sent.is_due(second(10)) && sent.is_lost(second(10), silent));
    }

    #[tokio::test(start_paused = true)]
    async fn an_acknowledgement_restarts_the_wait() {
        let mut sent = SendTracker::default();
        sent.more(second(0));
        let known = Acknowledgements { pending: true, last: second(8) };
        assert!(!sent.is_lost(second(12), known) && !sent.is_lost(second(17), known));
        assert!(sent.is_lost(second(18), known));
    }

    #[tokio::test(start_paused = true)]
    async fn a_closed_window_or_a_long_silence_keeps_the_client() {
        let mut sent = SendTracker::default();
        sent.more(second(0));
        // All sent bytes are acknowledged; the rest waits for the window.
        assert!(!sent.is_lost(second(40), Acknowledgements { pending: false, last: second(1) }));
        assert!(!sent.is_due(second(50)), "nothing is open");
        // More bytes are sent after a minute of silence.
        sent.more(second(100));
        assert!(!sent.is_lost(second(101), Acknowledgements { pending: true, last: second(1) }));
    }
}
