//! Pending writes, and the order in which workspaces take turns.
//!
//! A single active workspace fills commits alone. When several write, each adds a little to every commit, so no
//! workspace waits long for another one.

use std::collections::{HashMap, VecDeque};

use uuid::Uuid;

use super::WriterKey;
use super::buffer::Buffer;

/// Maximum keys per commit.
const KEYS: usize = 256;
/// Approximate maximum bytes per commit.
const COMMIT_BYTES: usize = 4 << 20;
/// Approximate maximum bytes per commit shared by several workspaces.
const SHARED_BYTES: usize = 128 << 10;
/// Maximum bytes that a workspace adds per turn while others wait.
const TURN_BYTES: usize = 16 << 10;

/// Buffers by key, in the order of workspace turns.
#[derive(Default)]
pub(super) struct PendingBuffers {
    keys: HashMap<Uuid, PendingKey>,
    workspaces: HashMap<Uuid, Workspace>,
    /// Workspaces with a ready buffer that no lane holds.
    turns: VecDeque<Uuid>,
    bytes: usize,
}

struct PendingKey {
    workspace: Uuid,
    buffer: Option<Buffer>,
    in_flight: bool,
    bytes: usize,
}

#[derive(Default)]
struct Workspace {
    /// Keys with a ready buffer that no lane holds.
    ready: VecDeque<Uuid>,
    /// Number of keys that a lane holds.
    in_flight: usize,
    keys: usize,
    bytes: usize,
}

impl PendingBuffers {
    /// Changes a key's buffer and queues it. A key keeps the workspace of its first write.
    pub(super) fn push(&mut self, key: WriterKey, change: impl FnOnce(&mut Buffer)) {
        let entry = self.keys.entry(key.id).or_insert_with(|| {
            self.workspaces.entry(key.workspace).or_default().keys += 1;
            PendingKey { workspace: key.workspace, buffer: None, in_flight: false, bytes: 0 }
        });
        let fresh = entry.buffer.is_none();
        let buffer = entry.buffer.get_or_insert_default();
        let before = if fresh { 0 } else { buffer.weight() };
        change(buffer);
        let grown = buffer.weight().saturating_sub(before);
        entry.bytes += grown;
        self.bytes += grown;
        let (workspace, ready) = (entry.workspace, fresh && !entry.in_flight);
        self.workspaces.entry(workspace).or_default().bytes += grown;
        if ready {
            self.ready(key.id, workspace);
        }
    }

    /// Takes the next commit, from any workspace.
    pub(super) fn take(&mut self) -> Vec<(Uuid, Buffer)> {
        self.take_where(|_| true)
    }

    /// Takes the next commit, from workspaces without keys held by a lane.
    pub(super) fn take_of_others(&mut self) -> Vec<(Uuid, Buffer)> {
        self.take_where(|workspace| workspace.in_flight == 0)
    }

    fn take_where(&mut self, may: impl Fn(&Workspace) -> bool) -> Vec<(Uuid, Buffer)> {
        let several = self.turns.len() > 1;
        let (limit, turn) = if several { (SHARED_BYTES, TURN_BYTES) } else { (COMMIT_BYTES, COMMIT_BYTES) };
        let (mut taken, mut bytes, mut others) = (Vec::new(), 0, Vec::new());
        while bytes < limit && taken.len() < KEYS {
            let Some(workspace) = self.turns.pop_front() else { break };
            if !self.workspaces.get(&workspace).is_some_and(&may) {
                others.push(workspace);
                continue;
            }
            let given = self.give(workspace, turn, &mut taken);
            bytes += given;
            if self.next_of(workspace).is_none() {
                continue;
            }
            if given == 0 {
                // It comes first next time.
                self.turns.push_front(workspace);
                break;
            }
            self.turns.push_back(workspace);
        }
        others.into_iter().rev().for_each(|workspace| self.turns.push_front(workspace));
        taken
    }

