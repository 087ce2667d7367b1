//! HTTP, SSE and websocket edge, boot and ordered shutdown.

mod boot;
mod cdn;
mod exposure;
mod http;
mod http1;
mod keys;
mod listener;
mod logging;
mod oidc;
mod sign_in;
mod tls;
mod tokens;
mod ws;

pub use boot::{Load, Parts, Running, StartError, bind, may_listen, sandbox, start};
pub use listener::ListenError;
pub use logging::init as init_logging;
pub use sign_in::try_mail_server;
pub use tls::PairError;
