//! Seeds and keys of calls.

use engine::ports::ModelCall;
use kernel::{Counter, Purpose, fifty_three_bits};
use ring::digest::{Context, SHA256};
use serde::Serialize;

use super::usage::Role;

/// The lookup key of a call's answer: equal requests have equal keys across cases and candidates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallKey(pub [u8; 32]);

impl CallKey {
    /// The key of a request with its seed. `sample` separates repeats of a case, also on endpoints without seeds.
    pub(super) fn for_request(call: &ModelCall<'_>, request: &impl Serialize, sample: u32) -> Self {
        let endpoint = call.endpoint.map(ToString::to_string).unwrap_or_default();
        // The field order is fixed, and schema members are ordered as in the graph.
        let request = serde_json::to_string(request).unwrap_or_default();
        let parts = [endpoint.as_bytes(), call.model.as_bytes(), request.as_bytes(), &sample.to_be_bytes()];
        digest(&parts)
    }

    /// Restricts the key to one place in a run: `name` of the case or proposal, and the number of earlier equal
    /// requests there. After a crash the run computes the same key again.
    pub(super) fn at(self, name: &str, call: &ModelCall<'_>, repetition: u32) -> Self {
        let numbers = [call.visit, call.ordinal, repetition].map(u32::to_be_bytes);
        let [visit, ordinal, repetition] = &numbers;
        digest(&[&self.0, name.as_bytes(), call.node.as_bytes(), visit, ordinal, repetition])
    }
}

fn digest(parts: &[&[u8]]) -> CallKey {
    let mut context = Context::new(&SHA256);
    for part in parts {
        let length = u64::try_from(part.len()).unwrap_or(u64::MAX);
        context.update(&length.to_be_bytes());
        context.update(part);
    }
    let mut key = [0; 32];
    for (byte, digest) in key.iter_mut().zip(context.finish().as_ref()) {
        *byte = *digest;
    }
    CallKey(key)
}

/// The seed of a node's call: 53 bits derived from the run's seed, the role, the sample and the call's place. Neither
/// case nor candidate changes it.
pub(super) fn seed_of(run_seed: u64, role: Role, sample: u32, call: &ModelCall<'_>) -> u64 {
    let place: [&[u8]; 5] = [
        role.as_str().as_bytes(),
        &sample.to_be_bytes(),
        call.node.as_bytes(),
        &call.visit.to_be_bytes(),
        &call.ordinal.to_be_bytes(),
    ];
    fifty_three_bits(&Counter::new(run_seed).digest(Purpose::CallSeed, &place))
}
