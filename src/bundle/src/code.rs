//! The refusal codes: one table, in order of precedence.

/// Declares the table; each row is `Variant, "code", "message", "what to change";`.
macro_rules! codes {
    ($($variant:ident, $code:literal, $message:literal, $help:literal;)*) => {
        /// The reason that a bundle is refused. Earlier codes take precedence.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code {
            $(#[doc = $message] $variant,)*
        }

        impl Code {
            /// Every code, in order of precedence.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The stable code for programs.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $code,)* }
            }

            /// The problem in one sentence.
            #[must_use]
            pub const fn message(self) -> &'static str {
                match self { $(Self::$variant => $message,)* }
            }

            /// Advice for the publisher.
            #[must_use]
            pub const fn help(self) -> &'static str {
                match self { $(Self::$variant => $help,)* }
            }
        }
    };
}

codes! {
    NotAZip, "not_a_zip",
        "The file is not a ZIP archive.",
        "Upload a complete ZIP archive.";
    ZipMalformed, "zip_malformed",
        "The archive does not have exactly one meaning.",
        "Create the archive again with a common tool, without comments, ZIP64 records or data before or after it.";
    ZipOverlap, "zip_overlap",
        "Two entries of the archive share bytes.",
        "Create the archive again with a common tool.";
    EncryptedEntry, "encrypted_entry",
        "An entry of the archive is encrypted.",
        "Create the archive without a password.";
    UnsupportedCompression, "unsupported_compression",
        "An entry is compressed with a method other than deflate.",
        "Create the archive with the methods \"store\" or \"deflate\".";
    CrcMismatch, "crc_mismatch",
        "The content of an entry is damaged.",
        "Create the archive again.";
    SizeMismatch, "size_mismatch",
        "An entry has another size than the archive says.",
        "Create the archive again.";
    BundleTooLarge, "bundle_too_large",
        "The archive is too large.",
        "Remove files that the app does not use.";
    ExpandedTooLarge, "expanded_too_large",
        "The files of the bundle are too large together.",
        "Remove files that the app does not use, such as source maps.";
    TooManyFiles, "too_many_files",
        "The bundle has too many files.",
        "Bundle the modules of the app, and remove files that the app does not use.";
    FileTooLarge, "file_too_large",
        "A file of the bundle is too large.",
        "Make the file smaller, or host it elsewhere.";
    PathTooDeep, "path_too_deep",
        "A path has too many folders.",
        "Move the file to a folder nearer to the root.";
    PathTooLong, "path_too_long",
        "A path, or a name in it, is too long.",
        "Use shorter names.";
    DirectoryTooLarge, "directory_too_large",
        "The directory of the archive is too large.",
        "Use fewer files and shorter names.";
    UnsafePath, "unsafe_path",
        "A path could leave its folder, or means different files on different systems.",
        "Use relative paths with plain names and `/` between them.";
    NameNotUtf8, "name_not_utf8",
        "A name is not UTF-8, or is not marked as UTF-8.",
        "Create the archive with a tool that writes names as UTF-8, or use ASCII names.";
    PathCollision, "path_collision",
        "Two paths are the same on some systems.",
        "Rename one of the two files.";
    PathNotNormalized, "path_not_normalized",
        "A path is not in the Unicode form NFC.",
        "Rename the file; archives made on macOS may need a tool that writes NFC.";
    Symlink, "symlink",
        "An entry is a link.",
        "Replace the link by the file.";
    SpecialFile, "special_file",
        "An entry is neither a plain file nor a plain folder.",
        "Remove the entry, or clear its special mode bits.";
    ReservedPath, "reserved_path",
        "The path is reserved.",
        "Rename or remove the file.";
    IndexMissing, "index_missing",
        "The bundle has no `index.html` at its root.",
        "Archive the content of the build folder, not the folder itself.";
    SensitiveFile, "sensitive_file",
        "The file is hidden or holds a secret, and would be public.",
        "Remove the file from the bundle.";
    NestedArchive, "nested_archive",
        "A file is an archive or contains one.",
        "Remove the file. The service compresses files itself; it needs no `.gz` files.";
    Executable, "executable",
        "A file is a program.",
        "Remove the file.";
    NotUtf8, "not_utf8",
        "A document is not UTF-8, or declares another encoding.",
        "Save the file as UTF-8, and declare no other encoding.";
    HtmlParseLimit, "html_parse_limit",
        "A document is too large or too complex to check.",
        "Make the document smaller: move data and scripts to other files.";
    InlineEventHandler, "inline_event_handler",
        "An attribute contains a script.",
        "Move the script to a file and use `addEventListener`.";
    JavascriptUrl, "javascript_url",
        "An address runs a script.",
        "Use a button with an event listener, or an address of the app.";
    UnsupportedScriptType, "unsupported_script_type",
        "A script has a type that the app cannot use.",
        "Compile the script to JavaScript, and keep either `src` or an inline script.";
    ExternalScript, "external_script",
        "A script comes from another origin, and the policy of the app would block it.",
        "Copy the script into the bundle and use a relative address.";
    UnsupportedElement, "unsupported_element",
        "A document has an element that the app cannot use.",
        "Remove the element.";
    SvgScript, "svg_script",
        "An SVG or XML file has a script, an entity or a style sheet instruction.",
        "Remove it from the file; optimizers of SVG files do so.";
    CspTooLarge, "csp_too_large",
        "The policy of a document is too long.",
        "Move inline scripts to files, and name fewer frame ancestors.";
    ManifestInvalid, "manifest_invalid",
        "The manifest `service.app.json` does not follow its rules.",
        "Correct the member that the finding names.";
    SchemaInvalid, "schema_invalid",
        "A schema of the manifest is not valid, or refers outside itself.",
        "Use JSON Schema with local `#` references and plain patterns without large repetitions.";
}

impl Code {
    /// Finds a code by its text.
    #[must_use]
    pub fn from_code(code: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|known| known.as_str() == code)
    }
}
