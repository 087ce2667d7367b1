//! A thread's state machine. Pure.

use std::collections::VecDeque;

use uuid::Uuid;

/// An event for a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    /// A turn was accepted.
    Accepted {
        /// Its run.
        turn: Uuid,
        /// Its order among the thread's turns.
        order: Uuid,
    },
    /// A turn's end is stored, or it was parked.
    Ended(Uuid),
    /// A turn's stop was requested; the request is stored.
    Stop(Uuid),
    /// The service is shutting down.
    Drain,
}

/// An effect of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    /// Run this turn.
    Start(Uuid),
    /// Stop the running turn.
    Stop(Uuid),
    /// End a turn that never ran.
    EndUnstarted(Uuid),
    /// No turns are left.
    Idle,
}

/// The running turn and the waiting ones.
#[derive(Debug, Default)]
pub(super) struct ThreadState {
    running: Option<Uuid>,
    /// Order and run, sorted by order.
    waiting: VecDeque<(Uuid, Uuid)>,
    /// Turns that are being ended without having run.
    ending: Vec<Uuid>,
    draining: bool,
}

impl ThreadState {
    pub(super) fn step(&mut self, event: Event) -> Vec<Effect> {
        match event {
            Event::Accepted { turn, order } => {
                if self.knows(turn) {
                    return Vec::new();
                }
                let place = self.waiting.partition_point(|waiting| *waiting < (order, turn));
                self.waiting.insert(place, (order, turn));
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
            Event::Stop(turn) => match self.waiting.iter().position(|(_, waiting)| *waiting == turn) {
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
        self.running == Some(turn)
            || self.waiting.iter().any(|(_, waiting)| *waiting == turn)
            || self.ending.contains(&turn)
    }

    fn next(&mut self) -> Vec<Effect> {
        if self.running.is_some() {
            return Vec::new();
        }
        // Turns waiting at a shutdown are stored; the next process resumes them.
        let next = if self.draining { None } else { self.waiting.pop_front() };
        match next {
            Some((_, turn)) => {
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
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn id(n: u128) -> Uuid {
        Uuid::from_u128(n)
    }

    fn accepted(n: u128) -> Event {
        Event::Accepted { turn: id(n), order: id(n) }
    }

    /// A model of the turns' state, maintained from the effects.
    #[derive(Default)]
    struct Model {
        state: ThreadState,
        accepted: BTreeSet<Uuid>,
        started: Vec<Uuid>,
        running: Option<Uuid>,
        /// Turns being ended without having run.
        ending: BTreeSet<Uuid>,
        ended: BTreeSet<Uuid>,
        stopped: BTreeSet<Uuid>,
        draining: bool,
    }

    impl Model {
        fn step(&mut self, event: Event) -> Result<(), TestCaseError> {
            match event {
                Event::Accepted { turn, .. } => _ = self.accepted.insert(turn),
                Event::Ended(turn) => {
                    self.running.take_if(|running| *running == turn);
                    self.ending.remove(&turn);
                    self.ended.insert(turn);
                }
                Event::Drain => self.draining = true,
                Event::Stop(_) => {}
            }
            for effect in self.state.step(event) {
                match effect {
                    Effect::Start(turn) => {
                        prop_assert_eq!(self.running.replace(turn), None, "two at once");
                        prop_assert!(!self.draining, "started during a drain");
                        let first = self.waiting().next();
                        prop_assert_eq!(first, Some(turn), "not the first that waits");
                        self.started.push(turn);
                    }
                    Effect::EndUnstarted(turn) => {
                        prop_assert_eq!(event, Event::Stop(turn));
                        prop_assert!(self.waiting().any(|waiting| waiting == turn));
                        self.ending.insert(turn);
                        self.started.push(turn);
                    }
                    Effect::Stop(turn) => {
                        prop_assert_eq!((event, self.running), (Event::Stop(turn), Some(turn)));
                        self.stopped.insert(turn);
                    }
                    Effect::Idle => {
                        prop_assert_eq!((self.running, self.ending.len()), (None, 0), "not idle");
                        prop_assert!(self.draining || self.waiting().next().is_none(), "left waiting");
                    }
                }
            }
            if !self.draining && self.running.is_none() {
                prop_assert_eq!(self.waiting().next(), None, "nothing runs although a turn waits");
            }
            Ok(())
        }

        /// Accepted turns that have neither started nor started to end, in id order.
        fn waiting(&self) -> impl Iterator<Item = Uuid> {
            self.accepted.iter().copied().filter(|turn| !self.started.contains(turn))
        }

        /// A turn that can end: the running one, or one being ended.
        fn can_end(&self, choice: u8) -> Option<Uuid> {
            let all: Vec<Uuid> = self.running.into_iter().chain(self.ending.iter().copied()).collect();
            all.get(usize::from(choice).checked_rem(all.len())?).copied()
        }
    }

    #[derive(Debug, Clone, Copy)]
    enum Step {
        Accept(u8),
        End(u8),
        Stop(u8),
        Drain,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            6 => (0..40_u8).prop_map(Step::Accept),
            6 => any::<u8>().prop_map(Step::End),
            3 => (0..40_u8).prop_map(Step::Stop),
            1 => Just(Step::Drain),
        ];
        prop::collection::vec(step, 0..120)
    }

    proptest! {
        #[test]
        fn turns_never_overlap_and_each_starts_and_ends_once(steps in steps()) {
            let mut model = Model::default();
            for step in steps {
                match step {
                    // A turn that has ended is never accepted again; one that waits or runs may be.
                    Step::Accept(n) if model.ended.contains(&id(n.into())) => {}
                    Step::Accept(n) => model.step(accepted(n.into()))?,
                    Step::Stop(n) => model.step(Event::Stop(id(n.into())))?,
                    Step::Drain => model.step(Event::Drain)?,
                    Step::End(choice) => {
                        if let Some(turn) = model.can_end(choice) {
                            model.step(Event::Ended(turn))?;
                        }
                    }
                }
            }
            while let Some(turn) = model.can_end(0) {
                model.step(Event::Ended(turn))?;
            }
            let started: BTreeSet<Uuid> = model.started.iter().copied().collect();
            prop_assert_eq!(started.len(), model.started.len(), "started twice");
            prop_assert_eq!(&started, &model.ended);
            if !model.draining {
                prop_assert_eq!(started, model.accepted, "lost");
            }
        }
    }

    #[test]
    fn one_turn_runs_and_the_others_wait_in_id_order() {
        let mut state = ThreadState::default();
        assert_eq!(state.step(accepted(2)), [Effect::Start(id(2))]);
        assert_eq!(state.step(accepted(5)), []);
        assert_eq!(state.step(accepted(3)), []);
        assert_eq!(state.step(accepted(3)), [], "sent twice");
        assert_eq!(state.step(Event::Ended(id(2))), [Effect::Start(id(3))]);
        assert_eq!(state.step(Event::Ended(id(3))), [Effect::Start(id(5))]);
        assert_eq!(state.step(Event::Ended(id(5))), [Effect::Idle]);
    }

    #[test]
    fn a_resumed_turn_queues_like_a_new_one() {
        let mut state = ThreadState::default();
        state.step(accepted(1));
        assert_eq!(state.step(Event::Ended(id(1))), [Effect::Idle], "it was parked");
        assert_eq!(state.step(accepted(2)), [Effect::Start(id(2))]);
        assert_eq!(state.step(accepted(3)), []);
        assert_eq!(state.step(Event::Accepted { turn: id(1), order: id(4) }), []);
        assert_eq!(state.step(accepted(5)), []);
        assert_eq!(state.step(Event::Ended(id(2))), [Effect::Start(id(3))]);
        assert_eq!(state.step(Event::Ended(id(3))), [Effect::Start(id(1))]);
        assert_eq!(state.step(Event::Ended(id(1))), [Effect::Start(id(5))]);
    }

    #[test]
    fn a_stop_reaches_the_running_and_the_waiting_turn() {
        let mut state = ThreadState::default();
        state.step(accepted(1));
        state.step(accepted(2));
        assert_eq!(state.step(Event::Stop(id(2))), [Effect::EndUnstarted(id(2))]);
        assert_eq!(state.step(Event::Stop(id(2))), [], "it is on its way");
        assert_eq!(state.step(Event::Stop(id(1))), [Effect::Stop(id(1))]);
        assert_eq!(state.step(Event::Ended(id(1))), [], "the other is still being ended");
        assert_eq!(state.step(Event::Ended(id(2))), [Effect::Idle]);
        assert_eq!(state.step(Event::Stop(id(9))), [], "unknown");
    }

    #[test]
    fn a_shutdown_lets_the_running_turn_end_and_starts_no_other() {
        let mut state = ThreadState::default();
        state.step(accepted(1));
        state.step(accepted(2));
        assert_eq!(state.step(Event::Drain), []);
        assert_eq!(state.step(Event::Ended(id(1))), [Effect::Idle]);
    }
}
