//! Run configs.

use serde_json::{Map, Value};

/// Overlays one config on another: members of `above` replace those of `below`, prompts one by one.
pub(crate) fn overlaid(below: &Map<String, Value>, above: &Map<String, Value>) -> Map<String, Value> {
    let mut config = below.clone();
    for (name, value) in above {
        match (config.get_mut(name), value) {
            (Some(Value::Object(prompts)), Value::Object(more)) if name == "prompts" => {
                prompts.extend(more.iter().map(|(name, prompt)| (name.clone(), prompt.clone())));
            }
            _ => _ = config.insert(name.clone(), value.clone()),
        }
    }
    config
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_config_is_merged_by_member_and_by_prompt() {
        let map = |value: Value| value.as_object().unwrap().clone();
        let below =
            map(json!({"model": "a", "prompts": {"x": {"text": "1", "type": "t"}, "y": {"text": "2"}}}));
        let above = map(json!({"seed": 1, "prompts": {"x": {"text": "3"}}}));
        let expected = json!({"model": "a", "seed": 1, "prompts": {"x": {"text": "3"}, "y": {"text": "2"}}});
        assert_eq!(overlaid(&below, &above), map(expected));
        assert_eq!(overlaid(&Map::new(), &above), above);
        assert_eq!(overlaid(&below, &Map::new()), below);
    }
}
