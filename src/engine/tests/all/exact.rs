//! JSON number values survive unchanged.

use serde_json::{Value, json};

use crate::ports::{alone, plan};
use crate::world::World;

/// Returns the node's result with these inputs, as text.
async fn result(node: Value, inputs: &str) -> Result<String, String> {
    let mut node = node;
    node["name"] = json!("n");
    let world = World::new().inputs(serde_json::from_str(inputs).unwrap());
    let done = world.run(&plan(&alone(&node))).await;
    done.map(|value| value.to_string()).map_err(|error| error.message)
}

fn set(value: &str) -> Value {
    json!({"type": "set", "values": {"it": value}})
}

#[tokio::test]
async fn integers_of_64_bits_and_decimals_keep_their_value() {
    for number in [
        "9007199254740993",
        "-9223372036854775808",
        "18446744073709551615",
        "0.1",
        "1e300",
        "0.30000000000000004",
    ] {
        let inputs = format!(r#"{{"n":{number}}}"#);
        let expected = serde_json::from_str::<Value>(number).unwrap();
        for node in [set("{{ inputs.n }}"), json!({"type": "transform", "expression": "inputs"})] {
            let result: Value = serde_json::from_str(&result(node, &inputs).await.unwrap()).unwrap();
            assert_eq!(result.get("it").or(result.get("n")), Some(&expected), "{number}");
        }
    }
}

#[tokio::test]
async fn numbers_that_would_be_rounded_are_named_and_fail_the_node() {
    for (node, named) in [
        (set("{{ 9223372036854775807 * 10 }}"), "92233720368547758070"),
        (set("{{ 123456789012345678901234 }}"), "123456789012345678901234"),
        (json!({"type": "json", "parse": "[0.12345678901234567890]"}), "0.12345678901234567890"),
        (json!({"type": "json", "parse": "{\"id\": 123456789012345678901}"}), "123456789012345678901"),
    ] {
        let error = result(node, "{}").await.unwrap_err();
        assert!(error.contains(&format!("the number {named} would be rounded")), "{error}");
    }
}
