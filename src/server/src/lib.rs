//! HTTP, SSE and WebSocket edge, boot and ordered shutdown.

mod body_budget;
mod boot;
mod cdn;
mod exposure;
mod http;
mod http1;
mod keys;
mod listener;
mod logging;
mod oidc;
mod open_files;
mod running;
mod sign_in;
mod tls;
mod tokens;
mod ws;

pub use boot::{Parts, StartError, bind, may_listen, sandbox, start};
pub use listener::ListenError;
pub use logging::init as init_logging;
pub use open_files::OpenFiles;
pub use running::{Load, Running};
pub use sign_in::try_mail_server;
pub use tls::PairError;
