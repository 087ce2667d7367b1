//! Sign-in with a signed-in browser: its page shows a code for the terminal.

use client::Client;

use super::{ask, finish};
use crate::complaint::Complaint;
use crate::options::ServiceEndpoint;
use crate::output::{CommandError, Output, complain};
use crate::profile::ProfileLock;

pub(super) async fn sign_in(
    endpoint: &ServiceEndpoint,
    client: &Client,
    output: Output,
) -> Result<(), CommandError> {
    ProfileLock::lock()?.draft(&endpoint.name)?;
    if output == Output::Human && ask::can_ask() {
        complain(format_args!(
            "Open {}/login in a browser, sign in, and press \"Sign in a terminal\".",
            endpoint.api_url.trim_end_matches('/')
        ));
    }
    let code = ask::secret("Code (hidden): ")?;
    let signed_in = client.refresh(&code).await.map_err(|error| match error.code() {
        Some("auth.refresh_invalid") => Complaint::failed("This code is not valid.")
            .coded("auth.refresh_invalid")
            .refused()
            .hint("A code is valid once, for 10 minutes. Request another one on the page."),
        _ => Complaint::from_client_error(error, &endpoint.api_url),
    })?;
    finish(endpoint, client, signed_in, output).await
}
