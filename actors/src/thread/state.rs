//! What a thread does about what happens. Pure.

use std::collections::VecDeque;

use uuid::Uuid;

/// What happens to a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    /// A turn was accepted.
    Accepted(Uuid),
    /// A turn's end is stored.
    Ended(Uuid),
    /// Somebody asked for a turn's end; it is stored that they did.
    Stop(Uuid),
    /// The service shuts down.
    Drain,
}

/// What the thread does about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    /// Run this turn.
    Start(Uuid),
    /// Stop the running turn.
    Stop(Uuid),
    /// End a turn that never ran.
    EndUnstarted(Uuid),
    /// Nothing is left to do.
    Idle,
}

/// Which turn runs and which wait.
#[derive(Debug, Default)]
pub(super) struct State {
    running: Option<Uuid>,
    waiting: VecDeque<Uuid>,
    /// Turns that are being ended without having run.
    ending: Vec<Uuid>,
    draining: bool,
}

impl State {
    pub(super) fn step(&mut self, event: Event) -> Vec<Effect> {
        match event {
            Event::Accepted(turn) => {
                if self.knows(turn) {
                    return Vec::new();
                }
                // Turns have the order of their ids, in whatever order they are told.
                let place = self.waiting.partition_point(|waiting| *waiting < turn);
                self.waiting.insert(place, turn);
                self.next()
            }
            Event::Ended(turn) => {
                if self.running == Some(turn) {
                    self.running = None;
                }
                self.ending.retain(|ending| *ending != turn);
                self.next()
            }
            Event::Stop(turn) if self.running == Some(turn) => vec![Effect::Stop(turn)],
            Event::Stop(turn) => match self.waiting.iter().position(|waiting| *waiting == turn) {
                Some(place) => {
                    self.waiting.remove(place);
                    self.ending.push(turn);
                    vec![Effect::EndUnstarted(turn)]
                }
                None => Vec::new(),
            },
            Event::Drain => {
                self.draining = true;
                self.next()
            }
        }
    }

    fn knows(&self, turn: Uuid) -> bool {
        self.running == Some(turn) || self.waiting.contains(&turn) || self.ending.contains(&turn)
    }

    fn next(&mut self) -> Vec<Effect> {
        if self.running.is_some() {
            return Vec::new();
        }
        // What waits at a shutdown is stored; the next process goes on with it.
        let next = if self.draining { None } else { self.waiting.pop_front() };
        match next {
            Some(turn) => {
                self.running = Some(turn);
                vec![Effect::Start(turn)]
            }
            None if self.ending.is_empty() => vec![Effect::Idle],
            None => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(n: u128) -> Uuid {
        Uuid::from_u128(n)
    }

    #[test]
    fn one_turn_runs_and_the_others_wait_in_the_order_of_their_ids() {
        let mut state = State::default();
        assert_eq!(state.step(Event::Accepted(id(2))), [Effect::Start(id(2))]);
        assert_eq!(state.step(Event::Accepted(id(5))), []);
        assert_eq!(state.step(Event::Accepted(id(3))), []);
        assert_eq!(state.step(Event::Accepted(id(3))), [], "told twice");
        assert_eq!(state.step(Event::Ended(id(2))), [Effect::Start(id(3))]);
        assert_eq!(state.step(Event::Ended(id(3))), [Effect::Start(id(5))]);
        assert_eq!(state.step(Event::Ended(id(5))), [Effect::Idle]);
    }

    #[test]
    fn a_stop_reaches_the_running_and_the_waiting_turn() {
        let mut state = State::default();
        state.step(Event::Accepted(id(1)));
        state.step(Event::Accepted(id(2)));
        assert_eq!(state.step(Event::Stop(id(2))), [Effect::EndUnstarted(id(2))]);
        assert_eq!(state.step(Event::Stop(id(2))), [], "it is on its way");
        assert_eq!(state.step(Event::Stop(id(1))), [Effect::Stop(id(1))]);
        assert_eq!(state.step(Event::Ended(id(1))), [], "the other is still being ended");
        assert_eq!(state.step(Event::Ended(id(2))), [Effect::Idle]);
        assert_eq!(state.step(Event::Stop(id(9))), [], "unknown");
    }

    #[test]
    fn a_shutdown_lets_the_running_turn_end_and_starts_no_other() {
        let mut state = State::default();
        state.step(Event::Accepted(id(1)));
        state.step(Event::Accepted(id(2)));
        assert_eq!(state.step(Event::Drain), []);
        assert_eq!(state.step(Event::Ended(id(1))), [Effect::Idle]);
    }
}
