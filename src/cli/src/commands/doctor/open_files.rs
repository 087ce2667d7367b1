//! The open file limit, which bounds the service's connections.

use server::OpenFiles;

use super::report::Finding;

const OPEN_FILES: &str = "open files";
/// A lower limit is typical for a shell, not for a service.
const FEW: u64 = 4_096;

pub(super) fn judge(files: OpenFiles) -> Finding {
    let (limit, connections) = (files.limit(), files.connections());
    let message = format!("at most {limit}, for {connections} connections of clients");
    if limit < FEW {
        let remedy =
            "raise the hard limit: ulimit -Hn, LimitNOFILE= of systemd, or --ulimit nofile= of the container";
        return Finding::warning(OPEN_FILES, message, remedy);
    }
    Finding::ok(OPEN_FILES, message)
}
