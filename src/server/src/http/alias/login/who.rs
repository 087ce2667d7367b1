//! Tells app pages whether a member is signed in.

use actix_web::web::Json;
use serde_json::{Value, json};

use crate::http::alias::visitor::Visitor;
use crate::http::time;

pub(super) async fn session(visitor: Visitor) -> Json<Value> {
    Json(match &visitor.member {
        Some(member) => json!({
            "authenticated": true,
            "display_name": member.display_name,
            "expires_at": time(member.expires_at),
        }),
        None => json!({"authenticated": false}),
    })
}
