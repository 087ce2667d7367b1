//! A stream's latest commits, kept once for all its readers.

use std::collections::VecDeque;

use bytes::Bytes;
use wire::sse::split_after;

use super::topic::Published;

/// Maximum bytes of kept frames; the latest commit is kept regardless of length.
const KEPT_BYTES: usize = 128 * 1024;
/// Maximum kept commits.
const KEPT_COMMITS: usize = 1_024;
/// Maximum bytes of several commits joined for a reader.
const JOINED_BYTES: usize = 16 * 1024;

/// The events after a position, which is the number of the last event that a reader has seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Behind {
    /// These events, and the position after them.
    Frames(Bytes, u64),
    /// No events yet.
    UpToDate,
    /// The stream has ended.
    End,
    /// Events that are not kept here, or were evicted; they are stored.
    Gone,
}

/// Consecutive commits, up to the latest one.
#[derive(Debug, Default)]
pub(super) struct Recent {
    kept: VecDeque<Published>,
    bytes: usize,
    last_seq: u64,
    ended: bool,
}

impl Recent {
    /// Adds a commit, and evicts the oldest ones above the limits.
    pub(super) fn push(&mut self, published: Published) {
        self.ended |= published.end;
        if published.last_seq <= self.last_seq {
            return;
        }
        if published.first_seq != self.last_seq.saturating_add(1) {
            // A gap means events by another process; they are stored.
            self.forget();
        }
        self.last_seq = published.last_seq;
        // The end may come without events, and after events by another process.
        if published.first_seq <= published.last_seq {
            self.bytes += published.frames.len();
            self.kept.push_back(published);
        }
        while self.kept.len() > 1 && (self.bytes > KEPT_BYTES || self.kept.len() > KEPT_COMMITS) {
            self.bytes -= self.kept.pop_front().map_or(0, |oldest| oldest.frames.len());
        }
    }

    /// Number of the latest event.
    pub(super) fn last_seq(&self) -> u64 {
        self.last_seq
    }

    /// The events after `place`: one commit as sent, or several short ones joined.
    pub(super) fn behind(&self, place: u64) -> Behind {
        // A client may claim any position.
        if place >= self.last_seq {
            return if self.ended { Behind::End } else { Behind::UpToDate };
        }
        let seen = self.kept.partition_point(|commit| commit.last_seq <= place);
        let mut following = self.kept.range(seen..);
        let first = following.next().filter(|first| first.first_seq <= place.saturating_add(1));
        let Some((first, head)) = first.and_then(|first| Some((first, rest(first, place)?))) else {
            return Behind::Gone;
        };
        let (mut parts, mut bytes, mut last_seq) = (vec![head.as_ref()], head.len(), first.last_seq);
        for commit in following {
            bytes += commit.frames.len();
            if bytes > JOINED_BYTES {
                break;
            }
            parts.push(&commit.frames);
            last_seq = commit.last_seq;
        }
        let frames = if parts.len() > 1 { Bytes::from(parts.concat()) } else { head };
        Behind::Frames(frames, last_seq)
    }

    /// Evicts all commits.
    pub(super) fn forget(&mut self) {
        (self.kept, self.bytes) = (VecDeque::new(), 0);
    }
}

