//! The number of files that the service may have open, which limits its connections.

use server::OpenFiles;

use super::report::Finding;

const OPEN_FILES: &str = "open files";
/// A smaller limit is that of a shell, rather than that of a service.
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
