//! Attachments in API form. Preview URLs expire, so they are signed whenever they are sent.

use actix_web::HttpRequest;
use auth::link::LinkUse;
use chrono::{DateTime, Utc};
use kernel::AttachmentId;
use serde_json::Map;
use store::StoredAttachment;
use wire::chat::{Attachment, AttachmentKind, ItemBody, ThreadItem, UploadDescriptor};

use crate::http::App;

/// Signs attachment URLs for one request.
pub(in crate::http) struct Links<'a> {
    app: &'a App,
    request: &'a HttpRequest,
    now: DateTime<Utc>,
}

impl<'a> Links<'a> {
    pub(in crate::http) fn new(app: &'a App, request: &'a HttpRequest) -> Self {
        Self { app, request, now: app.clock().now() }
    }

    /// Computed on demand, because most requests have no images.
    fn base(&self) -> String {
        self.app.public_base(self.request)
    }

    /// The preview URL of an image.
    pub(in crate::http::chat) fn preview(&self, id: AttachmentId) -> String {
        self.app.links().preview(&self.base(), id, self.now)
    }

    /// An attachment, with a preview URL if it is an image.
    pub(super) fn attachment(&self, stored: &StoredAttachment) -> Attachment {
        let mut attachment = Attachment::from(stored);
        if stored.is_image() {
            attachment.preview_url = Some(self.preview(stored.id));
        }
        attachment
    }

    /// An announced attachment, with its upload URL.
    pub(super) fn announced(&self, stored: &StoredAttachment) -> Attachment {
        let query = self.app.links().query(stored.id, LinkUse::Upload, self.now);
        let url = format!("{}/api/chat/attachments/{}?{query}", self.base(), stored.id);
        let descriptor = UploadDescriptor { url, method: "PUT".to_owned(), headers: Map::new() };
        Attachment { upload_descriptor: Some(descriptor), ..self.attachment(stored) }
    }

    /// Signs the image URLs in an item.
    pub(in crate::http) fn sign(&self, item: &mut ThreadItem) {
        match &mut item.body {
            ItemBody::UserMessage { attachments, .. } => {
                for attachment in attachments.iter_mut().filter(|one| one.kind == AttachmentKind::Image) {
                    let id = AttachmentId::parse(&attachment.id).ok();
                    attachment.preview_url = id.map(|id| self.preview(id));
                }
            }
            ItemBody::GeneratedImage { image: Some(image), .. } => {
                if let Ok(id) = AttachmentId::parse(&image.id) {
                    image.url = self.preview(id);
                }
            }
            _ => {}
        }
    }
}
