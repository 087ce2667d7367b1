//! Rules for elements and their attributes.

use std::borrow::Cow;

use super::report::{Report, quoted};
use super::urls::{self, Url};
use crate::code::Code;
use crate::hints;

/// An element with its attributes; names are lowercase and include prefixes.
pub(super) struct Tag<'a> {
    pub(super) name: &'a str,
    pub(super) attributes: Vec<(Cow<'a, str>, &'a str)>,
}

impl<'a> Tag<'a> {
    /// The value of an attribute.
    pub(super) fn get(&self, name: &str) -> Option<&'a str> {
        self.attributes.iter().find(|(other, _)| other == name).map(|(_, value)| *value)
    }
}

/// Attributes whose addresses must not run scripts.
const ADDRESSES: [&str; 11] = [
    "href",
    "xlink:href",
    "src",
    "action",
    "formaction",
    "data",
    "poster",
    "ping",
    "manifest",
    "cite",
    "background",
];
/// Elements that display the target of `src` as a document.
const FRAMES: [&str; 3] = ["iframe", "frame", "embed"];
/// Elements whose `href` does not lead to a document.
const RESOURCES: [&str; 4] = ["link", "image", "feimage", "script"];
/// Elements that are not allowed in an app.
const UNSUPPORTED: [&str; 6] = ["object", "embed", "applet", "portal", "fencedframe", "frameset"];
/// `<link>` relations whose address is fetched.
const FETCHED: [&str; 7] =
    ["stylesheet", "icon", "apple-touch-icon", "preload", "prefetch", "manifest", "mask-icon"];

/// `<link>` relations whose address must be a file of the app, not a data URL.
const OWN: [&str; 2] = ["stylesheet", "manifest"];

/// Checks an element, except for its script.
pub(super) fn element(tag: &Tag<'_>, report: &mut Report<'_>) {
    attributes(tag, report);
    animation(tag, report);
    match tag.name {
        "base" => base(tag, report),
        "meta" => meta(tag, report),
        "link" => link(tag, report),
        "iframe" if tag.get("srcdoc").is_some() => {
            report.find(Code::UnsupportedElement, "`<iframe srcdoc>` is not supported.");
        }
        "iframe" => frame(tag, report),
        name if UNSUPPORTED.contains(&name) => {
            report.find(Code::UnsupportedElement, format!("`<{name}>` is not supported."));
        }
        _ => {}
    }
    resources(tag, report);
}

fn attributes(tag: &Tag<'_>, report: &mut Report<'_>) {
    let element = || quoted(&format!("<{}>", tag.name));
    for (name, value) in &tag.attributes {
        let local = name.rsplit(':').next().unwrap_or_default();
        if name.starts_with("on") {
            let change =
                hints::handler(tag.name, name).map(|change| format!(" {change}")).unwrap_or_default();
            let detail =
                format!("The attribute {} of {} contains a script.{change}", quoted(name), element());
            report.find(Code::InlineEventHandler, detail);
        }
        let runs = match &**name {
            "srcset" | "imagesrcset" => urls::of_set(value).any(|url| urls::classify(url) == Url::Script),
            "style" => urls::runs_in_style(value),
            // A list of addresses.
            "ping" => value.split_ascii_whitespace().any(|url| runs(tag, name, url)),
            name if ADDRESSES.contains(&name) || local == "href" => runs(tag, name, value),
            _ => false,
        };
        if runs {
            let change = hints::script_address(value).map(|change| format!(" {change}")).unwrap_or_default();
            let (name, value) = (quoted(name), quoted(value));
            let detail = format!("The attribute {name} of {} has the address {value}.{change}", element());
            report.find(Code::JavascriptUrl, detail);
        }
    }
}

/// Whether the address runs a script or opens a document that could.
fn runs(tag: &Tag<'_>, attribute: &str, address: &str) -> bool {
    match urls::classify(address) {
        Url::Script => true,
        Url::Document => match attribute {
            "src" => FRAMES.contains(&tag.name),
            "poster" | "cite" | "background" | "manifest" => false,
            _ => !RESOURCES.contains(&tag.name),
        },
        _ => false,
    }
}

/// Checks for an animation that sets an address.
fn animation(tag: &Tag<'_>, report: &mut Report<'_>) {
    let name = tag.get("attributename").map(str::trim);
    if !tag.name.starts_with("animate") && tag.name != "set"
        || !name.is_some_and(|name| name.ends_with("href"))
    {
        return;
    }
    let values = ["to", "from", "by", "values"].into_iter().filter_map(|name| tag.get(name));
    for value in values.flat_map(|values| values.split(';')) {
        if matches!(urls::classify(value), Url::Script | Url::Document) {
            let detail = format!("`<{}>` sets the address {}.", tag.name, quoted(value));
            report.find(Code::JavascriptUrl, detail);
        }
    }
}

fn base(tag: &Tag<'_>, report: &mut Report<'_>) {
    if let Some(address) = tag.get("href").filter(|address| !urls::is_base(address)) {
        let detail = format!("`<base>` has the address {}; it must begin with `/` or `./`.", quoted(address));
        report.find(Code::UnsupportedElement, detail);
    }
}

