//! Images for `show`: by address, from a message in the thread, or as bytes that the thread keeps.

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
use crate::execute::ports::{Look, NewImage};
use crate::execute::{Call, Failure};
use crate::schema::Schema;

/// Maximum characters in an image address.
const LONGEST_URL: usize = 2_048;
/// Maximum bytes of an image made by a node.
const LARGEST: usize = 5 << 20;
/// Members that name an image.
const SOURCES: [&str; 3] = ["url", "attachment", "base64"];
/// Media types of images made by a node.
const TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// Checks an image. Returns problems with pointers below `base`.
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
            "schema",
            format!("needs exactly one of {}", SOURCES.join(", ")),
        ));
    }
    problems
}

/// Returns the image from a valid filled value; `None` without an image, or if the run shows no items.
///
/// # Errors
/// [`ErrorCode::AttachmentNotFound`], [`ErrorCode::AttachmentTypeNotAllowed`], [`ErrorCode::AttachmentTooLarge`],
/// [`ErrorCode::AttachmentDamaged`], [`ErrorCode::WorkspaceFull`]; `node.failed` if it is not base64.
pub(super) async fn read(image: Value, call: &Call<'_>) -> Result<Option<GeneratedImage>, Failure> {
    let Value::Object(mut image) = image else { return Ok(None) };
    let mut member = |name| match image.shift_remove(name) {
        Some(Value::String(text)) => Some(text),
        _ => None,
    };
    if let Some(url) = member("url") {
        let digest = sha256(&[url.as_bytes()]);
        let id = format!("img_{}", hex::encode(digest.get(..12).unwrap_or_default()));
        return Ok(Some(GeneratedImage { id, url }));
    }
    if let Some(id) = member("attachment").filter(|_| call.shows_items()) {
        return attached(id, call).await.map(Some);
    }
    match member("base64") {
        Some(base64) => decoded(base64, call).await,
        None => Ok(None),
    }
}

/// An image that the thread keeps. Its address is created on sending.
pub(super) fn kept(id: String) -> GeneratedImage {
    GeneratedImage { id, url: String::new() }
}

/// Returns an image from a message in the thread.
async fn attached(id: String, call: &Call<'_>) -> Result<GeneratedImage, Failure> {
    let found = call.attachments().find(&[&id]).await?;
    match found.first() {
        Some(file) if ImageKind::of_mime(&file.mime_type).is_some() => Ok(kept(id)),
        _ => {
            let message = format!("/image/attachment: must be an image of type {}", TYPES.join(", "));
            Err(NodeError::new(ErrorCode::AttachmentTypeNotAllowed, message).into())
        }
    }
}

/// Checks a base64 image and stores it for the thread.
async fn decoded(base64: String, call: &Call<'_>) -> Result<Option<GeneratedImage>, Failure> {
    if base64.len() / 4 * 3 > LARGEST + 3 {
        return Err(too_large().into());
    }
    // Memory for the text, the bytes, and the request to the sandbox.
    let held = u64::try_from(base64.len()).unwrap_or(u64::MAX).saturating_mul(4);
    let _room = call.attachments().room(held).await;
    let (base64, bytes, mime_type, kind) = document::aside(move || {
        let bytes = STANDARD.decode(&base64).map_err(|error| {
            let message = "/image/base64: must be base64 without a prefix such as `data:`";
            NodeError::failed(format!("{message}: {error}"))
        })?;
        if bytes.len() > LARGEST {
            return Err(too_large());
        }
        let (mime_type, kind) = type_of(&bytes)?;
        Ok((base64, bytes, mime_type, kind))
    })
    .await??;
    // The image is shown unchanged, so it needs no preview.
    let limits = ImageLimits { side: u32::MAX, bytes: usize::MAX, ..ImageLimits::default() };
    let facts = call.sandbox().read_image(kind, base64, limits).await;
    let facts = facts.map_err(undecoded)?.map_err(|problem| damaged(&problem.to_string()))?;
    if !call.shows_items() {
        return Ok(None);
    }
    call.count_stored(bytes.len())?;
    let ImageFacts { width, height, colour, .. } = facts;
    let image = NewImage { mime_type, look: Look { width, height, colour }, bytes };
    Ok(call.attachments().keep_image(image).await?.map(kept))
}

/// Detects an image's type by its content.
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

/// Converts a sandbox error of an image that no worker has decoded.
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
