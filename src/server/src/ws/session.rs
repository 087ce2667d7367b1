//! The only user of `actix-web-actors`: joins frames to messages and writes outgoing messages.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use actix::prelude::{Actor, ActorContext, ActorFutureExt, AsyncContext, StreamHandler, WrapFuture};
use actix_http::ws::Item;
use actix_web::web::Payload;
use actix_web::{HttpRequest, HttpResponse};
use actix_web_actors::ws::{
    CloseCode, CloseReason, Message, ProtocolError, WebsocketContext, WsResponseBuilder,
};
use bytes::{Bytes, BytesMut};
use futures_util::stream::poll_fn;
use kernel::Clock;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio_util::sync::PollSemaphore;

use super::frames::{FrameState, Frames};
use super::intake::MessageIntake;
use super::{Closing, Heard, LastReceived, OUTBOUND, ReadEnd, Say, Socket, SocketFault};

/// Maximum time for the client to confirm a close.
const FAREWELL: Duration = Duration::from_secs(5);
/// Used if the socket's owner is dropped without a close reason.
const DEFECT: Closing = Closing { code: 1011, reason: "service.internal" };

/// Responds to a validated handshake; `intake` limits its messages.
///
/// # Errors
/// If the request is not a handshake.
pub(crate) fn open(
    request: &HttpRequest,
    payload: Payload,
    intake: MessageIntake,
    clock: &Arc<dyn Clock>,
) -> Result<(HttpResponse, Socket), actix_web::Error> {
    let (heard, hearing) = mpsc::unbounded_channel();
    let (say, said) = mpsc::channel(OUTBOUND);
    let (close, closing) = oneshot::channel();
    let place = Arc::new(Semaphore::new(1));
    let last_received = Arc::new(LastReceived::new(Arc::clone(clock)));
    let limit = intake.limit();
    let shared = Rc::new(FrameState::new(heard, intake));
    let waiting = PollSemaphore::new(Arc::clone(&place));
    let frames = Frames::new(payload, Rc::clone(&shared), Arc::clone(&last_received), waiting);
    let end = request.conn_data::<ReadEnd>().cloned().unwrap_or_default();
    let clock = Arc::clone(clock);
    let session = SocketActor { shared, said: Some(said), closing, joined: None, clock, end };
    let response = WsResponseBuilder::new(session, request, frames).frame_size(limit).start()?;
    Ok((response, Socket { heard: hearing, place, say, close, last_received }))
}

struct SocketActor {
    shared: Rc<FrameState>,
    said: Option<mpsc::Receiver<Say>>,
    closing: oneshot::Receiver<Closing>,
    /// An incomplete message, and whether it is text.
    joined: Option<(bool, BytesMut)>,
    clock: Arc<dyn Clock>,
    /// The read end of the connection.
    end: ReadEnd,
}

impl Drop for SocketActor {
    fn drop(&mut self) {
        self.end.set();
    }
}

impl Actor for SocketActor {
    type Context = WebsocketContext<Self>;

    fn started(&mut self, context: &mut Self::Context) {
        if let Some(mut said) = self.said.take() {
            context.add_stream(poll_fn(move |cx| said.poll_recv(cx)));
        }
    }
}

impl SocketActor {
    fn heard(&self, is_text: bool, message: Bytes) {
        let heard = match (is_text, std::str::from_utf8(&message)) {
            (false, _) => {
                drop(self.shared.hold(message));
                Heard::Binary
            }
            (true, Ok(_)) => Heard::Text(self.shared.hold(message)),
            (true, Err(_)) => return self.shared.fault(SocketFault::NotUtf8),
        };
        let _ = self.shared.heard.send(heard);
    }

    /// Adds a fragment of a message. Their total length was already limited.
    fn join(&mut self, item: Item) {
        let (more, last) = match item {
            Item::FirstText(first) => {
                self.joined = Some((true, BytesMut::new()));
                (first, false)
            }
            Item::FirstBinary(first) => {
                self.joined = Some((false, BytesMut::new()));
                (first, false)
            }
            Item::Continue(more) => (more, false),
            Item::Last(more) => (more, true),
        };
        if let Some((_, joined)) = &mut self.joined {
            joined.extend_from_slice(&more);
        }
        if last && let Some((is_text, joined)) = self.joined.take() {
            self.heard(is_text, joined.freeze());
        }
    }
}

impl StreamHandler<Result<Message, ProtocolError>> for SocketActor {
    fn handle(&mut self, message: Result<Message, ProtocolError>, context: &mut Self::Context) {
        if self.shared.is_deaf() {
            return;
        }
        match message {
            Ok(Message::Text(text)) => self.heard(true, text.into_bytes()),
            Ok(Message::Binary(_)) => self.heard(false, Bytes::new()),
            Ok(Message::Continuation(item)) => self.join(item),
            Ok(Message::Ping(payload)) => context.pong(&payload),
            Ok(Message::Pong(_) | Message::Nop) => {}
            Ok(Message::Close(reason)) => {
                context.close(reason);
                context.stop();
            }
            Err(ProtocolError::Overflow) => self.shared.fault(SocketFault::TooLarge),
            // The codec validates text frames and reports failures with this error.
            Err(ProtocolError::Io(error)) if error.kind() == std::io::ErrorKind::Other => {
                self.shared.fault(SocketFault::NotUtf8);
            }
            Err(_) => self.shared.fault(SocketFault::Protocol),
        }
    }
}

impl StreamHandler<Say> for SocketActor {
    fn handle(&mut self, say: Say, context: &mut Self::Context) {
        match say {
            Say::Text(text) => context.text(text),
            Say::Ping => context.ping(b""),
        }
    }

    /// The socket's owner has closed it.
    fn finished(&mut self, context: &mut Self::Context) {
        let closing = self.closing.try_recv().unwrap_or(DEFECT);
        let description = Some(closing.reason.to_owned());
        context.close(Some(CloseReason { code: CloseCode::from(closing.code), description }));
        self.shared.stop_listening();
        let farewell = self.clock.sleep(FAREWELL).into_actor(self);
        context.spawn(farewell.map(|(), _, context| context.stop()));
    }
}
