//! Routes with their own access rules in every auth mode: chat, pages, health, public metadata.

use std::future::{Ready, ready};
use std::ops::Deref;

use actix_web::dev::Payload;
use actix_web::{FromRequest, HttpRequest};

use super::app_of;
use crate::http::App;
use crate::http::error::ApiError;

/// Any caller. The handler itself checks what they may see.
pub(in crate::http) struct Anyone(App);

impl FromRequest for Anyone {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _payload: &mut Payload) -> Self::Future {
        ready(app_of(request).map(|app| Self(app.clone())))
    }
}

impl Deref for Anyone {
    type Target = App;

    fn deref(&self) -> &App {
        &self.0
    }
}
