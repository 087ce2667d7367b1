//! Suggestions for misspelt names in graphs.

use std::time::Duration;

use kernel::{Clock as _, SystemClock};
use sandbox::Sandbox;
use wire::nearest;

/// Maximum time for suggestions.
const TIME: Duration = Duration::from_secs(1);

/// Returns for each name, in order, the known name that it most likely means. The list is shorter if there was no thread
/// or too little time.
pub(super) async fn similar(
    sandbox: &Sandbox,
    names: Vec<String>,
    known: Vec<String>,
) -> Vec<Option<String>> {
    if names.is_empty() || known.is_empty() {
        return Vec::new();
    }
    let search = move |left: Duration| {
        let clock = SystemClock::new();
        let find = |name: &String| {
            let near = nearest(&name.to_lowercase(), known.iter().map(String::as_str));
            let near = near
                .or_else(|| known.iter().find(|known| known.eq_ignore_ascii_case(name)).map(String::as_str));
            near.map(str::to_owned)
        };
        names.iter().take_while(|_| clock.monotonic() < left).map(find).collect()
    };
    sandbox.compute_within(TIME, search).await.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use sandbox::Options;

    use super::*;

    #[tokio::test]
    async fn similar_names_are_found_for_each_name() {
        let sandbox = Sandbox::new(Options::new("/nonexistent".into()));
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let known = texts(&["refund", "Stripe Key"]);
        let found = similar(&sandbox, texts(&["refnud", "zebra", "stripe key"]), known).await;
        assert_eq!(found, [Some("refund".to_owned()), None, Some("Stripe Key".to_owned())]);
        assert_eq!(similar(&sandbox, texts(&["refnud"]), Vec::new()).await, []);
    }
}
