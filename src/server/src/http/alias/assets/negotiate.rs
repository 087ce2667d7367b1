//! Negotiates a file's content encoding.

use actix_web::http::header::{ACCEPT_ENCODING, HeaderMap};

/// The encoding in which a file is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    /// As uploaded.
    Identity,
    /// Brotli.
    Br,
    /// Gzip.
    Gzip,
}

/// Weights in thousandths.
#[derive(Debug, Clone, Copy, Default)]
struct Accepted {
    br: Option<u16>,
    gzip: Option<u16>,
    identity: Option<u16>,
    other: Option<u16>,
}

/// Chooses the best available encoding. Source: RFC 9110, section 12.5.3.
pub(super) fn choose(headers: &HeaderMap, has_br: bool, has_gzip: bool) -> Encoding {
    if !has_br && !has_gzip {
        return Encoding::Identity;
    }
    let mut accepted = Accepted::default();
    for value in headers.get_all(ACCEPT_ENCODING) {
        value.to_str().unwrap_or_default().split(',').for_each(|item| accepted.add(item));
    }
    let weight = |named: Option<u16>| named.or(accepted.other).unwrap_or_default();
    let br = if has_br { weight(accepted.br) } else { 0 };
    let gzip = if has_gzip { weight(accepted.gzip) } else { 0 };
    // The identity encoding is acceptable by default. If it is named, a smaller encoding wins at equal weight.
    let identity = accepted.identity.unwrap_or_default();
    if br > 0 && br >= gzip && br >= identity {
        Encoding::Br
    } else if gzip > 0 && gzip >= identity {
        Encoding::Gzip
    } else {
        Encoding::Identity
    }
}

impl Accepted {
    fn add(&mut self, item: &str) {
        let (name, parameters) = item.split_once(';').unwrap_or((item, ""));
        let Some(weight) = weight(parameters) else { return };
        let name = name.trim();
        let place = if name.eq_ignore_ascii_case("br") {
            &mut self.br
        } else if name.eq_ignore_ascii_case("gzip") || name.eq_ignore_ascii_case("x-gzip") {
            &mut self.gzip
        } else if name.eq_ignore_ascii_case("identity") {
            &mut self.identity
        } else if name == "*" {
            &mut self.other
        } else {
            return;
        };
        *place = Some(weight);
    }
}

/// Parses `q=` into thousandths; 1,000 if absent, `None` if unreadable.
fn weight(parameters: &str) -> Option<u16> {
    let parameters = parameters.trim();
    if parameters.is_empty() {
        return Some(1_000);
    }
    let (name, value) = parameters.split_once('=')?;
    if !name.trim().eq_ignore_ascii_case("q") {
        return None;
    }
    let (whole, part) = value.trim().split_once('.').unwrap_or((value.trim(), ""));
    if part.len() > 3 || !part.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let part: u16 = format!("{part:0<3}").parse().ok()?;
    match whole {
        "1" if part == 0 => Some(1_000),
        "0" => Some(part),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::HeaderValue;

    use super::*;

    fn chosen(accepts: &str, has_br: bool, has_gzip: bool) -> Encoding {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_str(accepts).unwrap());
        choose(&headers, has_br, has_gzip)
    }

    #[test]
    fn the_smallest_accepted_form_is_chosen() {
        use Encoding::{Br, Gzip, Identity};
        for (accepts, encoding) in [
            ("gzip, deflate, br, zstd", Br),
            ("br", Br),
            ("BR;Q=0.001", Br),
            ("gzip", Gzip),
            ("x-gzip", Gzip),
            ("gzip, br;q=0.9", Gzip),
            ("br;q=0, gzip;q=0.5", Gzip),
            ("br;q=0, gzip;q=0", Identity),
            ("*", Br),
            ("*;q=0.1, br;q=0", Gzip),
            ("identity;q=1, *;q=0", Identity),
            ("identity, br;q=0.5", Identity),
            ("br;q=1.5, gzip;q=x", Identity),
            ("deflate", Identity),
            ("", Identity),
        ] {
            assert_eq!(chosen(accepts, true, true), encoding, "{accepts}");
        }
        assert_eq!(chosen("br", false, true), Identity);
        assert_eq!(chosen("br, gzip", false, true), Gzip);
        assert_eq!(chosen("br, gzip", false, false), Identity);
        assert_eq!(choose(&HeaderMap::new(), true, true), Identity);
    }
}
