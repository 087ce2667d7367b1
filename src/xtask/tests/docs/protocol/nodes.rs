//! An example from the node catalogue.

use anyhow::Result;
use serde_json::json;
use wire::NodeTypeRecord;

use super::block;

pub(super) fn node() -> Result<String> {
    let set = engine::nodes::find("set").map_err(|unknown| anyhow::anyhow!(unknown))?;
    let NodeTypeRecord { schema, .. } = set.record();
    let mut record = serde_json::to_value(set.record())?;
    // The full schema would hide the rest.
    if let Some(place) = record.get_mut("schema") {
        *place = json!({"type": schema.get("type"), "required": schema.get("required"), "…": "…"});
    }
    block(&record)
}
