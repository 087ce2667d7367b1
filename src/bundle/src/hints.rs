//! Build tool settings that avoid refused output.

/// The folder that build tools copy unchanged.
const STATIC_FILES: &str = "the folder of static files (`public`, or `static` in SvelteKit)";

/// Advice about a hidden file or folder with this name.
pub(crate) fn hidden(name: &str) -> String {
    let what = "Names that begin with a dot are hidden files of tools.";
    match name {
        ".vite" => format!(
            "{what} Vite: set `build.manifest` and `build.ssrManifest` to `false`, or to a name such as \
             `manifest.json`."
        ),
        ".nojekyll" => format!("{what} `.nojekyll` is for GitHub Pages: remove it from {STATIC_FILES}."),
        _ => format!("{what} Remove it from {STATIC_FILES}."),
    }
}

/// Advice about another host's configuration file.
pub(crate) fn other_host() -> String {
    format!("remove it from {STATIC_FILES}")
}

/// Advice about a file that a build tool has compressed.
pub(crate) fn compressed(extension: &str) -> Option<&'static str> {
    (extension == "gz").then_some(
        "The service compresses files itself. SvelteKit: set `precompress: false` in `adapter-static`; other tools: \
         remove the plugin that compresses files.",
    )
}

/// Advice about an event handler.
pub(crate) fn handler(element: &str, attribute: &str) -> Option<&'static str> {
    (element == "link" && attribute == "onload").then_some(
        "Angular: set `optimization.styles.inlineCritical` to `false`, or update to a version that writes none.",
    )
}

/// Advice about an address that runs a script.
pub(crate) fn script_address(address: &str) -> Option<&'static str> {
    const NOTHING: [&str; 5] = ["", "void(0)", "void0", "undefined", "false"];
    let plain: String = address.chars().filter(|char| *char > ' ' && *char != ';').collect();
    let script = plain.to_ascii_lowercase().strip_prefix("javascript:").map(str::to_owned)?;
    NOTHING.contains(&script.as_str()).then_some(
        "It does nothing: use `<button type=\"button\">`, or the address `#` and a listener that calls `preventDefault`.",
    )
}

/// Advice about a `<meta http-equiv>` directive.
pub(crate) fn directive(name: &str) -> Option<&'static str> {
    match name {
        "cache-control" | "pragma" | "expires" => {
            Some("The service sends the header `Cache-Control` itself: remove the element.")
        }
        "content-language" | "language" => {
            Some("Remove the element, and name the language in the attribute `lang` of `<html>`.")
        }
        "x-dns-prefetch-control" => {
            Some("The service sends the header `X-DNS-Prefetch-Control` itself: remove the element.")
        }
        _ => None,
    }
}

/// Advice about an unknown script type.
pub(crate) fn script_type(kind: &str) -> Option<&'static str> {
    match kind {
        "speculationrules" => Some("The policy blocks fetching pages ahead: remove the script."),
        "text/partytown" => Some("Scripts in workers do not run: remove Partytown."),
        _ => None,
    }
}

/// Advice about an index in a folder.
pub(crate) fn inner_index(folder: &str) -> String {
    let angular = if folder.rsplit('/').next() == Some("browser") {
        " Angular writes the app to `dist/NAME/browser`."
    } else {
        ""
    };
    format!("`{folder}/index.html` is in a folder; archive the content of `{folder}` instead.{angular}")
}
