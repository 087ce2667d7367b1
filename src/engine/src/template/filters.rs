//! The filters, tests and functions of the template language, with metering.

use minijinja::value::{Rest, ValueKind, ValueOrKwargs};
use minijinja::{AutoEscape, Environment, Error, State, Value as View, filters, functions, tests};

use super::functions::{date, invalid, sha256};
use super::text_size::{ESCAPE, debug_size, escaped_size, json_size, text_of, text_size, too_long};
use crate::meter;

/// Bytes charged per list item.
const ITEM: usize = 24;
/// Maximum width or indentation.
const WIDEST: usize = 9_999;
/// Maximum bytes that a sum of texts or lists may copy.
const COPIED: usize = 64 << 20;
/// Maximum bytes of a number as text.
const NUMBER: usize = 330;

/// Estimates, before a filter runs, the maximum bytes that it creates from its arguments.
type Estimate = fn(&[View]) -> Result<usize, Error>;

macro_rules! filters {
    ($environment:ident, $wrap:expr, $($name:literal => $filter:path),* $(,)?) => {
        $(add_filter($environment, $name, View::from_function($filter), $wrap);)*
    };
}

macro_rules! tests {
    ($environment:ident, $($name:literal => $test:path),* $(,)?) => {
        $(add_test($environment, $name, View::from_function($test));)*
    };
}

/// A filter's limit.
#[derive(Clone, Copy)]
enum FilterLimit {
    /// Its result is small or a part of its arguments.
    Small,
    /// Its result is counted.
    Counted(Estimate),
    /// As `Counted`; parts of the result are escaped where `autoescape` is on.
    Escaped(Estimate),
}

pub(super) fn add(environment: &mut Environment<'_>) {
    add_filters(environment);
    add_tests(environment);
    environment.remove_global("debug");
    // A value carried between iterations could be nested without end.
    environment.remove_global("namespace");
    let range = View::from_function(functions::range);
    environment.add_global("range", range);
}

fn add_filters(environment: &mut Environment<'_>) {
    use FilterLimit::{Counted, Escaped, Small};
    filters!(environment, Small,
        "length" => filters::length, "count" => filters::length,
        "default" => filters::default, "d" => filters::default, "round" => filters::round, "abs" => filters::abs,
        "int" => filters::int, "float" => filters::float, "attr" => filters::attr, "first" => filters::first,
        "last" => filters::last, "min" => filters::min, "max" => filters::max, "bool" => filters::bool,
    );
    filters!(environment, Counted(whole),
        "trim" => filters::trim, "string" => filters::string, "safe" => filters::safe,
    );
    filters!(environment, Counted(cased),
        "lower" => filters::lower, "upper" => filters::upper, "title" => filters::title,
        "capitalize" => filters::capitalize,
    );
    filters!(environment, Counted(read),
        "sha256" => sha256, "date_add" => date::add, "date_format" => date::format,
        "timestamp" => date::timestamp, "seconds_since" => date::seconds_since,
    );
    filters!(environment, Counted(items),
        "dictsort" => filters::dictsort, "items" => filters::items, "reverse" => filters::reverse,
        "sort" => filters::sort, "list" => filters::list, "select" => filters::select, "reject" => filters::reject,
        "selectattr" => filters::selectattr, "rejectattr" => filters::rejectattr, "map" => filters::map,
        "groupby" => filters::groupby, "unique" => filters::unique, "chain" => filters::chain, "zip" => filters::zip,
    );
    filters!(environment, Counted(grouped), "batch" => filters::batch, "slice" => filters::slice);
    filters!(environment, Counted(escaped), "escape" => filters::escape, "e" => filters::escape);
    filters!(environment, Escaped(replaced), "replace" => filters::replace);
    filters!(environment, Escaped(joined), "join" => filters::join);
    filters!(environment, Counted(split), "split" => filters::split);
    filters!(environment, Counted(lines), "lines" => filters::lines);
    filters!(environment, Counted(summed), "sum" => filters::sum);
    filters!(environment, Counted(indented), "indent" => filters::indent);
    filters!(environment, Counted(json), "tojson" => filters::tojson);
    filters!(environment, Counted(printed), "pprint" => filters::pprint);
    filters!(environment, Counted(formatted), "format" => filters::format);
}

