//! Checks that proxies between clients and the service forward streams without buffering.
//!
//! Reads `/api/system/stream` through the public address; the service sends its pieces half a second apart.

use std::time::Duration;

use kernel::Clock;
use net::header::{CONTENT_ENCODING, HeaderMap};

use super::report::Finding;
use super::web::{HELD_BACK, SOON, Web};

const STREAMS: &str = "streams";

/// Number of requested pieces.
const PIECES: usize = 5;
/// Time between two pieces, as the service sends them.
const PACE: Duration = Duration::from_millis(500);
/// Pieces that arrive closer together were buffered.
const TOGETHER: Duration = Duration::from_millis(100);

/// The measurements.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct StreamMeasurement {
    /// Duration of a plain response on the same route.
    plain: Duration,
    /// Arrival time of each piece since the request.
    pieces: Vec<Duration>,
    /// Whether a proxy compressed the stream.
    compressed: bool,
}

/// Reads the stream.
///
/// # Errors
/// The reason that the stream could not be read.
pub(super) async fn probe(base: &str, web: &Web, clock: &dyn Clock) -> Result<StreamMeasurement, String> {
    let base = base.trim_end_matches('/');
    // The second request uses an open connection, as the stream will.
    let mut plain = Duration::ZERO;
    for _ in 0..2 {
        let began = clock.monotonic();
        let answer =
            web.get(&format!("{base}/healthz"), SOON, None).await.map_err(|error| error.to_string())?;
        answer.bytes().await.map_err(|error| error.to_string())?;
        plain = clock.monotonic().saturating_sub(began);
    }
    let began = clock.monotonic();
    let url = format!("{base}/api/system/stream?events={PIECES}");
    let mut answer = web.get(&url, HELD_BACK, None).await.map_err(|error| error.to_string())?;
    if answer.status() != 200 {
        return Err(format!("/api/system/stream returns {} there", answer.status()));
    }
    let mut measured = StreamMeasurement {
        plain,
        compressed: is_compressed(answer.headers()),
        ..StreamMeasurement::default()
    };
    let (mut text, mut seen) = (Vec::new(), 0);
    while let Some(piece) = answer.chunk().await.map_err(|error| error.to_string())? {
        text.extend_from_slice(&piece);
        let whole = text.windows(2).filter(|two| *two == b"\n\n").count();
        let now = clock.monotonic().saturating_sub(began);
        measured.pieces.extend((seen..whole).map(|_| now));
        seen = whole;
    }
    Ok(measured)
}

fn is_compressed(headers: &HeaderMap) -> bool {
    headers.get(CONTENT_ENCODING).is_some_and(|coding| coding != "identity")
}

pub(super) fn judge(base: &str, measured: &Result<StreamMeasurement, String>) -> Finding {
    let StreamMeasurement { plain, pieces, compressed } = match measured {
        Ok(measured) => measured,
        Err(error) => {
            return Finding::problem(
                STREAMS,
                format!("no stream was received through {base}: {error}"),
                "start the service, set its public address, and configure the proxy to forward every path to it",
            );
        }
    };
    let remedy = "disable response buffering and compression for text/event-stream in the proxy or CDN (nginx: \
                  proxy_buffering off; gzip off), or let it respect the header X-Accel-Buffering: no, which the service sends";
    let (Some(first), Some(last)) = (pieces.first(), pieces.last()) else {
        let message = if *compressed { "is compressed" } else { "is empty" };
        return Finding::problem(STREAMS, format!("the stream {message} through {base}"), remedy);
    };
    if pieces.len() < PIECES {
        let message = format!("received only {} of {PIECES} pieces through {base}", pieces.len());
        return Finding::problem(STREAMS, message, "configure the proxy not to close long streams");
    }
    let due = PACE.saturating_mul(u32::try_from(PIECES.saturating_sub(1)).unwrap_or(0));
    let spread = last.saturating_sub(*first);
    if spread < due / 2 {
        let message = format!(
            "{base} buffers streams: {PIECES} pieces sent within {} ms arrived within {} ms, after {} ms",
            due.as_millis(),
            spread.as_millis(),
            first.as_millis()
        );
        return Finding::problem(STREAMS, message, remedy);
    }
    let together = pieces.iter().zip(pieces.iter().skip(1));
    let together = together.filter(|(one, next)| next.saturating_sub(**one) < TOGETHER).count();
    let late = first.saturating_sub(*plain);
    if together > 0 {
        let message =
            format!("{together} of {PIECES} pieces arrived together with the previous one through {base}");
        return Finding::warning(STREAMS, message, remedy);
    }
    if late > PACE / 2 {
        let message = format!(
            "through {base} the first piece arrives {} ms later than a plain response",
            late.as_millis()
        );
        return Finding::warning(STREAMS, message, remedy);
    }
    Finding::ok(
        STREAMS,
        format!("pieces arrive one by one through {base}, the first after {} ms", first.as_millis()),
    )
}

#[cfg(test)]
mod tests {
    use super::super::report::Level;
    use super::*;

    fn finding_for(pieces: &[u64]) -> Finding {
        let pieces = pieces.iter().map(|millis| Duration::from_millis(*millis)).collect();
        let plain = Duration::from_millis(40);
        judge("http://x", &Ok(StreamMeasurement { plain, pieces, compressed: false }))
    }

    #[test]
    fn buffering_is_detected_by_the_arrival_times_of_pieces() {
        assert_eq!(finding_for(&[50, 550, 1050, 1550, 2050]).level, Level::Ok);
        let held = finding_for(&[2060, 2060, 2060, 2061, 2061]);
        assert_eq!(held.level, Level::Problem);
        assert!(
            held.message.contains("sent within 2000 ms arrived within 1 ms, after 2060 ms"),
            "{}",
            held.message
        );
        assert_eq!(finding_for(&[550, 550, 1050, 1550, 2050]).level, Level::Warning);
        assert_eq!(finding_for(&[550, 1050, 1550, 2050, 2550]).level, Level::Warning);
        assert_eq!(finding_for(&[50, 550]).level, Level::Problem);
        assert_eq!(finding_for(&[]).level, Level::Problem);
    }
}
