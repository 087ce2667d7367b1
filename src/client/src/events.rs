//! Opens event streams.

use futures_util::{StreamExt as _, TryStreamExt as _};
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{Method, RequestBuilder, Response};
use serde::de::DeserializeOwned;

use crate::client::Client;
use crate::error::Cause;
use crate::follow::StreamSource;
use crate::{ClientError, EventStream};

const STREAM_ID: &str = "x-chat-stream-id";
pub(crate) const LAST_EVENT_ID: &str = "last-event-id";
pub(crate) const EVENT_STREAM: &str = "text/event-stream";

impl Client {
    /// Reads a stream after an event, or from the first one; `None` if all events were received.
    pub(crate) async fn read_stream<E: DeserializeOwned>(
        &self,
        source: &StreamSource,
        stream_id: &str,
        last_event_id: Option<&str>,
    ) -> Result<Option<EventStream<E>>, ClientError> {
        let segments: Vec<&str> = source.path.iter().map(String::as_str).collect();
        let mut request = self.request(Method::GET, self.url(&segments)?, source.bearer);
        request = request.header(ACCEPT, EVENT_STREAM);
        if let Some(last) = last_event_id {
            request = request.header(LAST_EVENT_ID, last);
        }
        self.open(request, Some(stream_id)).await
    }

    /// Sends a request with a streamed response; `None` for 204.
    pub(crate) async fn open<E: DeserializeOwned>(
        &self,
        request: RequestBuilder,
        expected: Option<&str>,
    ) -> Result<Option<EventStream<E>>, ClientError> {
        let head = async {
            let response = self.head(request).await?;
            match response.status().as_u16() {
                200 => {
                    self.show_head(&response);
                    Ok(Some(response))
                }
                204 => Ok(None),
                _ => Err(self.whole(response).await?.error()),
            }
        };
        match self.in_time(head).await? {
            Some(response) => self.stream(response, expected).map(Some),
            None => Ok(None),
        }
    }

    fn stream<E: DeserializeOwned>(
        &self,
        response: Response,
        expected: Option<&str>,
    ) -> Result<EventStream<E>, ClientError> {
        let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok());
        let kind = header(CONTENT_TYPE.as_str()).unwrap_or_default();
        let essence = kind.split(';').next().unwrap_or_default().trim();
        if !essence.eq_ignore_ascii_case(EVENT_STREAM) {
            return Err(ClientError::protocol(format!("the response is not an event stream but `{kind}`")));
        }
        let stream_id = match (header(STREAM_ID), expected) {
            (Some(named), Some(expected)) if named != expected => {
                return Err(ClientError::protocol(format!("received stream {named} instead of {expected}")));
            }
            (Some(id), _) | (None, Some(id)) => id.to_owned(),
            (None, None) => return Err(ClientError::protocol("the response lacks X-Chat-Stream-Id")),
        };
        let parts = self.parts();
        let body = response.bytes_stream().map_err(|error| -> Cause { Box::new(error) });
        Ok(EventStream::new(stream_id, body.boxed(), parts.clock.clone(), parts.idle_limit))
    }
}
