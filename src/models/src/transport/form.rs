//! `multipart/form-data` bodies.
//!
//! Source: RFC 7578.

use ring::digest::{Context, SHA256};

/// Maximum bytes of a part's header.
const HEAD: usize = 256;

/// A file in a form. Its names are constants of the program, so they need no quoting.
pub(crate) struct FormFile<'a> {
    pub(crate) field: &'static str,
    pub(crate) file_name: &'static str,
    pub(crate) mime_type: &'static str,
    pub(crate) bytes: &'a [u8],
}

/// A complete body.
pub(crate) struct Form {
    pub(super) content_type: String,
    pub(super) bytes: Vec<u8>,
}

impl Form {
    /// Writes the fields by name, then the file.
    pub(crate) fn new(fields: &[(&'static str, &str)], file: &FormFile<'_>) -> Self {
        // No content can contain the digest of all contents, so it is a safe boundary.
        let mut context = Context::new(&SHA256);
        for (_, value) in fields {
            context.update(value.as_bytes());
        }
        context.update(file.bytes);
        let boundary = hex::encode(context.finish());
        let values = fields.iter().map(|(_, value)| value.len().saturating_add(HEAD));
        let mut bytes =
            Vec::with_capacity(values.sum::<usize>().saturating_add(file.bytes.len()).saturating_add(HEAD));
        for (name, value) in fields {
            let head = format!("--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n");
            bytes.extend_from_slice(head.as_bytes());
            bytes.extend_from_slice(value.as_bytes());
            bytes.extend_from_slice(b"\r\n");
        }
        let FormFile { field, file_name, mime_type, .. } = file;
        let head = format!(
            "--{boundary}\r\nContent-Disposition: form-data; name=\"{field}\"; filename=\"{file_name}\"\r\n\
             Content-Type: {mime_type}\r\n\r\n"
        );
        bytes.extend_from_slice(head.as_bytes());
        bytes.extend_from_slice(file.bytes);
        bytes.extend_from_slice(format!("\r\n--{boundary}--\r\n").as_bytes());
        Self { content_type: format!("multipart/form-data; boundary={boundary}"), bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_are_unchanged_between_boundaries() {
        let file = FormFile {
            field: "file",
            file_name: "audio.webm",
            mime_type: "audio/webm",
            bytes: b"\r\n--x\0\xff",
        };
        let form = Form::new(&[("model", "m\"\r\n")], &file);
        let boundary = form.content_type.strip_prefix("multipart/form-data; boundary=").unwrap().to_owned();
        assert!(boundary.len() <= 70, "RFC 2046 limits the length");
        let expected = [
            format!("--{boundary}\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nm\"\r\n\r\n")
                .as_bytes(),
            format!(
                "--{boundary}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"audio.webm\"\r\n"
            )
            .as_bytes(),
            b"Content-Type: audio/webm\r\n\r\n\r\n--x\0\xff",
            format!("\r\n--{boundary}--\r\n").as_bytes(),
        ]
        .concat();
        assert_eq!(form.bytes, expected);
    }
}
