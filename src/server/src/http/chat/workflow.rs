//! The workflow as shown to callers who may chat with it.

use actix_web::HttpRequest;
use actix_web::web::Json;
use wire::PublicWorkflow;

use super::access::{self, ChatAccess};
use crate::http::error::{ApiError, ApiResult};
use crate::http::guard::Anyone;
use crate::http::query::Params;
use crate::http::workflows;

pub(super) async fn read(app: Anyone, request: HttpRequest) -> ApiResult<Json<PublicWorkflow>> {
    let mut query = Params::from_request(&request);
    let workflow = access::workflow_named(query.text("workflow_id").as_deref())?;
    ApiError::refuse(query.finish())?;
    app.chat_limits().check_address(app.client_address(&request))?;
    let access = ChatAccess::judge(&app, &request, workflow).await?;
    Ok(Json(workflows::public_record(access.record(), &app.public_base(&request))))
}
