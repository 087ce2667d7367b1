//! The practice model's only randomness: numbers drawn from the seed, a purpose and a key.

use ring::digest::{Context, SHA256};

use models::ModelRequest;

/// Draws numbers. The same seed, purpose and key give the same number.
pub(super) struct Noise(u64);

impl Noise {
    /// A request's noise. At temperature 0 the seed makes no difference.
    pub(super) fn for_request(request: &ModelRequest) -> Self {
        Self(if request.temperature == Some(0.0) { 0 } else { request.seed.unwrap_or(0) })
    }

    fn draw(&self, purpose: &str, key: &str) -> u32 {
        let mut context = Context::new(&SHA256);
        context.update(&self.0.to_be_bytes());
        for part in [purpose, key] {
            context.update(part.as_bytes());
            context.update(&[0]);
        }
        let digest = context.finish();
        digest.as_ref().first_chunk().map_or(0, |first| u32::from_be_bytes(*first))
    }

    /// True with this probability.
    pub(super) fn happens(&self, probability: f64, purpose: &str, key: &str) -> bool {
        f64::from(self.draw(purpose, key)) / 4_294_967_296.0 < probability
    }

    /// Picks one item; `None` from an empty list.
    pub(super) fn pick<'a, T>(&self, from: &'a [T], purpose: &str, key: &str) -> Option<&'a T> {
        let count = u32::try_from(from.len()).ok().filter(|count| *count > 0)?;
        from.get(usize::try_from(self.draw(purpose, key) % count).ok()?)
    }
}
