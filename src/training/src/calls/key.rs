//! The seed and the key of a call.

use engine::ports::ModelCall;
use kernel::{Counter, Purpose, fifty_three_bits};
use ring::digest::{Context, SHA256};
use serde::Serialize;

use super::usage::Role;

/// By which a call's answer is found again: equal requests have equal keys, whatever case or candidate they are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallKey(pub [u8; 32]);

impl CallKey {
    /// Of a request with its seed. `sample` tells repeats of a case apart, also for endpoints without seeds.
    pub(super) fn of(call: &ModelCall<'_>, request: &impl Serialize, sample: u32) -> Self {
        let endpoint = call.endpoint.map(ToString::to_string).unwrap_or_default();
        // The fields have one order, and members of schemas are as in the graph.
        let request = serde_json::to_string(request).unwrap_or_default();
        let parts = [endpoint.as_bytes(), call.model.as_bytes(), request.as_bytes(), &sample.to_be_bytes()];
        digest(&parts)
    }

    /// The same for one place of a run alone: `name` of a case or a proposal, and how often the case has made this request there before.
    /// A later life of the run finds it there again.
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

/// The seed of a node's call: 53 bits of the run's seed, the role, the sample and the call's place. Neither case nor candidate changes it.
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
