//! Finds models whose calls a spending limit does not cover.

use std::collections::BTreeSet;

use serde_json::Value;
use wire::ChatLimits;

/// Returns the models without a price, which a spending limit does not count.
pub(super) fn unpriced(named_in: [&Value; 2], limits: &ChatLimits) -> Vec<String> {
    if limits.session_usd_per_day.is_none() && limits.usd_per_day.is_none() {
        return Vec::new();
    }
    let mut models = BTreeSet::new();
    named_in.into_iter().for_each(|value| named_models(value, &mut models));
    let has_price = |model: &&str| models::cost(model, models::Usage::default()).is_some();
    let unpriced = models.into_iter().filter(|model| !has_price(model));
    unpriced
        .map(|model| {
            format!(
                "The price of {model} is unknown. Limits in US dollars do not include its calls; limits in tokens do."
            )
        })
        .collect()
}

/// Collects the models in `model` members without a template.
fn named_models<'a>(value: &'a Value, found: &mut BTreeSet<&'a str>) {
    match value {
        Value::Object(members) => {
            let model = members.get("model").and_then(Value::as_str);
            let is_model = |name: &&str| !name.contains('{') && models::is_model_name(name);
            found.extend(model.filter(is_model));
            members.values().for_each(|member| named_models(member, found));
        }
        Value::Array(entries) => entries.iter().for_each(|entry| named_models(entry, found)),
        _ => {}
    }
}
