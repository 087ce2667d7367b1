//! The accepted types.

/// An accepted file type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Media {
    /// UTF-8 text without a more specific type.
    Text,
    /// Text whose name ends in `.md` or `.markdown`.
    Markdown,
    /// Text whose name ends in `.csv`.
    Csv,
    /// Text whose name ends in `.json`; its syntax is not checked.
    Json,
    /// PDF.
    Pdf,
    /// PNG, also animated.
    Png,
    /// JPEG.
    Jpeg,
    /// GIF.
    Gif,
    /// WebP.
    Webp,
    /// WebM with audio tracks only.
    Webm,
    /// MP4 with audio tracks only.
    Mp4,
    /// Ogg with Opus, Vorbis, FLAC or Speex.
    Ogg,
    /// MPEG audio, layer III.
    Mp3,
    /// RIFF/WAVE.
    Wav,
    /// FLAC.
    Flac,
    /// Word document without macros.
    Docx,
    /// Excel workbook without macros.
    Xlsx,
    /// PowerPoint presentation without macros.
    Pptx,
    /// OpenDocument text.
    Odt,
}

impl Media {
    /// Every accepted type.
    pub const ALL: [Self; 19] = [
        Self::Text,
        Self::Markdown,
        Self::Csv,
        Self::Json,
        Self::Pdf,
        Self::Png,
        Self::Jpeg,
        Self::Gif,
        Self::Webp,
        Self::Webm,
        Self::Mp4,
        Self::Ogg,
        Self::Mp3,
        Self::Wav,
        Self::Flac,
        Self::Docx,
        Self::Xlsx,
        Self::Pptx,
        Self::Odt,
    ];

    /// Returns the media type, in lower case, without parameters.
    #[must_use]
    pub const fn mime(self) -> &'static str {
        match self {
            Self::Text => "text/plain",
            Self::Markdown => "text/markdown",
            Self::Csv => "text/csv",
            Self::Json => "application/json",
            Self::Pdf => "application/pdf",
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::Gif => "image/gif",
            Self::Webp => "image/webp",
            Self::Webm => "audio/webm",
            Self::Mp4 => "audio/mp4",
            Self::Ogg => "audio/ogg",
            Self::Mp3 => "audio/mpeg",
            Self::Wav => "audio/wav",
            Self::Flac => "audio/flac",
            Self::Docx => "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
            Self::Xlsx => "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
            Self::Pptx => "application/vnd.openxmlformats-officedocument.presentationml.presentation",
            Self::Odt => "application/vnd.oasis.opendocument.text",
        }
    }

    /// Finds the type with this media type: exact, in lower case; parameters after `;` are ignored.
    #[must_use]
    pub fn of_mime(mime: &str) -> Option<Self> {
        let essence = mime.split(';').next().unwrap_or_default().trim();
        Self::ALL.into_iter().find(|media| media.mime() == essence)
    }

    /// Whether the type is an image.
    #[must_use]
    pub const fn is_image(self) -> bool {
        matches!(self, Self::Png | Self::Jpeg | Self::Gif | Self::Webp)
    }

    /// Whether the type is audio.
    #[must_use]
    pub const fn is_audio(self) -> bool {
        matches!(self, Self::Webm | Self::Mp4 | Self::Ogg | Self::Mp3 | Self::Wav | Self::Flac)
    }

    /// Whether the type is text: the content is valid UTF-8 without NUL.
    #[must_use]
    pub const fn is_text(self) -> bool {
        matches!(self, Self::Text | Self::Markdown | Self::Csv | Self::Json)
    }

    /// Returns the usual extension, in lower case, without the dot.
    #[must_use]
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Text => "txt",
            Self::Markdown => "md",
            Self::Csv => "csv",
            Self::Json => "json",
            Self::Pdf => "pdf",
            Self::Png => "png",
            Self::Jpeg => "jpg",
            Self::Gif => "gif",
            Self::Webp => "webp",
            Self::Webm => "webm",
            Self::Mp4 => "m4a",
            Self::Ogg => "ogg",
            Self::Mp3 => "mp3",
            Self::Wav => "wav",
            Self::Flac => "flac",
            Self::Docx => "docx",
            Self::Xlsx => "xlsx",
            Self::Pptx => "pptx",
            Self::Odt => "odt",
        }
    }

    /// The type of a text file with this extension.
    pub(crate) fn of_text(extension: Option<&str>) -> Self {
        match extension.map(str::to_ascii_lowercase).as_deref() {
            Some("md" | "markdown") => Self::Markdown,
            Some("csv") => Self::Csv,
            Some("json") => Self::Json,
            _ => Self::Text,
        }
    }
}
