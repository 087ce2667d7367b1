//! The content types by extension.

use super::extension;

/// The content type for unknown extensions.
pub const OTHER: &str = "application/octet-stream";

const TABLE: &[(&str, &[&str])] = &[
    ("text/html; charset=utf-8", &["html", "htm"]),
    ("text/css; charset=utf-8", &["css"]),
    ("text/javascript; charset=utf-8", &["js", "mjs", "cjs"]),
    ("text/plain; charset=utf-8", &["txt", "text", "log", "srt", "toml", "ts", "tsx", "jsx", "vue", "xhtml"]),
    ("text/csv; charset=utf-8", &["csv"]),
    ("text/markdown; charset=utf-8", &["md", "markdown"]),
    ("text/vtt; charset=utf-8", &["vtt"]),
    ("text/calendar; charset=utf-8", &["ics"]),
    ("text/vcard; charset=utf-8", &["vcf"]),
    ("application/json; charset=utf-8", &["json", "map"]),
    ("application/ld+json; charset=utf-8", &["jsonld"]),
    ("application/geo+json; charset=utf-8", &["geojson"]),
    ("application/manifest+json; charset=utf-8", &["webmanifest"]),
    ("application/x-ndjson; charset=utf-8", &["ndjson"]),
    ("application/yaml", &["yaml", "yml"]),
    ("application/xml", &["xml", "xsl"]),
    ("application/rss+xml", &["rss"]),
    ("application/atom+xml", &["atom"]),
    ("image/svg+xml", &["svg"]),
    ("application/wasm", &["wasm"]),
    ("application/pdf", &["pdf"]),
    ("application/rtf", &["rtf"]),
    ("image/png", &["png"]),
    ("image/jpeg", &["jpg", "jpeg", "jfif"]),
    ("image/gif", &["gif"]),
    ("image/webp", &["webp"]),
    ("image/avif", &["avif"]),
    ("image/bmp", &["bmp"]),
    ("image/apng", &["apng"]),
    ("image/tiff", &["tif", "tiff"]),
    ("image/x-icon", &["ico"]),
    ("audio/mpeg", &["mp3"]),
    ("audio/mp4", &["m4a"]),
    ("audio/ogg", &["ogg", "oga", "opus"]),
    ("audio/wav", &["wav"]),
    ("audio/flac", &["flac"]),
    ("audio/webm", &["weba"]),
    ("video/mp4", &["mp4", "m4v"]),
    ("video/webm", &["webm"]),
    ("video/ogg", &["ogv"]),
    ("video/quicktime", &["mov"]),
    ("font/woff", &["woff"]),
    ("font/woff2", &["woff2"]),
    ("font/ttf", &["ttf"]),
    ("font/otf", &["otf"]),
    ("application/vnd.ms-fontobject", &["eot"]),
    ("model/gltf+json; charset=utf-8", &["gltf"]),
    ("model/gltf-binary", &["glb"]),
];

/// The content type of a path; [`OTHER`] if its extension is unknown.
#[must_use]
pub fn media_type(path: &str) -> &'static str {
    let extension = extension(path);
    let known = TABLE.iter().find(|(_, extensions)| extensions.contains(&extension.as_str()));
    known.map_or(OTHER, |(kind, _)| kind)
}
