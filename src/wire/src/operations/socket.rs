//! The websocket.

use crate::ErrorCode;
use crate::operation::{Answer, Parameter, Values, get, operations};

operations! {
    OPEN = get(
        "/ws/workflow/{ref}",
        "open_socket",
        "Opens a websocket for one workflow, for callers with `workflows:execute`: see [Websocket](#websocket) for its messages.",
    )
    .without_head()
    .query(&[
        Parameter { name: "token", about: "The token, if no header has it.", values: Values::Text },
        Parameter { name: "access_token", about: "The same.", values: Values::Text },
    ])
    .answers(&[Answer::empty(101)])
    .errors(&[
        ErrorCode::SocketUpgradeRequired,
        ErrorCode::WorkflowNotFound,
        ErrorCode::OriginMismatch,
        ErrorCode::MissingScope,
        ErrorCode::WorkspaceForbidden,
    ]);
}
