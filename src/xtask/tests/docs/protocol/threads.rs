//! Example thread requests.

use anyhow::Result;
use wire::chat::{ChatOperation, Order, Page, PageRequest};

use super::block;
use super::chat::{THREAD, assistant_message, request, user_message};

pub(super) fn list_items() -> Result<String> {
    let page = PageRequest { limit: Some(2), order: Some(Order::Asc), after: None };
    request(ChatOperation::ListItems { thread_id: THREAD.into(), page })
}

pub(super) fn page_of_items() -> Result<String> {
    let data = vec![user_message(Vec::new()), assistant_message(Some("It is on its way."))];
    block(&Page { data, has_more: false, after: None })
}