fn add_tests(environment: &mut Environment<'_>) {
    tests!(environment,
        "undefined" => tests::is_undefined, "defined" => tests::is_defined, "none" => tests::is_none,
        "safe" => tests::is_safe, "escaped" => tests::is_safe, "boolean" => tests::is_boolean, "odd" => tests::is_odd,
        "even" => tests::is_even, "divisibleby" => tests::is_divisibleby, "number" => tests::is_number,
        "integer" => tests::is_integer, "int" => tests::is_integer, "float" => tests::is_float,
        "string" => tests::is_string, "sequence" => tests::is_sequence, "iterable" => tests::is_iterable,
        "mapping" => tests::is_mapping, "startingwith" => tests::is_startingwith,
        "endingwith" => tests::is_endingwith, "lower" => tests::is_lower, "upper" => tests::is_upper,
        "sameas" => tests::is_sameas, "eq" => tests::is_eq, "equalto" => tests::is_eq, "==" => tests::is_eq,
        "ne" => tests::is_ne, "!=" => tests::is_ne, "lt" => tests::is_lt, "lessthan" => tests::is_lt,
        "<" => tests::is_lt, "le" => tests::is_le, "<=" => tests::is_le, "gt" => tests::is_gt,
        "greaterthan" => tests::is_gt, ">" => tests::is_gt, "ge" => tests::is_ge, ">=" => tests::is_ge,
        "in" => tests::is_in, "true" => tests::is_true, "false" => tests::is_false, "filter" => tests::is_filter,
        "test" => tests::is_test,
    );
}

fn add_filter(environment: &mut Environment<'_>, name: &'static str, filter: View, limit: FilterLimit) {
    environment.add_filter(name, move |state: &mut State<'_, '_>, args: Rest<ValueOrKwargs>| {
        let args = args.into_values();
        match limit {
            FilterLimit::Small => {
                meter::step()?;
                filter.call(state, &args)
            }
            FilterLimit::Counted(estimate) => {
                meter::fits(estimate(&args)?)?;
                meter::made(filter.call(state, &args)?)
            }
            FilterLimit::Escaped(estimate) => {
                let longest = if matches!(state.auto_escape(), AutoEscape::None) { 1 } else { ESCAPE };
                meter::fits(estimate(&args)?.saturating_mul(longest))?;
                meter::made(filter.call(state, &args)?)
            }
        }
    });
}

fn add_test(environment: &mut Environment<'_>, name: &'static str, test: View) {
    environment.add_test(
        name,
        move |state: &mut State<'_, '_>, args: Rest<ValueOrKwargs>| -> Result<bool, Error> {
            meter::step()?;
            Ok(test.call(state, &args.into_values())?.is_true())
        },
    );
}

fn first(args: &[View]) -> View {
    args.first().cloned().unwrap_or_default()
}

/// Returns the largest integer among the arguments, including keyword arguments.
fn largest_number(args: &[View]) -> usize {
    let number = |value: &View| value.is_number().then(|| value.as_usize()).flatten();
    let named = |value: &View| {
        let names = value.is_kwargs().then(|| value.try_iter().ok()).flatten();
        names.into_iter().flatten().filter_map(|name| number(&value.get_item(&name).ok()?)).max()
    };
    args.iter().skip(1).filter_map(|value| number(value).max(named(value))).max().unwrap_or_default()
}

/// Returns an argument by position or name.
fn argument(args: &[View], position: usize, name: &str) -> Option<View> {
    let by_position = args.get(position).filter(|value| !value.is_kwargs()).cloned();
    let by_name = || args.last().filter(|value| value.is_kwargs())?.get_attr(name).ok();
    by_position.or_else(by_name).filter(|value| !value.is_undefined() && !value.is_none())
}

fn whole(args: &[View]) -> Result<usize, Error> {
    text_size(&first(args))
}

/// Upper and lower case may have more bytes.
fn cased(args: &[View]) -> Result<usize, Error> {
    let value = first(args);
    let bytes = text_size(&value)?;
    let text = text_of(&value);
    let grown = text.chars().filter(|letter| !letter.is_ascii()).map(|letter| {
        let upper = letter.to_uppercase().map(char::len_utf8).sum::<usize>();
        upper.max(letter.to_lowercase().map(char::len_utf8).sum()).saturating_sub(letter.len_utf8())
    });
    Ok(bytes.saturating_add(grown.sum::<usize>()))
}

/// The result is small, but the arguments are read, and errors quote them.
fn read(args: &[View]) -> Result<usize, Error> {
    let mut bytes = 0_usize;
    for value in args {
        bytes = bytes.saturating_add(text_size(value)?);
    }
    // Otherwise brief work could read a long text many times.
    if meter::is_brief() { meter::make(bytes).map(|()| 0) } else { Ok(bytes) }
}

