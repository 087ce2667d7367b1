//! Images stored in a thread, within turn events: URLs expire, so states and stored items have none. Pure.

use kernel::AttachmentId;
use wire::chat::{ChatEvent, GeneratedImage, ItemBody, ItemUpdate};

/// The attachment of an image stored in the thread.
fn attachment(image: &GeneratedImage) -> Option<AttachmentId> {
    AttachmentId::parse(&image.id).ok()
}

/// The attachment of an item's image, if the thread stores it.
pub(super) fn attachment_of(body: &ItemBody) -> Option<AttachmentId> {
    match body {
        ItemBody::GeneratedImage { image: Some(image), .. } => attachment(image),
        _ => None,
    }
}

/// Adds the URL to an event's image, if the thread stores it.
pub(super) fn address(event: &mut ChatEvent, address: impl FnOnce(AttachmentId) -> String) {
    if let Some(image) = image(event)
        && let Some(id) = attachment(image)
    {
        image.url = address(id);
    }
}

/// Removes the URL from a stored event.
pub(super) fn without_address(mut event: ChatEvent) -> ChatEvent {
    address(&mut event, |_| String::new());
    event
}

fn image(event: &mut ChatEvent) -> Option<&mut GeneratedImage> {
    match event {
        ChatEvent::ItemAdded { item } | ChatEvent::ItemDone { item } | ChatEvent::ItemReplaced { item } => {
            match &mut item.body {
                ItemBody::GeneratedImage { image, .. } => image.as_mut(),
                _ => None,
            }
        }
        ChatEvent::ItemUpdated { update: ItemUpdate::ImageUpdated { image, .. }, .. } => Some(image),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_images_stored_in_the_thread_get_a_url() {
        let kept = AttachmentId(uuid::Uuid::from_u128(7)).to_string();
        for (id, url, expected) in
            [(kept.as_str(), "", "new"), ("img_00", "https://e.org/a", "https://e.org/a")]
        {
            let image = GeneratedImage { id: id.to_owned(), url: url.to_owned() };
            let update = ItemUpdate::ImageUpdated { image, progress: None };
            let mut event = ChatEvent::ItemUpdated { item_id: "i".to_owned(), update };
            let before = event.clone();
            address(&mut event, |_| "new".to_owned());
            assert_eq!(super::image(&mut event).unwrap().url, expected);
            assert_eq!(without_address(event), before);
        }
    }
}
