//! A client of the workflow websocket.

use std::net::SocketAddr;

use futures_util::{SinkExt, StreamExt};
use http::{HeaderName, HeaderValue};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};
use tokio_tungstenite::tungstenite::protocol::frame::{CloseFrame, Frame};
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::{TestService, Workflow, within};

/// The service's close frame: `code reason`.
pub type Closed = String;

/// An open socket.
pub struct Socket {
    stream: WebSocketStream<TcpStream>,
    protocol: Option<String>,
}

impl Socket {
    /// Opens a workflow's socket.
    ///
    /// # Panics
    /// When the service refuses.
    pub async fn for_workflow(t: &TestService, workflow: &Workflow, headers: &[(&str, &str)]) -> Self {
        Self::open(t.address(), &format!("/ws/workflow/{}", workflow.id), headers).await
    }

    /// Opens a websocket at a path.
    ///
    /// # Panics
    /// When the service refuses.
    pub async fn open(address: SocketAddr, path: &str, headers: &[(&str, &str)]) -> Self {
        let mut request = format!("ws://{address}{path}").into_client_request().expect("an address");
        for (name, value) in headers {
            let name: HeaderName = name.parse().expect("a header name");
            let value: HeaderValue = value.parse().expect("a header value");
            // The request already has one, and may have only one.
            if name == http::header::HOST {
                request.headers_mut().insert(name, value);
            } else {
                request.headers_mut().append(name, value);
            }
        }
        let stream = TcpStream::connect(address).await.expect("the service listens");
        let opened = within("a handshake", client_async(request, stream)).await;
        let (stream, answer) = opened.unwrap_or_else(|error| panic!("refused: {error:?}"));
        assert_eq!(answer.headers()["cache-control"], "no-store");
        let protocol = answer.headers().get("sec-websocket-protocol");
        let protocol = protocol.map(|value| value.to_str().expect("ASCII").to_owned());
        Self { stream, protocol }
    }

    /// The subprotocol that the service chose.
    #[must_use]
    pub fn protocol(&self) -> Option<&str> {
        self.protocol.as_deref()
    }

    /// Sends a message.
    ///
    /// # Panics
    /// When the socket is closed.
    pub async fn say(&mut self, message: &Value) {
        self.send(Message::text(message.to_string())).await.expect("an open socket");
    }

    /// Sends any message.
    ///
    /// # Errors
    /// When the socket is closed.
    pub async fn send(&mut self, message: Message) -> Result<(), Error> {
        within("a message to be taken", self.stream.send(message)).await
    }

    /// Sends one frame of a text: the first, a later one, or the last.
    ///
    /// # Errors
    /// When the socket is closed.
    pub async fn send_part(&mut self, text: &[u8], first: bool, last: bool) -> Result<(), Error> {
        let kind = if first { Data::Text } else { Data::Continue };
        let frame = Frame::message(text.to_vec(), OpCode::Data(kind), last);
        self.send(Message::Frame(frame)).await
    }

    /// The next message.
    ///
    /// # Panics
    /// When the socket is closed, or none comes.
    pub async fn next(&mut self) -> Value {
        match within("a message", self.try_next()).await {
            Ok(message) => message,
            Err(closed) => panic!("closed: {closed}"),
        }
    }

    /// The next message, or the close frame. Responds to pings meanwhile.
    ///
    /// # Errors
    /// The close frame.
    ///
    /// # Panics
    /// When a message is not JSON.
    pub async fn try_next(&mut self) -> Result<Value, Closed> {
        loop {
            match self.stream.next().await {
                Some(Ok(Message::Text(text))) => return Ok(serde_json::from_str(&text).expect("JSON")),
                Some(Ok(Message::Close(Some(CloseFrame { code, reason })))) => {
                    // The service waits for the close response.
                    while let Some(Ok(_)) = self.stream.next().await {}
                    return Err(format!("{} {reason}", u16::from(code)));
                }
                Some(Ok(Message::Close(None))) => return Err("without a code".to_owned()),
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(format!("broken: {error}")),
                None => return Err("cut".to_owned()),
            }
        }
    }

    /// All messages up to and including the first one with this type.
    ///
    /// # Panics
    /// As [`Socket::next`].
    pub async fn until(&mut self, kind: &str) -> Vec<Value> {
        let mut all = Vec::new();
        loop {
            let message = self.next().await;
            let found = message["type"] == kind;
            all.push(message);
            if found {
                return all;
            }
        }
    }

    /// Reads until the service closes the socket; returns the close frame.
    ///
    /// # Panics
    /// When the service does not close it.
    pub async fn closed(&mut self) -> Closed {
        within("the service to close the socket", async {
            loop {
                if let Err(closed) = self.try_next().await {
                    return closed;
                }
            }
        })
        .await
    }

    /// Sends a `ping` and waits for the `pong`, and so for everything before it; returns the messages received
    /// meanwhile.
    ///
    /// # Panics
    /// As [`Socket::next`].
    pub async fn settle(&mut self) -> Vec<Value> {
        self.say(&serde_json::json!({"type": "ping"})).await;
        let mut all = self.until("pong").await;
        all.pop();
        all
    }

    /// Closes the socket.
    pub async fn close(mut self) {
        let _ = self.stream.close(None).await;
        while let Some(Ok(_)) = self.stream.next().await {}
    }
}
