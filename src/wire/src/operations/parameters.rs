//! Parameters shared by several operations.

use crate::operation::{Parameter, Values};

/// Entries per list page.
pub(super) const LIMIT: Parameter =
    Parameter { name: "limit", about: "Entries of a page (default: 50).", values: Values::Integer(1, 200) };

/// The start of a page.
pub(super) const CURSOR: Parameter = Parameter {
    name: "cursor",
    about: "`next_cursor` of the page before; absent or empty for the first page.",
    values: Values::Text,
};

/// The position at which a stream resumes.
pub(super) const AFTER: Parameter = Parameter {
    name: "after",
    about: "The id or the number of the event to resume after. The header `Last-Event-ID` takes precedence.",
    values: Values::Text,
};

/// Describes a path parameter.
#[must_use]
pub fn in_path(path: &str, name: &str) -> Option<&'static str> {
    const BY_NAME: &[(&str, &str)] = &[
        ("ref", "A workflow's UUID or handle."),
        ("app", "An app's id or alias."),
        ("deployment", "A deployment's id."),
        ("release", "A release's id."),
        ("binding", "A binding's name."),
        ("collection", "A collection's name."),
        ("number", "A version's number, or the id of a version or a draft."),
        ("base", "The number or id of the version to compare with."),
        ("target", "The number or id of the version that is compared."),
        ("user_id", "The id of the member's account."),
        ("key", "The key of the input that the run waits for."),
        ("name", "The index's name."),
        ("type", "The node type's name."),
        ("token", "The secret of the link."),
        ("path", "The file's path."),
        ("visitor", "A visitor, as the list of threads names them."),
    ];
    const IDS: &[(&str, &str)] = &[
        ("/api/workspaces/", "A workspace's id or slug."),
        ("/api/runs/", "A run's id."),
        ("/api/workflows/{ref}/datasets/", "A dataset's id or name."),
        ("/api/workflows/{ref}/trainer/runs/", "The id of a training or an evaluation."),
        ("/api/workflows/{ref}/trainer/checkpoints/", "A checkpoint's id."),
        ("/api/credentials/", "A credential's id."),
        ("/api/admin/service-tokens/", "A service token's id."),
        ("/api/auth/sessions/", "The id of a sign-in."),
        ("/api/chat/streams/", "A stream's id."),
        ("/api/chat/threads/", "A thread's id."),
        ("/api/workflows/{ref}/chat/threads/", "A thread's id."),
        ("/api/chat/attachments/", "An attachment's id."),
        ("/chat/", "A workflow's UUID."),
    ];
    let by_name = BY_NAME.iter().find(|(known, _)| *known == name);
    let of_path = || IDS.iter().find(|(start, _)| name == "id" && path.starts_with(start));
    by_name.or_else(of_path).map(|(_, about)| *about)
}
