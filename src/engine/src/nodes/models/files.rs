//! Attachments in model requests: their content, and files that a model cannot see.

use std::collections::BTreeSet;

use media::Media;
use models::{Image, ModelRequest, Part, sees_images};
use serde_json::{Value, json};
use wire::ErrorCode;
use wire::chat::NoticeLevel;

use crate::NodeError;
use crate::document::{self, Format};
use crate::execute::ports::{AttachedFile, ImmediateEvent, Room};
use crate::execute::{Call, Failure};

/// Maximum image bytes per request; newest files first.
const MAX_IMAGE_BYTES: u64 = 20 << 20;
/// Maximum text bytes per file.
const MAX_FILE_TEXT_BYTES: usize = 64 << 10;
/// Maximum text bytes of all files in a request; newest files first.
const MAX_TEXT_BYTES: usize = 1 << 20;

/// The reason why a model does not see a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnseenReason {
    /// Models cannot read files of this type.
    Type,
    /// The model reads text only.
    Model,
    /// Newer files have used up the request's limits, or the document is too large.
    Budget,
    /// The file cannot be read.
    Damaged,
}

impl UnseenReason {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Type => "type",
            Self::Model => "model",
            Self::Budget => "budget",
            Self::Damaged => "damaged",
        }
    }

    const fn notice_text(self) -> &'static str {
        match self {
            Self::Type => "its type is not supported",
            Self::Model => "it reads text only",
            Self::Budget => "too much is attached",
            Self::Damaged => "the file cannot be read",
        }
    }
}

/// A file that the model does not see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unseen {
    attachment: String,
    name: String,
    why: UnseenReason,
}

impl Unseen {
    fn as_result(&self) -> Value {
        json!({"attachment": self.attachment, "name": self.name, "reason": self.why.as_str()})
    }
}

/// Lists them in a result, if there are any.
pub(crate) fn list_unseen(unseen: &[Unseen], result: &mut Value) {
    if let (false, Some(members)) = (unseen.is_empty(), result.as_object_mut()) {
        members.insert("unseen".to_owned(), unseen.iter().map(Unseen::as_result).collect());
    }
}

/// Adds the files listed in other results of the same node, each attachment once.
pub(crate) fn join(all: &mut Vec<Value>, more: Value) {
    let Value::Array(more) = more else { return };
    let known: BTreeSet<String> = all.iter().filter_map(id_of).collect();
    all.extend(more.into_iter().filter(|one| id_of(one).is_none_or(|id| !known.contains(&id))));
}

fn id_of(unseen: &Value) -> Option<String> {
    unseen.get("attachment").and_then(Value::as_str).map(str::to_owned)
}

/// The memory that a request's files use, held until the answer arrives.
pub(crate) struct Loaded {
    pub(crate) unseen: Vec<Unseen>,
    _room: Option<Room>,
}

/// Loads the files named in a request's messages.
///
/// # Errors
/// A file does not belong to the run's thread, or cannot be read now.
pub(crate) async fn load(
    request: &mut ModelRequest,
    model: &str,
    call: &Call<'_>,
) -> Result<Loaded, Failure> {
    let named: Vec<&str> =
        request.messages.iter().flat_map(|message| &message.files).map(|file| &*file.attachment).collect();
    let mut loaded = Loaded { unseen: Vec::new(), _room: None };
    if named.is_empty() {
        return Ok(loaded);
    }
    let mut files = call.attachments().find(&named).await?;
    // Newest files first.
    files.reverse();
    let mut left =
        FileBudget { images: MAX_IMAGE_BYTES, texts: MAX_TEXT_BYTES, sees_images: sees_images(model) };
    let mut parts = Vec::with_capacity(files.len());
    // A document reserves memory while it is read. Images follow after that is released: requests that hold memory
    // and wait for more could deadlock.
    for file in &files {
        parts.push(if is_image(file) { None } else { Some(left.text(file, call).await?) });
    }
    let images: u64 = files.iter().filter(|file| is_image(file)).map(|file| file.size).sum();
    if images > 0 && left.sees_images {
        loaded._room = Some(call.attachments().room(images.min(MAX_IMAGE_BYTES)).await);
    }
    for (file, part) in files.iter().zip(&mut parts) {
        if part.is_none() {
            *part = Some(left.image(file, call).await?);
        }
    }
    let mut known = BTreeSet::new();
    let mut read = files.iter().zip(parts.into_iter().flatten());
    for message in request.messages.iter_mut().rev() {
        message.parts.clear();
        for (file, part) in read.by_ref().take(message.files.len()) {
            let part = match part {
                Ok(part) => part,
                Err(why) => {
                    let (attachment, name) = (file.id.clone(), file.name.clone());
                    if known.insert(attachment.clone()) {
                        loaded.unseen.push(Unseen { attachment, name, why });
                    }
                    Part::Text(format!("[{}: not shown]", file.name))
                }
            };
            message.parts.push(part);
        }
        message.parts.reverse();
    }
    loaded.unseen.reverse();
    send_notices(&loaded.unseen, call).await;
    Ok(loaded)
}

