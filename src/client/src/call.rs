//! Calls declared operations.

use reqwest::{Method, RequestBuilder};
use serde::Serialize;
use url::Url;
use wire::operation::Operation;

use crate::client::{Bearer, Client};
use crate::{Answer, ClientError};

impl Client {
    /// An operation's URL, with these values in its path.
    pub(crate) fn place(&self, operation: &Operation, values: &[&str]) -> Result<Url, ClientError> {
        self.url(&operation.segments(values))
    }

    /// A request for an operation.
    pub(crate) fn operation(
        &self,
        operation: &Operation,
        values: &[&str],
        bearer: Bearer,
    ) -> Result<RequestBuilder, ClientError> {
        Ok(self.request(method(operation), self.place(operation, values)?, bearer))
    }

    /// Calls a reading operation; completes ids if enabled.
    pub(crate) async fn read(
        &self,
        operation: &Operation,
        values: &[&str],
        query: &[(&str, String)],
    ) -> Result<Answer, ClientError> {
        let answer = self.read_once(operation, values, query).await?;
        match self.completed(operation, values, &answer).await? {
            Some(whole) => self.read_once(operation, &texts(&whole), query).await,
            None => Ok(answer),
        }
    }

    /// Like [`Self::read`], but with complete ids only.
    pub(crate) async fn read_once(
        &self,
        operation: &Operation,
        values: &[&str],
        query: &[(&str, String)],
    ) -> Result<Answer, ClientError> {
        let mut url = self.place(operation, values)?;
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        self.answer(self.request(method(operation), url, Bearer::Service)).await
    }

    /// Calls a changing operation; completes ids if enabled.
    pub(crate) async fn change(
        &self,
        operation: &Operation,
        values: &[&str],
        body: Option<&impl Serialize>,
    ) -> Result<Answer, ClientError> {
        let answer = self.change_once(operation, values, body).await?;
        match self.completed(operation, values, &answer).await? {
            Some(whole) => self.change_once(operation, &texts(&whole), body).await,
            None => Ok(answer),
        }
    }

    async fn change_once(
        &self,
        operation: &Operation,
        values: &[&str],
        body: Option<&impl Serialize>,
    ) -> Result<Answer, ClientError> {
        self.answer(with_json(self.operation(operation, values, Bearer::Service)?, body)).await
    }
}

fn method(operation: &Operation) -> Method {
    match operation.method {
        wire::operation::Method::Delete => Method::DELETE,
        wire::operation::Method::Get => Method::GET,
        wire::operation::Method::Patch => Method::PATCH,
        wire::operation::Method::Post => Method::POST,
        wire::operation::Method::Put => Method::PUT,
    }
}

/// Completed path values, as calls take them.
pub(crate) fn texts(values: &[String]) -> Vec<&str> {
    values.iter().map(String::as_str).collect()
}

pub(crate) fn with_json(request: RequestBuilder, body: Option<&impl Serialize>) -> RequestBuilder {
    match body {
        Some(body) => request.json(body),
        None => request,
    }
}
