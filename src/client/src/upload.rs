//! Uploading attachments.

use bytes::Bytes;
use reqwest::header::CONTENT_TYPE;
use wire::chat::Attachment;
use wire::operations::chat;

use crate::ClientError;
use crate::client::{Bearer, Client};

impl Client {
    /// `POST /api/chat/upload`: uploads a file for messages of a workflow's chat.
    ///
    /// # Errors
    /// As [`crate::Answer::ok`].
    pub async fn upload(
        &self,
        workflow_id: &str,
        name: &str,
        bytes: &[u8],
    ) -> Result<Attachment, ClientError> {
        let boundary = boundary(bytes);
        let request = self.operation(&chat::UPLOAD, &[], Bearer::Session)?;
        let request = request.header("x-workflow-id", workflow_id);
        let kind = format!("multipart/form-data; boundary={boundary}");
        let request = request.header(CONTENT_TYPE, kind).body(form(&boundary, name, bytes));
        self.answer(request).await?.ok()
    }
}

/// A boundary that the bytes do not contain.
fn boundary(bytes: &[u8]) -> String {
    let occurs = |text: &String| bytes.windows(text.len()).any(|window| window == text.as_bytes());
    let mut number = 0_u64;
    loop {
        let boundary = format!("callboard-{number}");
        if !occurs(&boundary) {
            return boundary;
        }
        number = number.wrapping_add(1);
    }
}

/// A form with one file. Source: RFC 7578; names as browsers write them (HTML, "multipart form data").
fn form(boundary: &str, name: &str, bytes: &[u8]) -> Bytes {
    let name = name.replace('"', "%22").replace('\r', "%0D").replace('\n', "%0A");
    let head = format!(
        "--{boundary}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{name}\"\r\n\
         Content-Type: application/octet-stream\r\n\r\n"
    );
    let tail = format!("\r\n--{boundary}--\r\n");
    [head.as_bytes(), bytes, tail.as_bytes()].concat().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_boundary_does_not_occur_in_the_file() {
        assert_eq!(boundary(b"hello"), "callboard-0");
        assert_eq!(boundary(b"x callboard-0 callboard-1 y"), "callboard-2");
        let form = form("b", "a\"\n.txt", b"hi");
        let text = std::str::from_utf8(&form).unwrap();
        assert!(
            text.contains("filename=\"a%22%0A.txt\"\r\n") && text.ends_with("\r\n\r\nhi\r\n--b--\r\n"),
            "{text}"
        );
    }
}
