//! Principals, scopes and roles, tokens, keys, visitors, sign-in, failures and exposure rules. No HTTP, no SQL.

pub mod app_handle;
pub mod app_sign_in;
pub mod chat_session;
pub mod envelope;
pub mod exposure;
pub mod failures;
pub mod host;
pub mod jwt;
pub mod keyring;
pub mod link;
pub mod oidc;
pub mod peer;
pub mod pkce;
pub mod principal;
pub mod role;
pub use wire::scope;
pub mod service_token;
pub mod sign_in;
pub mod visitor;
pub mod webhook;