/// A commit's events after `place`, as a slice without a copy.
fn rest(published: &Published, place: u64) -> Option<Bytes> {
    if published.first_seq > place {
        return Some(published.frames.clone());
    }
    let text = std::str::from_utf8(&published.frames).ok()?;
    Some(published.frames.slice_ref(split_after(text, published.first_seq, place).as_bytes()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use wire::sse::push_event;

    use super::*;

    /// Events `first..=last`, each padded by this many bytes.
    fn commit(first: u64, last: u64, padding: usize) -> Published {
        let mut frames = String::new();
        let text = "x".repeat(padding);
        (first..=last).for_each(|seq| push_event(&mut frames, "s", seq, &text));
        Published { first_seq: first, last_seq: last, frames: Bytes::from(frames), end: false }
    }

    fn filled(commits: impl IntoIterator<Item = Published>) -> Recent {
        let mut recent = Recent::default();
        commits.into_iter().for_each(|commit| recent.push(commit));
        recent
    }

    fn numbers(frames: &[u8]) -> Vec<u64> {
        let number = |line: &str| line.strip_prefix("id: s.")?.parse().ok();
        std::str::from_utf8(frames).unwrap().lines().filter_map(number).collect()
    }

    /// The numbers of the following events.
    fn read(recent: &Recent, place: u64) -> Vec<u64> {
        let Behind::Frames(frames, last_seq) = recent.behind(place) else {
            panic!("{:?}", recent.behind(place))
        };
        let numbers = numbers(&frames);
        assert_eq!(numbers.last(), Some(&last_seq));
        numbers
    }

    #[test]
    fn one_commit_is_forwarded_without_a_copy_and_short_ones_are_joined() {
        let latest = commit(6, 7, 10);
        let recent = filled([commit(1, 2, 10), commit(3, 5, 10), latest.clone()]);
        let Behind::Frames(frames, 7) = recent.behind(5) else { panic!("{:?}", recent.behind(5)) };
        assert_eq!(frames.as_ptr(), latest.frames.as_ptr());
        assert_eq!(read(&recent, 0), [1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(read(&recent, 3), [4, 5, 6, 7], "from the middle of a commit");
        assert_eq!(read(&recent, 6), [7]);
        assert_eq!(recent.behind(7), Behind::UpToDate);
        assert_eq!(recent.behind(u64::MAX), Behind::UpToDate);
    }

    #[test]
    fn commits_are_joined_up_to_the_limit_and_a_long_one_stays_alone() {
        let half = JOINED_BYTES / 2 - 100;
        let recent = filled([commit(1, 1, half), commit(2, 2, half), commit(3, 3, 0), commit(4, 4, half)]);
        assert_eq!(read(&recent, 0), [1, 2, 3]);
        assert_eq!(read(&recent, 3), [4]);
        let recent = filled([commit(1, 1, 2 * KEPT_BYTES), commit(2, 2, 0)]);
        assert_eq!(recent.behind(0), Behind::Gone, "it is too long to be kept with another commit");
        let recent = filled([commit(1, 1, 0), commit(2, 2, 2 * KEPT_BYTES)]);
        assert_eq!(read(&recent, 1), [2], "but alone it is");
        let recent = filled([commit(1, 1, 2 * JOINED_BYTES), commit(2, 2, 0)]);
        assert_eq!(read(&recent, 0), [1]);
    }

    #[test]
    fn the_oldest_commits_are_evicted_by_number_and_bytes() {
        let last = u64::try_from(KEPT_COMMITS).unwrap() + 5;
        let recent = filled((1..=last).map(|seq| commit(seq, seq, 0)));
        assert_eq!(recent.behind(4), Behind::Gone);
        assert_eq!(read(&recent, 5).first(), Some(&6));
        let recent = filled((1..=20).map(|seq| commit(seq, seq, KEPT_BYTES / 10)));
        assert!(recent.bytes <= KEPT_BYTES);
        assert_eq!(recent.behind(10), Behind::Gone);
        assert_eq!(read(&recent, 11), [12]);
    }

    #[test]
    fn a_gap_reads_as_gone_and_the_end_comes_last() {
        let mut recent = filled([commit(1, 2, 0), commit(5, 6, 0)]);
        assert_eq!(recent.behind(2), Behind::Gone, "3 and 4 are of another process");
        assert_eq!(read(&recent, 4), [5, 6]);
        let end = |last_seq| Published { end: true, ..commit(last_seq + 1, last_seq, 0) };
        recent.push(end(6));
        assert_eq!(read(&recent, 4), [5, 6]);
        assert_eq!(recent.behind(6), Behind::End);
        recent.forget();
        assert_eq!(recent.behind(5), Behind::Gone);
        assert_eq!(recent.behind(6), Behind::End);
        let mut recent = filled([commit(1, 2, 0)]);
        recent.push(end(4));
        assert_eq!(recent.behind(1), Behind::Gone, "2 is not all that follows");
        assert_eq!((recent.behind(2), recent.behind(4)), (Behind::Gone, Behind::End));
    }

    #[derive(Debug, Clone)]
    enum Step {
        /// Adds commits with this many padded events, after a gap of `elsewhere` events by another process.
        Push {
            commits: u64,
            events: u64,
            padding: usize,
            elsewhere: u64,
        },
        /// Repeats known events, with one more.
        Again {
            events: u64,
        },
        Forget,
        /// One of the readers reads once.
        Read {
            reader: usize,
        },
        /// A reader disconnects, and reconnects at an arbitrary position.
        Jump {
            reader: usize,
            back: u64,
        },
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let push = |commits, events, padding, elsewhere| Step::Push { commits, events, padding, elsewhere };
        let step = prop_oneof![
            8 => (1..4_u64, 0..4_u64, 0..300_usize).prop_map(move |(c, e, p)| push(c, e, p, 0)),
            2 => (1..5_u64, 1..3_u64, 0..60_000_usize).prop_map(move |(c, e, p)| push(c, e, p, 0)),
            1 => (500..1_200_u64).prop_map(move |commits| push(commits, 1, 0, 0)),
            1 => (0..3_u64, 1..4_u64).prop_map(move |(events, elsewhere)| push(1, events, 0, elsewhere)),
            1 => (1..6_u64).prop_map(|events| Step::Again { events }),
            1 => Just(Step::Forget),
            16 => (0..3_usize).prop_map(|reader| Step::Read { reader }),
            2 => (0..3_usize, 0..40_u64).prop_map(|(reader, back)| Step::Jump { reader, back }),
        ];
        prop::collection::vec(step, 0..60)
    }

    /// A second formulation of the commits to keep: first number, last number and length of each.
    #[derive(Default)]
    struct Model {
        recent: Recent,
        commits: Vec<(u64, u64, usize)>,
        last: u64,
    }

    impl Model {
        fn push(&mut self, commit: Published) {
            let (first, last) = (commit.first_seq, commit.last_seq);
            if first != self.last + 1 {
                self.commits.clear();
            }
            if first <= last {
                self.commits.push((first, last, commit.frames.len()));
            }
            self.last = last;
            self.recent.push(commit);
        }

        /// The first kept event.
        fn front(&self) -> u64 {
            let (mut bytes, mut front) = (0, self.last + 1);
            for (number, (first, _, length)) in self.commits.iter().rev().enumerate() {
                bytes += length;
                if number > 0 && (bytes > KEPT_BYTES || number >= KEPT_COMMITS) {
                    break;
                }
                front = *first;
            }
            front
        }

        /// Reads once; evicted events come from the database.
        fn read(&self, place: u64) -> Result<u64, TestCaseError> {
            match self.recent.behind(place) {
                Behind::Frames(frames, last) => {
                    prop_assert_eq!(numbers(&frames), (place + 1..=last).collect::<Vec<_>>());
                    prop_assert!(last > place && place + 1 >= self.front());
                    let whole = self.commits.iter().any(|commit| commit.1 == last);
                    let alone =
                        self.commits.iter().any(|(first, end, _)| *first <= place + 1 && *end == last);
                    prop_assert!(whole && (alone || frames.len() <= JOINED_BYTES));
                    Ok(last)
                }
                Behind::UpToDate => {
                    prop_assert!(place >= self.last);
                    Ok(place)
                }
                Behind::Gone => {
                    prop_assert!(place < self.last && place + 1 < self.front());
                    Ok(self.last)
                }
                Behind::End => Err(TestCaseError::fail("it has not ended")),
            }
        }
    }

    proptest! {
        #[test]
        fn events_are_read_in_order_without_gaps_or_repeats(steps in steps()) {
            let mut model = Model::default();
            let mut places = [0_u64; 3];
            for step in steps {
                let last = model.last;
                match step {
                    Step::Push { commits, events, padding, elsewhere } => (0..commits).for_each(|_| {
                        let first = model.last + 1 + elsewhere;
                        model.push(commit(first, first + events - 1, padding));
                    }),
                    Step::Again { events } => model.push(commit((last + 1).saturating_sub(events).max(1), last + 1, 0)),
                    Step::Forget => {
                        model.recent.forget();
                        model.commits.clear();
                    }
                    Step::Read { reader } => places[reader] = model.read(places[reader])?,
                    Step::Jump { reader, back } => places[reader] = last.saturating_sub(back),
                }
            }
            for mut place in places {
                while place < model.last {
                    place = model.read(place)?;
                }
            }
        }
    }
}