    /// Moves keys of the workspace to a commit, about `turn` bytes; returns the number of bytes moved.
    fn give(&mut self, workspace: Uuid, turn: usize, taken: &mut Vec<(Uuid, Buffer)>) -> usize {
        let mut given = 0;
        while given < turn
            && taken.len() < KEYS
            && let Some(key) = self.next_of(workspace)
        {
            let weight = self.keys.get(&key).and_then(|entry| Some(entry.buffer.as_ref()?.weight()));
            let weight = weight.unwrap_or_default();
            // A long buffer starts a separate commit, so that short ones do not wait for it.
            if !taken.is_empty() && given + weight > turn {
                break;
            }
            taken.extend(self.hold(workspace, key));
            given += weight;
        }
        given
    }

    /// Releases a key after a lane's commit.
    pub(super) fn done(&mut self, key: Uuid, bytes: usize) {
        let Some(entry) = self.keys.get_mut(&key) else { return };
        entry.in_flight = false;
        let (workspace, again) = (entry.workspace, entry.buffer.is_some());
        self.took(key, bytes);
        if let Some(of) = self.workspaces.get_mut(&workspace) {
            of.in_flight = of.in_flight.saturating_sub(1);
        }
        if again {
            self.ready(key, workspace);
        } else {
            self.forget(key, workspace);
        }
    }

    /// Takes the writes pending under a key that a lane holds.
    pub(super) fn withdraw(&mut self, key: Uuid) -> Option<Buffer> {
        let buffer = self.keys.get_mut(&key)?.buffer.take()?;
        self.took(key, buffer.weight());
        Some(buffer)
    }

