//! Images of `show`: at an address, in a message of the thread, or as bytes, which the thread keeps.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use media::Detector;
use sandbox::{ImageFacts, ImageKind, ImageLimits, SandboxError};
use serde_json::{Value, json};
use wire::chat::GeneratedImage;
use wire::{ErrorCode, FieldError};

use crate::NodeError;
use crate::canonical::sha256;
use crate::document;
use crate::execute::Call;
use crate::execute::ports::{Look, NewImage};
use crate::schema::Schema;

/// Characters of the longest address of an image.
const LONGEST_URL: usize = 2_048;
/// Bytes of the largest image that a node makes.
const LARGEST: usize = 5 << 20;
/// The members that name an image.
const SOURCES: [&str; 3] = ["url", "attachment", "base64"];
/// Types of images that a node makes.
const TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// The problems of an image, with pointers below `base`.
pub(super) fn problems(image: &Value, base: &str) -> Vec<FieldError> {
    let schema = json!({"type": "object", "additionalProperties": false, "properties": {
        "url": {"type": "string", "pattern": "^https://[^/]", "maxLength": LONGEST_URL},
        "attachment": {"type": "string", "minLength": 1},
        "base64": {"type": "string", "minLength": 1}}});
    let mut problems = Schema::problems_of(&schema, image, base);
    if image
        .as_object()
        .is_some_and(|image| SOURCES.iter().filter(|name| image.contains_key(**name)).count() != 1)
    {
        problems.push(FieldError::new(
            base,
            "required",
            format!("needs exactly one of {}", SOURCES.join(", ")),
        ));
    }
    problems
}

/// The image of a filled value without problems; `None` if the run has no thread that could show it.
///
/// # Errors
/// [`ErrorCode::AttachmentNotFound`], [`ErrorCode::AttachmentTypeNotAllowed`], [`ErrorCode::AttachmentTooLarge`],
/// [`ErrorCode::AttachmentDamaged`], [`ErrorCode::WorkspaceFull`]; `node.failed` if it is not base64.
pub(super) async fn shown(image: &Value, call: &Call<'_>) -> Result<Option<GeneratedImage>, NodeError> {
    let member = |name| image.get(name).and_then(Value::as_str);
    if let Some(url) = member("url") {
        let digest = sha256(&[url.as_bytes()]);
        let id = format!("img_{}", hex::encode(digest.get(..12).unwrap_or_default()));
        return Ok(Some(GeneratedImage { id, url: url.to_owned() }));
    }
    if let Some(id) = member("attachment") {
        return call.attachments().image(id).await.map(Some);
    }
    match member("base64") {
        Some(base64) => made(base64, call).await,
        None => Ok(None),
    }
}

/// An image of these bytes.
async fn made(base64: &str, call: &Call<'_>) -> Result<Option<GeneratedImage>, NodeError> {
    if call.is_refill() {
        return Ok(None);
    }
    if base64.len() / 4 * 3 > LARGEST + 3 {
        return Err(too_large());
    }
    let bytes = STANDARD.decode(base64).map_err(|error| {
        NodeError::failed(format!("/image/base64: must be base64 without a prefix such as `data:`: {error}"))
    })?;
    if bytes.len() > LARGEST {
        return Err(too_large());
    }
    let (mime_type, kind) = type_of(&bytes)?;
    let _room = call.attachments().room(u64::try_from(base64.len() + bytes.len()).unwrap_or(u64::MAX)).await;
    // It is shown as it is, so it needs no preview.
    let limits = ImageLimits { side: u32::MAX, bytes: usize::MAX, ..ImageLimits::default() };
    let facts = call.sandbox().read_image(kind, base64.to_owned(), limits).await;
    let facts = facts.map_err(undecoded)?.map_err(|problem| damaged(&problem.to_string()))?;
    if !call.is_in_thread() {
        return Ok(None);
    }
    let ImageFacts { width, height, colour, .. } = facts;
    let image = NewImage { mime_type, look: Look { width, height, colour }, bytes };
    call.attachments().keep_image(image).await.map(Some)
}

/// The type of an image, by its content.
fn type_of(bytes: &[u8]) -> Result<(&'static str, ImageKind), NodeError> {
    let mut detector = Detector::new();
    detector.push(bytes);
    let media = detector.finish("").map(|media| media.mime());
    media.and_then(|mime| Some((mime, ImageKind::of_mime(mime)?))).ok_or_else(|| {
        let message = format!("/image/base64: must be an image of type {}", TYPES.join(", "));
        NodeError::new(ErrorCode::AttachmentTypeNotAllowed, message)
    })
}

fn too_large() -> NodeError {
    let message = format!("/image/base64: the image is too large: at most {LARGEST} bytes are accepted");
    NodeError::new(ErrorCode::AttachmentTooLarge, message)
}

/// Why no worker has decoded it.
fn undecoded(error: SandboxError) -> NodeError {
    match error {
        SandboxError::Busy { .. } | SandboxError::QueueFull { .. } | SandboxError::Unavailable(_) => {
            document::unread(error)
        }
        error => damaged(&error.to_string()),
    }
}

fn damaged(why: &str) -> NodeError {
    NodeError::new(ErrorCode::AttachmentDamaged, format!("/image/base64: the image cannot be decoded: {why}"))
}
