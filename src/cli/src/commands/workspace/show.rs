//! `callboard workspace show`.

use clap::Args;
use wire::WorkspaceStorage;

use super::manage::{named, replies};
use crate::options::{ClientOptions, ServiceSession};
use crate::output::{CommandError, Output, pretty, say};
use crate::table::second;

const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];

#[derive(Debug, Args)]
pub(crate) struct ShowWorkspace {
    /// Slug or id.
    workspace: String,
    #[command(flatten)]
    pub(super) options: ClientOptions,
}

impl ShowWorkspace {
    pub(super) async fn run(&self, session: &ServiceSession) -> Result<(), CommandError> {
        let found = session.received(session.client.workspace(&self.workspace).await)?;
        if session.output == Output::Json {
            return say(pretty(&found)?);
        }
        say(format_args!("{}, created {}, id {}", named(&found), second(&found.created_at), found.id))?;
        if let Some(role) = &found.role {
            say(format_args!("You are its {role}."))?;
        }
        say(kept(found.storage.as_ref()))?;
        say(replies(found.training_calls))
    }
}

fn kept(storage: Option<&WorkspaceStorage>) -> String {
    let Some(WorkspaceStorage { bytes, limit, measured_at }) = storage else {
        return "Its storage use has not been measured yet.".to_owned();
    };
    let at = second(measured_at);
    match limit {
        Some(limit) => format!("It uses about {} of {}, as of {at}.", size(*bytes), size(*limit)),
        None => format!("It uses about {}, as of {at}; there is no limit.", size(*bytes)),
    }
}

/// Formats bytes in units of 1,024 with one decimal.
fn size(bytes: i64) -> String {
    if bytes < 1_024 {
        return format!("{bytes} bytes");
    }
    let mut tenths = bytes.saturating_mul(10).checked_div(1_024).unwrap_or_default();
    let mut units = UNITS.iter();
    let mut unit = units.next();
    while tenths >= 10_240
        && let Some(larger) = units.next()
    {
        tenths = tenths.checked_div(1_024).unwrap_or_default();
        unit = Some(larger);
    }
    format!("{}.{} {}", tenths.div_euclid(10), tenths.rem_euclid(10), unit.unwrap_or(&""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_the_most_readable_unit() {
        for (bytes, expected) in [
            (0, "0 bytes"),
            (1_023, "1023 bytes"),
            (1_024, "1.0 KiB"),
            (1_536, "1.5 KiB"),
            (1_048_575, "1023.9 KiB"),
            (1_048_576, "1.0 MiB"),
            (5 * 1_073_741_824, "5.0 GiB"),
            (3_000 * 1_099_511_627_776, "3000.0 TiB"),
        ] {
            assert_eq!(size(bytes), expected);
        }
    }
}