/// Remaining limits of a request.
struct FileBudget {
    images: u64,
    texts: usize,
    sees_images: bool,
}

impl FileBudget {
    async fn text(
        &mut self,
        file: &AttachedFile,
        call: &Call<'_>,
    ) -> Result<Result<Part, UnseenReason>, NodeError> {
        let Some(media) = Media::of_mime(&file.mime_type) else { return Ok(Err(UnseenReason::Type)) };
        if self.texts == 0 {
            let has_text = media.is_text() || matches!(media, Media::Pdf | Media::Docx);
            return Ok(Err(if has_text { UnseenReason::Budget } else { UnseenReason::Type }));
        }
        let text = match media {
            Media::Text | Media::Markdown | Media::Csv | Media::Json => plain(file, call).await?,
            Media::Pdf => extracted(file, Format::Pdf, call).await?,
            Media::Docx => extracted(file, Format::Docx, call).await?,
            _ => Err(UnseenReason::Type),
        };
        let text = match text {
            Ok(text) => format!("{}\n\n{text}", file.name),
            Err(why) => return Ok(Err(why)),
        };
        Ok(match self.texts.checked_sub(text.len()) {
            Some(left) => {
                self.texts = left;
                Ok(Part::Text(text))
            }
            None => {
                // Skips older files as well, because they will not be sent either.
                self.texts = 0;
                Err(UnseenReason::Budget)
            }
        })
    }

    async fn image(
        &mut self,
        file: &AttachedFile,
        call: &Call<'_>,
    ) -> Result<Result<Part, UnseenReason>, NodeError> {
        if !self.sees_images {
            return Ok(Err(UnseenReason::Model));
        }
        let Some(look) = file.look.clone() else { return Ok(Err(UnseenReason::Damaged)) };
        let Some(left) = self.images.checked_sub(file.size) else { return Ok(Err(UnseenReason::Budget)) };
        self.images = left;
        let data = call.attachments().bytes(file, file.size).await?;
        let (name, mime_type) = (file.name.clone(), file.mime_type.clone());
        let image = Image {
            name,
            mime_type,
            data: data.into(),
            width: look.width,
            height: look.height,
            colour: look.colour,
        };
        Ok(Ok(Part::Image(image)))
    }
}

fn is_image(file: &AttachedFile) -> bool {
    Media::of_mime(&file.mime_type).is_some_and(Media::is_image)
}

async fn plain(file: &AttachedFile, call: &Call<'_>) -> Result<Result<String, UnseenReason>, NodeError> {
    let most = u64::try_from(MAX_FILE_TEXT_BYTES).unwrap_or(u64::MAX);
    let bytes = call.attachments().bytes(file, most).await?;
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
    // The cut may be inside a character.
    let valid = match std::str::from_utf8(bytes) {
        Ok(text) => text.len(),
        Err(error) => error.valid_up_to(),
    };
    let text = bytes.get(..valid).map(String::from_utf8_lossy).unwrap_or_default();
    Ok(Ok(text.into_owned()))
}

/// Returns a document's text, extracted once and stored.
async fn extracted(
    file: &AttachedFile,
    format: Format,
    call: &Call<'_>,
) -> Result<Result<String, UnseenReason>, NodeError> {
    if let Some(text) = call.attachments().text(file).await? {
        return Ok(if text.is_empty() { Err(UnseenReason::Damaged) } else { Ok(text) });
    }
    if file.size > document::MOST_BYTES {
        return Ok(Err(UnseenReason::Budget));
    }
    let _room = call.attachments().room(file.size).await;
    let bytes = call.attachments().bytes(file, file.size).await?;
    let text = match document::read(bytes, format, None, call.sandbox()).await {
        Ok(read) => cut(read.text),
        Err(error) if error.retryable => return Err(error),
        // Not stored: a later request may have enough time.
        Err(error) if error.code == ErrorCode::NodeTimeout => return Ok(Err(UnseenReason::Damaged)),
        Err(error) if error.code == ErrorCode::DocumentTooLarge => return Ok(Err(UnseenReason::Budget)),
        Err(_) => String::new(),
    };
    call.attachments().keep_text(file, &text).await?;
    Ok(if text.is_empty() { Err(UnseenReason::Damaged) } else { Ok(text) })
}

fn cut(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(MAX_FILE_TEXT_BYTES));
    text.retain(|letter| letter != '\0');
    text.trim_end().to_owned()
}

/// Sends the chat's readers a notice, once per attachment and turn.
async fn send_notices(unseen: &[Unseen], call: &Call<'_>) {
    for one in unseen {
        if call.record_notice(&one.attachment) {
            let message = format!("The model cannot see “{}”: {}.", one.name, one.why.notice_text());
            call.immediate(ImmediateEvent::Notice { level: NoticeLevel::Warning, message, title: None })
                .await;
        }
    }
}