fn items(args: &[View]) -> Result<usize, Error> {
    Ok(first(args).len().unwrap_or_default().saturating_mul(ITEM))
}

fn grouped(args: &[View]) -> Result<usize, Error> {
    let count = args.get(1).and_then(View::as_usize).unwrap_or_default();
    Ok(items(args)?.saturating_add(count.saturating_mul(ITEM)))
}

fn escaped(args: &[View]) -> Result<usize, Error> {
    escaped_size(&first(args))
}

fn replaced(args: &[View]) -> Result<usize, Error> {
    let text = first(args);
    let whole = text_size(&text)?;
    let (Some(from), Some(to)) = (args.get(1), args.get(2)) else { return Ok(whole) };
    text_size(from)?;
    let found = text_of(&text).matches(&*text_of(from)).count();
    Ok(whole.saturating_add(found.saturating_mul(text_size(to)?)))
}

fn joined(args: &[View]) -> Result<usize, Error> {
    let value = first(args);
    let between = argument(args, 1, "d").map_or(Ok(0), |value| text_size(&value))?;
    if let Some(text) = value.as_str() {
        return Ok(text.len().saturating_add(text.chars().count().saturating_mul(between)));
    }
    let attribute = argument(args, 2, "attribute");
    let attribute = attribute.as_ref().and_then(|value| value.as_str());
    let (most, mut bytes) = (meter::room(), 0_usize);
    for item in value.try_iter().into_iter().flatten() {
        let item = attribute.map_or_else(|| item.clone(), |path| member(&item, path));
        bytes = bytes.saturating_add(text_size(&item)?).saturating_add(between);
        if bytes > most.saturating_add(between) {
            return Err(too_long());
        }
    }
    Ok(bytes.saturating_sub(between))
}

/// Returns an item's member by its dotted path.
fn member(item: &View, path: &str) -> View {
    let step = |value: View, part: &str| match part.parse() {
        Ok(index) => value.get_item_by_index(index).ok(),
        Err(_) => value.get_attr(part).ok(),
    };
    path.split('.').try_fold(item.clone(), step).unwrap_or_default()
}

fn split(args: &[View]) -> Result<usize, Error> {
    let value = first(args);
    let Some(text) = value.as_str() else { return text_size(&value) };
    let by = argument(args, 1, "split");
    let pieces = match by.as_ref().and_then(|by| by.as_str()) {
        Some(by) => count_up_to_room(text.matches(by)),
        None => count_up_to_room(text.split_whitespace()),
    };
    Ok(text.len().saturating_add(pieces.saturating_mul(ITEM)))
}

/// Counts items as long as they fit into memory.
fn count_up_to_room<T>(all: impl Iterator<Item = T>) -> usize {
    all.take((meter::room() / ITEM).saturating_add(1)).count()
}

fn lines(args: &[View]) -> Result<usize, Error> {
    let value = first(args);
    let lines = value.as_str().map_or(0, |text| count_up_to_room(text.lines()));
    Ok(text_size(&value)?.saturating_add(lines.saturating_mul(ITEM)))
}

/// A sum of texts or lists copies the intermediate result for each entry.
fn summed(args: &[View]) -> Result<usize, Error> {
    let value = first(args);
    let mut others = value.try_iter()?.filter(|item| !item.is_number());
    if others.next().is_some()
        && meter::size(&value)?.saturating_mul(value.len().unwrap_or_default()) > COPIED
    {
        return Err(invalid("the sum of so many texts or lists takes too long; use join"));
    }
    Ok(0)
}

fn indented(args: &[View]) -> Result<usize, Error> {
    let value = first(args);
    let width = narrow(largest_number(args))?.max(4);
    let lines = value.as_str().map_or(0, |text| text.lines().count());
    Ok(text_size(&value)?.saturating_add(lines.saturating_add(1).saturating_mul(width)))
}

fn narrow(width: usize) -> Result<usize, Error> {
    if width > WIDEST {
        return Err(invalid(format!("{width} is larger than the largest width, {WIDEST}")));
    }
    Ok(width)
}

/// JSON; with an indentation, each part is on its own line.
fn json(args: &[View]) -> Result<usize, Error> {
    let value = first(args);
    let width = narrow(largest_number(args))?;
    let bytes = json_size(&value)?;
    if args.len() < 2 {
        return Ok(bytes);
    }
    // `true` is a width of 2; a line has an end.
    let width = width.max(2).saturating_add(1);
    Ok(bytes.saturating_add(indentation(&value, 1).saturating_mul(width)))
}

fn printed(args: &[View]) -> Result<usize, Error> {
    debug_size(&first(args))
}