fn meta(tag: &Tag<'_>, report: &mut Report<'_>) {
    if let Some(charset) = tag.get("charset") {
        encoding(charset, report);
    }
    let content = tag.get("content").unwrap_or_default();
    let Some(directive) = tag.get("http-equiv").map(|name| name.trim().to_ascii_lowercase()) else { return };
    match directive.as_str() {
        "" | "x-ua-compatible" | "content-security-policy" => {}
        "content-type" => {
            if let Some(charset) = charset_of(content) {
                encoding(charset, report);
            }
        }
        "refresh" => match urls::of_refresh(content).map(|address| (address, urls::classify(address))) {
            Some((address, Url::Script | Url::Document)) => {
                report.find(Code::JavascriptUrl, format!("`<meta>` opens the address {}.", quoted(address)));
            }
            Some((address, Url::External)) => {
                let detail = format!("`<meta>` leads to the other origin {}.", quoted(address));
                report.find(Code::UnsupportedElement, detail);
            }
            _ => {}
        },
        other => {
            let change = hints::directive(other).map(|change| format!(" {change}")).unwrap_or_default();
            let detail = format!("`<meta http-equiv>` with {} is not supported.{change}", quoted(other));
            report.find(Code::UnsupportedElement, detail);
        }
    }
}

/// The encoding in a content type.
fn charset_of(content: &str) -> Option<&str> {
    let at = content.to_ascii_lowercase().find("charset")?;
    let value = content.get(at..)?.get("charset".len()..)?.trim_start().strip_prefix('=')?.trim_start();
    let value = value.trim_start_matches(['"', '\'']);
    value.split(|char: char| char.is_ascii_whitespace() || matches!(char, ';' | '"' | '\'')).next()
}

/// Reports an encoding other than UTF-8.
pub(super) fn encoding(label: &str, report: &mut Report<'_>) {
    const UTF8: [&str; 6] =
        ["utf-8", "utf8", "unicode-1-1-utf-8", "unicode11utf8", "unicode20utf8", "x-unicode20utf8"];
    let lower = label.trim().to_ascii_lowercase();
    if !UTF8.contains(&lower.as_str()) {
        report.find(Code::NotUtf8, format!("The document declares the encoding {}.", quoted(label)));
    }
}

fn link(tag: &Tag<'_>, report: &mut Report<'_>) {
    let relation = tag.get("rel").unwrap_or_default().to_ascii_lowercase();
    let (Some(address), mut relations) = (tag.get("href"), relation.split_ascii_whitespace()) else { return };
    let url = urls::classify(address);
    if relations.clone().any(|relation| relation == "modulepreload")
        && !matches!(url, Url::Relative | Url::Script)
    {
        report.find(Code::ExternalScript, format!("`<link>` loads the module {}.", quoted(address)));
    } else if relations.any(|relation| match url {
        Url::External => FETCHED.contains(&relation),
        Url::Data | Url::Document => OWN.contains(&relation),
        _ => false,
    }) {
        blocked(tag, address, report);
    }
}

/// Notes resources that the app's policy will block.
fn resources(tag: &Tag<'_>, report: &mut Report<'_>) {
    let attributes: &[&str] = match tag.name {
        "img" | "audio" | "source" | "track" | "input" => &["src"],
        "video" => &["src", "poster"],
        "form" => &["action"],
        "button" => &["formaction"],
        "image" | "use" | "feimage" => &["href", "xlink:href"],
        _ => &[],
    };
    let single = attributes.iter().filter_map(|name| tag.get(name));
    let sets = ["srcset", "imagesrcset"].into_iter().filter_map(|name| tag.get(name)).flat_map(urls::of_set);
    let styles = tag.get("style").into_iter().flat_map(urls::of_style);
    for address in single.chain(sets).chain(styles).filter(|address| urls::classify(address) == Url::External)
    {
        blocked(tag, address, report);
    }
}

/// Notes a frame: the policy allows none, whatever the origin.
fn frame(tag: &Tag<'_>, report: &mut Report<'_>) {
    let Some(address) = tag.get("src").filter(|address| !address.trim().is_empty()) else { return };
    // The policy does not apply to `about:blank` and to addresses for other programs; scripts are refused.
    if !matches!(urls::classify(address), Url::Script | Url::Other) {
        blocked(tag, address, report);
    }
}

/// Notes a style sheet's external resources.
pub(super) fn style_sheet(style: &str, report: &mut Report<'_>) {
    for address in urls::of_style(style).filter(|address| urls::classify(address) == Url::External) {
        let detail =
            format!("The policy of the app blocks the address {} of a style sheet.", quoted(address));
        report.note("external_url", detail);
    }
    for address in urls::of_imports(style) {
        if matches!(urls::classify(address), Url::External | Url::Data | Url::Document) {
            let detail =
                format!("The policy of the app blocks the address {} of `@import`.", quoted(address));
            report.note("external_url", detail);
        }
    }
}

fn blocked(tag: &Tag<'_>, address: &str, report: &mut Report<'_>) {
    let detail = format!("The policy of the app blocks the address {} of `<{}>`.", quoted(address), tag.name);
    report.note("external_url", detail);
}
