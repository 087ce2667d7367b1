//! The operator's mail server.

use std::net::TcpListener;
use std::time::Duration;

use actors::delivery::mail::Delivery;
use kernel::{Clock, ManualClock, Secret, SystemClock};

use crate::support::until;

/// Simulates plain text to a TLS port.
#[tokio::test]
async fn a_silent_mail_server_times_out() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = Secret::from(format!("smtp://{}", silent.local_addr().unwrap()));
    let delivery = Delivery::smtp(&url, "service@example.com").unwrap();
    let clock = ManualClock::new(SystemClock::new().now());
    let passing = async {
        until("it waits", || clock.sleepers() == 1).await;
        clock.advance(Duration::from_secs(15));
    };
    let (tried, ()) = futures_util::future::join(delivery.try_server(&clock), passing).await;
    assert_eq!(tried, Err("the mail server does not answer".to_owned()));
}
