//! Finds values in the input.

use super::instruction::{Action, Field};
use super::reading::ParsedRequest;

/// The kinds that field names imply.
const NAMED: [(&str, &str); 12] = [
    ("email", "email"),
    ("mail", "email"),
    ("url", "link"),
    ("link", "link"),
    ("website", "link"),
    ("date", "date"),
    ("day", "date"),
    ("amount", "amount"),
    ("price", "amount"),
    ("total", "amount"),
    ("cost", "amount"),
    ("phone", "phone"),
];
const CURRENCIES: [&str; 10] = ["€", "$", "£", "eur", "usd", "gbp", "euro", "euros", "dollars", "pounds"];
const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

/// Finds a field by the instruction that locates it, else by the kind that its name implies.
pub(super) fn field(reading: &ParsedRequest<'_>, name: &str) -> Option<String> {
    let plain = |name: &str| name.to_lowercase().replace(['_', '-', ' '], "");
    let rule = reading.asked().find_map(|action| match action {
        Action::Field(field) if plain(&field.name) == plain(name) => Some(field),
        _ => None,
    });
    match rule {
        Some(rule) => by_rule(rule, &reading.input),
        None => by_name(&plain(name), &reading.input),
    }
}

fn by_rule(rule: &Field, input: &str) -> Option<String> {
    let behind = match &rule.after {
        Some(after) => after_phrase(input, after)?,
        None => input,
    };
    let between = match &rule.before {
        Some(before) => {
            let at = behind.to_lowercase().find(&before.to_lowercase())?;
            behind.get(..at)?
        }
        None => behind,
    };
    // With only an end phrase, the last match before it counts.
    let last = rule.before.is_some() && rule.after.is_none();
    of_kind(&rule.kind, between, last)
}

fn after_phrase<'a>(input: &'a str, phrase: &str) -> Option<&'a str> {
    let lower = input.to_lowercase();
    let at = lower.find(&phrase.to_lowercase())?.checked_add(phrase.to_lowercase().len())?;
    // If lowercasing changes the length, offsets do not match and nothing is found.
    if lower.len() == input.len() { input.get(at..) } else { None }
}

fn by_name(name: &str, input: &str) -> Option<String> {
    if let Some((_, kind)) = NAMED.iter().find(|(part, _)| name.ends_with(part)) {
        return of_kind(kind, input, false);
    }
    if name == "name" || name.ends_with("name") {
        let start =
            ["my name is ", "name: ", "this is "].iter().find_map(|start| after_phrase(input, start))?;
        return of_kind("name", start, false);
    }
    // "Order: 123", "order #123"
    let behind = after_phrase(input, name)?;
    let value = behind.trim_start().strip_prefix([':', '#', '='])?;
    of_kind("word", value, false)
}

/// The words of a text without surrounding punctuation.
fn units(text: &str) -> impl DoubleEndedIterator<Item = &str> {
    let around = |c: char| !c.is_alphanumeric() && !matches!(c, '+' | '€' | '$' | '£');
    text.split_whitespace().map(move |unit| unit.trim_matches(around)).filter(|unit| !unit.is_empty())
}

fn of_kind(kind: &str, text: &str, last: bool) -> Option<String> {
    let pick = |test: &dyn Fn(&str) -> bool| {
        let found =
            if last { units(text).rfind(|unit| test(unit)) } else { units(text).find(|unit| test(unit)) };
        found.map(str::to_owned)
    };
    match kind {
        "number" => pick(&|unit| numeric(unit).is_some()).and_then(|unit| numeric(&unit)),
        "amount" | "price" => amount(text).or_else(|| of_kind("number", text, last)),
        "email" | "address" => pick(&|unit| unit.contains('@') && unit.contains('.')),
        "link" | "url" => pick(&|unit| unit.starts_with("http://") || unit.starts_with("https://")),
        "date" => date(text),
        "phone" => pick(&|unit| unit.chars().filter(char::is_ascii_digit).count() >= 7),
        "code" => pick(&|unit| unit.chars().any(|c| c.is_ascii_digit())),
        "text" | "words" => {
            let end = text.find(['.', '!', '?', '\n']).unwrap_or(text.len());
            text.get(..end).map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned)
        }
        _ => pick(&|_| true),
    }
}

/// A number in JSON form.
fn numeric(unit: &str) -> Option<String> {
    let bare = unit.trim_matches(|c: char| !c.is_ascii_digit());
    let plain = bare.replace(',', "");
    plain.parse::<f64>().is_ok().then_some(plain)
}

fn amount(text: &str) -> Option<String> {
    let all: Vec<&str> = units(text).collect();
    let currency =
        |unit: Option<&&str>| unit.is_some_and(|unit| CURRENCIES.contains(&unit.to_lowercase().as_str()));
    (0..all.len()).find_map(|at| {
        let unit = all.get(at)?;
        let marked = unit.contains(['€', '$', '£']);
        let near = currency(all.get(at.saturating_add(1))) || at > 0 && currency(all.get(at - 1));
        if marked || near { numeric(unit) } else { None }
    })
}

fn date(text: &str) -> Option<String> {
    let all: Vec<&str> = units(text).collect();
    let digits = |unit: &str| unit.chars().filter(char::is_ascii_digit).count();
    let whole = |unit: &&&str| {
        digits(unit) >= 4 && unit.chars().filter(|c| matches!(c, '-' | '/' | '.')).count() == 2
    };
    if let Some(found) = all.iter().find(whole) {
        return Some((*found).to_owned());
    }
    let month = |unit: &str| {
        unit.chars().count() >= 3 && unit.to_lowercase().get(..3).is_some_and(|start| MONTHS.contains(&start))
    };
    all.windows(2).find_map(|pair| match pair {
        [day, name] if digits(day) > 0 && month(name) => Some(format!("{day} {name}")),
        [name, day] if digits(day) > 0 && month(name) => Some(format!("{name} {day}")),
        _ => None,
    })
}