/// Sums the depths of a value's parts.
fn indentation(value: &View, depth: usize) -> usize {
    let is_map = value.kind() == ValueKind::Map;
    if !is_map && !matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable) {
        return 0;
    }
    let parts = value.try_iter().into_iter().flatten();
    let inner = parts.map(|part| {
        let part = if is_map { value.get_item(&part).unwrap_or_default() } else { part };
        depth.saturating_add(indentation(&part, depth.saturating_add(1)))
    });
    inner.fold(depth, usize::saturating_add)
}

/// Sums the widths in a format: numbers in its text or its arguments. A safe format escapes its arguments.
fn formatted(args: &[View]) -> Result<usize, Error> {
    let value = first(args);
    let Some(text) = value.as_str() else { return Ok(0) };
    let mut widths = 0_usize;
    for digits in text.split(|letter: char| !letter.is_ascii_digit()).filter(|digits| !digits.is_empty()) {
        widths = widths.saturating_add(narrow(digits.parse().unwrap_or(usize::MAX))?);
    }
    let asked = if text.contains('*') { narrow(largest_number(args))? } else { 0 };
    let mut longest = asked.max(NUMBER);
    for value in args.iter().skip(1) {
        longest = longest.max(text_size(value)?);
    }
    let longest = longest.saturating_mul(if value.is_safe() { ESCAPE } else { 1 });
    let holes = text.bytes().filter(|byte| *byte == b'%').count();
    Ok(text.len().saturating_add(widths).saturating_add(holes.saturating_mul(longest)))
}

#[cfg(test)]
mod limit_tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::template::{ENVIRONMENT, evaluate, functions};

    /// The names of filters or tests, which only the debug format lists.
    fn names(environment: &Environment<'_>, kind: &str) -> BTreeSet<String> {
        let text = format!("{environment:?}");
        let (_, list) = text.split_once(&format!(" {kind}: [")).unwrap();
        let (list, _) = list.split_once(']').unwrap();
        list.split(", ").map(|name| name.trim_matches('"').to_owned()).collect()
    }

    #[test]
    fn every_filter_test_and_function_of_the_library_is_metered() {
        let (library, mut registered) = (Environment::new(), Environment::empty());
        add(&mut registered);
        let own = functions::FILTERS.map(str::to_owned);
        let filters: BTreeSet<String> = names(&library, "filters").into_iter().chain(own).collect();
        assert_eq!(names(&registered, "filters"), filters);
        assert_eq!(names(&registered, "tests"), names(&library, "tests"));
        // Calls are checked in the compiled program.
        let reviewed = ["debug", "dict", "namespace", "range"];
        assert_eq!(
            library.globals().map(|(name, _)| name).collect::<BTreeSet<_>>(),
            BTreeSet::from(reviewed)
        );
        assert_eq!(
            ENVIRONMENT.globals().map(|(name, _)| name).collect::<BTreeSet<_>>(),
            BTreeSet::from(["dict", "range"])
        );
    }

    #[test]
    fn every_filter_stops_when_the_work_is_cancelled() {
        for name in names(&ENVIRONMENT, "filters").into_iter().filter(|name| !name.starts_with('(')) {
            let work = || evaluate(&format!("x|{name}"), &View::from_pairs([("x", View::from("x"))]));
            let error = meter::fully(Arc::new(AtomicBool::new(true)), work).unwrap_err();
            assert!(error.message.ends_with("the template was stopped"), "{name}: {error}");
        }
    }

    #[test]
    fn brief_work_reads_a_long_text_once_only() {
        let scope = View::from_pairs([("x", View::from("x".repeat(100_000)))]);
        let once = meter::briefly(|| evaluate("x|sha256", &scope));
        assert!(once.is_some_and(|digest| digest.is_ok()));
        assert!(meter::briefly(|| evaluate("(x|sha256) ~ (x|sha256)", &scope)).is_none());
    }

    #[test]
    fn growing_filters_are_estimated() {
        let letters = "\u{390}".repeat(1 << 20);
        let grown = letters.to_uppercase().len();
        assert!(cased(&[View::from(letters)]).unwrap() >= grown);
        let items = View::from(vec![View::from_pairs([("a", View::from(1e300))]); 100]);
        let named = View::from(minijinja::value::Kwargs::from_iter([("attribute", View::from("a"))]));
        assert!(joined(&[items, named]).unwrap() > 30_000);
        assert!(replaced(&[View::from("xx"), View::from("x"), View::from(vec![1; 9])]).unwrap() > 50);
    }
}
