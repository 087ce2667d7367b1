//! Workspace usage, measured on the test's request.

use crate::{TestService, until};

/// A text that a database cannot compress.
///
/// # Panics
/// Never: a letter is a byte.
#[must_use]
pub fn noise(length: usize) -> String {
    let mut state = 7_u64;
    let mut letter = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(b'!' + u8::try_from((state >> 40) % 90).expect("a byte"))
    };
    (0..length).map(|_| letter()).collect()
}

impl TestService {
    /// Waits for the measurement of the first start.
    pub async fn measured(&self) {
        let some = "SELECT count(*) > 0 FROM workspace_usage";
        until("it is measured", async || self.scalar(some).await == "true").await;
    }

    /// Restarts the service so that it measures usage again, which a start does if the last measurement is old.
    pub async fn measure(&mut self) {
        self.execute("UPDATE workspace_usage SET measured_at = measured_at - interval '1 hour'").await;
        self.restart().await;
        let old = "SELECT count(*) FROM workspace_usage WHERE measured_at < now() - interval '30 minutes'";
        until("it is measured", async || self.scalar(old).await == "0").await;
    }
}