    /// Takes everything.
    pub(super) fn drain(&mut self) -> Vec<Buffer> {
        let all = std::mem::take(self);
        all.keys.into_values().filter_map(|entry| entry.buffer).collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Whether a ready buffer waits that no lane holds.
    pub(super) fn has_ready(&self) -> bool {
        !self.turns.is_empty()
    }

    pub(super) fn keys(&self) -> usize {
        self.keys.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn bytes_of(&self, key: Uuid) -> usize {
        self.keys.get(&key).map_or(0, |entry| entry.bytes)
    }

    pub(super) fn bytes_of_workspace(&self, workspace: Uuid) -> usize {
        self.workspaces.get(&workspace).map_or(0, |of| of.bytes)
    }

    fn ready(&mut self, key: Uuid, workspace: Uuid) {
        let of = self.workspaces.entry(workspace).or_default();
        if of.ready.is_empty() {
            self.turns.push_back(workspace);
        }
        of.ready.push_back(key);
    }

    fn next_of(&self, workspace: Uuid) -> Option<Uuid> {
        self.workspaces.get(&workspace)?.ready.front().copied()
    }

    /// Hands the buffer of the workspace's first key to a lane.
    fn hold(&mut self, workspace: Uuid, key: Uuid) -> Option<(Uuid, Buffer)> {
        let of = self.workspaces.get_mut(&workspace)?;
        of.ready.pop_front();
        let entry = self.keys.get_mut(&key)?;
        let mut buffer = entry.buffer.take()?;
        entry.in_flight = true;
        of.in_flight += 1;
        buffer.seal();
        Some((key, buffer))
    }

    fn took(&mut self, key: Uuid, bytes: usize) {
        let Some(entry) = self.keys.get_mut(&key) else { return };
        entry.bytes = entry.bytes.saturating_sub(bytes);
        self.bytes = self.bytes.saturating_sub(bytes);
        if let Some(of) = self.workspaces.get_mut(&entry.workspace) {
            of.bytes = of.bytes.saturating_sub(bytes);
        }
    }

    fn forget(&mut self, key: Uuid, workspace: Uuid) {
        self.keys.remove(&key);
        if let Some(of) = self.workspaces.get_mut(&workspace) {
            of.keys = of.keys.saturating_sub(1);
            if of.keys == 0 {
                self.workspaces.remove(&workspace);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lanes::EventFrames;

    fn key(workspace: u128, id: u128) -> WriterKey {
        WriterKey { id: Uuid::from_u128(id), workspace: Uuid::from_u128(workspace) }
    }

    fn push(waiting: &mut PendingBuffers, key: WriterKey, bytes: usize) {
        let frames = "x".repeat(bytes);
        let events =
            EventFrames { stream: key.id, first_seq: 1, last_seq: 1, frames, end: false, kept: false };
        waiting.push(key, |buffer| buffer.push(store::batch::Batch::default(), Some(events), None));
    }

    fn ids(taken: &[(Uuid, Buffer)]) -> Vec<u128> {
        taken.iter().map(|(id, _)| id.as_u128()).collect()
    }

    fn done(waiting: &mut PendingBuffers, taken: Vec<(Uuid, Buffer)>) {
        for (id, buffer) in taken {
            waiting.done(id, buffer.weight());
        }
    }

    #[test]
    fn one_workspace_alone_fills_a_commit() {
        let mut waiting = PendingBuffers::default();
        (0..300).for_each(|id| push(&mut waiting, key(1, id), 10 << 10));
        assert_eq!(waiting.take().len(), KEYS);
        assert_eq!(waiting.take().len(), 300 - KEYS);
    }

    #[test]
    fn a_waiting_workspace_joins_the_next_commit_which_stays_short() {
        let mut waiting = PendingBuffers::default();
        (0..1_000).for_each(|id| push(&mut waiting, key(1, id), 10 << 10));
        push(&mut waiting, key(2, 5_000), 100);
        push(&mut waiting, key(3, 6_000), 100);
        let taken = waiting.take();
        assert!(ids(&taken).contains(&5_000) && ids(&taken).contains(&6_000));
        let bytes: usize = taken.iter().map(|(_, buffer)| buffer.weight()).sum();
        assert!(bytes < 2 * SHARED_BYTES, "{bytes}");
        done(&mut waiting, taken);
        assert_eq!(waiting.take().len(), KEYS, "it is alone again");
    }

    #[test]
    fn a_long_buffer_is_committed_alone_and_does_not_starve() {
        let mut waiting = PendingBuffers::default();
        push(&mut waiting, key(2, 1), 100);
        push(&mut waiting, key(1, 2), 1 << 20);
        push(&mut waiting, key(3, 3), 100);
        assert_eq!(ids(&waiting.take()), [1]);
        push(&mut waiting, key(2, 4), 100);
        assert_eq!(ids(&waiting.take()), [2]);
        assert_eq!(ids(&waiting.take()), [3, 4]);
    }

    #[test]
    fn a_lane_takes_only_workspaces_without_a_committing_lane() {
        let mut waiting = PendingBuffers::default();
        push(&mut waiting, key(1, 1), 100);
        let held = waiting.take();
        push(&mut waiting, key(1, 1), 100);
        push(&mut waiting, key(1, 2), 100);
        assert!(waiting.take_of_others().is_empty());
        push(&mut waiting, key(2, 3), 100);
        let others = waiting.take_of_others();
        assert_eq!(ids(&others), [3]);
        assert_eq!(ids(&waiting.take()), [2], "the first key is still held");
        done(&mut waiting, held);
        assert_eq!(ids(&waiting.take()), [1]);
    }

    #[test]
    fn uncommitted_bytes_are_counted_by_key_and_workspace() {
        let mut waiting = PendingBuffers::default();
        push(&mut waiting, key(1, 1), 100);
        push(&mut waiting, key(1, 2), 50);
        push(&mut waiting, key(2, 3), 10);
        let counted = |waiting: &PendingBuffers| {
            let of = |n| waiting.bytes_of_workspace(Uuid::from_u128(n));
            (waiting.bytes_of(Uuid::from_u128(1)), of(1), of(2), waiting.bytes())
        };
        assert_eq!(counted(&waiting), (100, 150, 10, 160));
        let taken = waiting.take();
        assert_eq!(counted(&waiting), (100, 150, 10, 160));
        push(&mut waiting, key(1, 1), 7);
        assert_eq!(waiting.withdraw(Uuid::from_u128(1)).map(|buffer| buffer.weight()), Some(7));
        done(&mut waiting, taken);
        assert_eq!(counted(&waiting), (0, 0, 0, 0));
        assert!(waiting.is_empty() && waiting.workspaces.is_empty() && waiting.turns.is_empty());
    }
}
