//! Limits for starting runs.

use std::num::NonZeroU32;

use store::{AnonymousLimits, MinuteLimit};
use wire::BindingLimits;

use super::super::visitor::Visitor;

/// The rates that a start counts against, and the additional limits for anonymous visitors.
pub(super) fn for_visitor(
    visitor: &Visitor,
    binding: &str,
    limits: &BindingLimits,
) -> (Vec<MinuteLimit>, Option<AnonymousLimits>) {
    let of_binding = limits.per_visitor_per_minute;
    if let Some(member) = &visitor.member {
        let client = format!("member:{} {binding}", member.user);
        return (vec![MinuteLimit { client, most: of_binding }], None);
    }
    let network = visitor.network.to_string();
    let apps = &visitor.config().apps;
    let of_client = apps.anonymous_runs_per_minute.map(NonZeroU32::get);
    let mut minutes = Vec::new();
    if let Some(most) = of_client {
        minutes.push(MinuteLimit { client: network.clone(), most });
    }
    // The lower limit applies.
    if of_client.is_none_or(|most| of_binding < most) {
        minutes.push(MinuteLimit { client: format!("{network} {binding}"), most: of_binding });
    }
    let limit = |limit: Option<NonZeroU32>| limit.map(NonZeroU32::get);
    let anonymous = AnonymousLimits {
        network,
        unfinished: limit(apps.anonymous_concurrent),
        day: limit(apps.anonymous_runs_per_day),
        app_day: limit(apps.runs_per_day),
    };
    (minutes, Some(anonymous))
}
