//! `delay`: fields and result; `resume` covers restarts.

use serde_json::{Value, json};
use wire::ErrorCode;

use crate::ports::{alone, delay, plan};
use crate::world::{World, refused, result, settle};

#[tokio::test]
async fn the_length_of_a_delay_is_in_seconds() {
    for (seconds, expected) in [
        (json!(0), 0.0),
        (json!(1.5), 1.5),
        (json!("2"), 2.0),
        (json!(" 3 "), 3.0),
        (json!("{{ inputs.n }}"), 4.0),
    ] {
        let done = result(delay("d", seconds), json!({"n": 4})).await;
        assert_eq!(done, Ok(json!({"seconds": expected})));
    }
    let one = |seconds: Value| refused(&delay("d", seconds));
    for wrong in [json!(-0.1), json!(31_536_001), json!("a"), json!(true), json!({}), json!("inf"), json!("")]
    {
        assert_eq!(one(wrong.clone()), ["/seconds range"], "{wrong}");
    }
    assert_eq!(one(json!(null)), ["/seconds required"]);
    assert_eq!(one(json!("{{ seconds }}")), ["/seconds unknown_name"]);
    assert_eq!(
        refused(&json!({"name": "d", "type": "delay", "seconds": 1, "minutes": 1})),
        ["/minutes unknown_field"]
    );
    let error = result(delay("d", "{{ inputs.n }}"), json!({"n": "x"})).await.unwrap_err();
    assert_eq!((error.code, error.retryable), (ErrorCode::NodeFailed, false));
}

#[tokio::test]
async fn a_delay_ends_at_once_after_the_wall_clock_has_passed_its_end() {
    let world = World::new();
    let run = world.begin(&plan(&alone(&delay("d", 0))));
    settle().await;
    assert!(run.has_ended());
    assert_eq!(world.clock.sleepers(), 0);
}
