//! The pages for people.

use crate::ErrorCode;
use serde_json::{Map, Value};

use crate::operation::{Answer, Parameter, Values, get, json, operations, text};

operations! {
    LANDING = get(
        "/",
        "show_landing_page",
        "The status, the workflows and next steps. The list is that of `GET /api/workflows`, for callers who may read it.",
    )
    .answers(&[Answer::new(200, text!("text/html"))]);

    EMBED = get(
        "/chat/embed",
        "show_embedded_chat",
        "The page in the frame of `<callboard-chat>`. Pages of the origins in `SERVICE_CORS_ALLOW_ORIGINS` may embed it in a frame.",
    )
    .answers(&[Answer::new(200, text!("text/html"))]);

    ELEMENT = get(
        "/api/chat/assets/element.js",
        "read_element",
        "The script that defines `<callboard-chat>` for pages of other sites.",
    )
    .answers(&[Answer::new(200, text!("text/javascript")), Answer::empty(304).when("the client has the script")]);

    CHAT = get(
        "/chat/{id}",
        "show_chat_page",
        "The share page of a published workflow. An unknown or unpublished workflow returns an error page with the status of \
         the chat; one that requires a login redirects to `/login` if the visitor is not signed in.",
    )
    .answers(&[
        Answer::new(200, text!("text/html")),
        Answer::empty(303).when("the chat requires a login and the visitor is not signed in"),
    ])
    .errors(&[ErrorCode::WorkflowNotFound, ErrorCode::ChatNotPublished]);

    TRAINING = get(
        "/workflows/{ref}/training",
        "show_training_page",
        "The trainings and evaluations of a workflow, live; `?run=` selects one. A signed-in browser opens it with its cookie, and \
         one that is not signed in is redirected to `/login` if the service requires authentication.",
    )
    .query(&[Parameter { name: "run", about: "The run to show.", values: Values::Text }])
    .answers(&[
        Answer::new(200, text!("text/html")),
        Answer::empty(303).when("the service requires authentication and the visitor is not signed in"),
    ])
    .errors(&[
        ErrorCode::WorkflowNotFound,
        ErrorCode::MissingScope,
        ErrorCode::HostMismatch,
        ErrorCode::WorkspaceRequired,
    ]);

    LOGIN = get(
        "/login",
        "show_login_page",
        "Signs in by email or with the provider and continues to the path in `?return_to=`; signed-in users can sign out there.",
    )
    .query(&[Parameter {
        name: "return_to",
        about: "A path of the service to continue to.",
        values: Values::Text,
    }])
    .answers(&[Answer::new(200, text!("text/html"))]);

    WIDGET_SCRIPT = get(
        "/api/chat/assets/chat.js",
        "read_widget_script",
        "The script of the hosted chat widget, proxied from its CDN and cached. A `Range` is answered with 206.",
    )
    .answers(&[
        Answer::new(200, text!("text/javascript")),
        Answer::new(206, text!("text/javascript")).when("the request has a `Range`"),
        Answer::empty(304).when("the client has the script"),
        Answer::empty(416).when("the `Range` is beyond the end of the script"),
    ])
    .errors(&[ErrorCode::ChatWidgetUnavailable]);

    OPENAPI = get(
        "/openapi.json",
        "read_openapi",
        "This interface as OpenAPI 3.1: every operation with its parameters, schemas, examples and error codes.",
    )
    .answers(&[
        Answer::new(200, json!(Map<String, Value>)),
        Answer::empty(304).when("the client has the description"),
    ]);

    ASSET = get(
        "/assets/{path:.*}",
        "read_asset",
        "The files of these pages. They have an `ETag` and must be revalidated each time.",
    )
    .answers(&[Answer::new(200, text!("*/*")), Answer::empty(304).when("the client has the file")])
    .errors(&[ErrorCode::RouteNotFound]);
}
