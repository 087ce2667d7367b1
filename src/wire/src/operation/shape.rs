//! Bodies: their media type, and their schema and example in the documentation.

/// A body's JSON Schema and example. Without the feature `schema`, only its media type.
#[derive(Clone, Copy)]
pub struct Shape {
    /// Its media type, such as `application/json`.
    pub media: &'static str,
    /// Returns the schema for a body that clients or the service send.
    #[cfg(feature = "schema")]
    pub schema: fn(&mut schemars::SchemaGenerator) -> schemars::Schema,
    /// An example, as indented JSON.
    #[cfg(feature = "schema")]
    pub example: Option<&'static str>,
}

/// Returns the media type; `T` is the body's type.
pub(crate) const fn media<T>(media: &'static str) -> &'static str {
    let _ = core::marker::PhantomData::<T>;
    media
}

/// A JSON body of a type, with an example.
macro_rules! json {
    ($type:ty) => {
        $crate::operation::Shape {
            media: $crate::operation::media::<$type>("application/json"),
            #[cfg(feature = "schema")]
            schema: |generator| generator.subschema_for::<$type>(),
            #[cfg(feature = "schema")]
            example: None,
        }
    };
    ($type:ty, $example:path) => {
        $crate::operation::Shape {
            media: $crate::operation::media::<$type>("application/json"),
            #[cfg(feature = "schema")]
            schema: |generator| generator.subschema_for::<$type>(),
            #[cfg(feature = "schema")]
            example: Some($example),
        }
    };
}

/// Events of a type, streamed as SSE.
macro_rules! events {
    ($type:ty) => {
        $crate::operation::Shape {
            media: $crate::operation::media::<$type>("text/event-stream"),
            #[cfg(feature = "schema")]
            schema: |generator| generator.subschema_for::<$type>(),
            #[cfg(feature = "schema")]
            example: None,
        }
    };
}

/// Records of a type, one JSON document per line.
macro_rules! lines {
    ($type:ty) => {
        $crate::operation::Shape {
            media: $crate::operation::media::<$type>("application/x-ndjson"),
            #[cfg(feature = "schema")]
            schema: |generator| generator.subschema_for::<$type>(),
            #[cfg(feature = "schema")]
            example: None,
        }
    };
}

/// A text body with a media type.
macro_rules! text {
    ($media:literal) => {
        $crate::operation::Shape {
            media: $media,
            #[cfg(feature = "schema")]
            schema: |generator| generator.subschema_for::<String>(),
            #[cfg(feature = "schema")]
            example: None,
        }
    };
}

/// A binary body with a media type.
macro_rules! binary {
    ($media:literal) => {
        $crate::operation::Shape {
            media: $media,
            #[cfg(feature = "schema")]
            schema: |_| schemars::json_schema!({"type": "string", "format": "binary"}),
            #[cfg(feature = "schema")]
            example: None,
        }
    };
}

/// A form with one file.
macro_rules! file_form {
    () => {
        $crate::operation::Shape {
            media: "multipart/form-data",
            #[cfg(feature = "schema")]
            schema: |_| {
                schemars::json_schema!({
                    "type": "object",
                    "required": ["file"],
                    "properties": {"file": {"type": "string", "format": "binary"}}
                })
            },
            #[cfg(feature = "schema")]
            example: None,
        }
    };
}

pub(crate) use {binary, events, file_form, json, lines, text};
