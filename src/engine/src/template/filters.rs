//! The filters, tests and functions of the template language, with metering.

use minijinja::value::{Rest, ValueKind, ValueOrKwargs};
use minijinja::{Environment, Error, State, Value as View, filters, functions, tests};

use super::functions::invalid;
use crate::meter;

/// Bytes charged per list item.
const ITEM: usize = 24;
/// Maximum width or indentation.
const WIDEST: usize = 9_999;
/// Maximum bytes that a sum of texts or lists may copy.
const COPIED: usize = 64 << 20;

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
enum Limit {
    /// Its result is small or a part of its arguments.
    Small,
    /// Its result is counted.
    Counted(Estimate),
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
    use Limit::{Counted, Small};
    filters!(environment, Small,
        "safe" => filters::safe, "length" => filters::length, "count" => filters::length,
        "default" => filters::default, "d" => filters::default, "round" => filters::round, "abs" => filters::abs,
        "int" => filters::int, "float" => filters::float, "attr" => filters::attr, "first" => filters::first,
        "last" => filters::last, "min" => filters::min, "max" => filters::max, "bool" => filters::bool,
    );
    filters!(environment, Counted(whole),
        "lower" => filters::lower, "upper" => filters::upper, "title" => filters::title,
        "capitalize" => filters::capitalize, "trim" => filters::trim,
        "string" => filters::string,
    );
    filters!(environment, Counted(items),
        "dictsort" => filters::dictsort, "items" => filters::items, "reverse" => filters::reverse,
        "sort" => filters::sort, "list" => filters::list, "select" => filters::select, "reject" => filters::reject,
        "selectattr" => filters::selectattr, "rejectattr" => filters::rejectattr, "map" => filters::map,
        "groupby" => filters::groupby, "unique" => filters::unique, "chain" => filters::chain, "zip" => filters::zip,
    );
    filters!(environment, Counted(grouped), "batch" => filters::batch, "slice" => filters::slice);
    filters!(environment, Counted(escaped), "escape" => filters::escape, "e" => filters::escape);
    filters!(environment, Counted(replaced), "replace" => filters::replace);
    filters!(environment, Counted(joined), "join" => filters::join);
    filters!(environment, Counted(split), "split" => filters::split);
    filters!(environment, Counted(lines), "lines" => filters::lines);
    filters!(environment, Counted(summed), "sum" => filters::sum);
    filters!(environment, Counted(indented), "indent" => filters::indent);
    filters!(environment, Counted(written), "tojson" => filters::tojson, "pprint" => filters::pprint);
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

fn add_filter(environment: &mut Environment<'_>, name: &'static str, filter: View, limit: Limit) {
    environment.add_filter(name, move |state: &mut State<'_, '_>, args: Rest<ValueOrKwargs>| {
        let args = args.into_values();
        match limit {
            Limit::Small => {
                meter::step()?;
                filter.call(state, &args)
            }
            Limit::Counted(estimate) => {
                meter::fits(estimate(&args)?)?;
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

/// Returns a value's size as text, in bytes.
fn size(value: &View) -> Result<usize, Error> {
    match value.as_str() {
        Some(text) => Ok(text.len()),
        None => meter::size(value),
    }
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

/// Returns a text argument by position or name.
fn text_argument(args: &[View], position: usize, name: &str) -> Option<String> {
    let value = args.get(position)?;
    let value = if value.is_kwargs() { value.get_attr(name).ok()? } else { value.clone() };
    value.as_str().map(str::to_owned)
}

fn whole(args: &[View]) -> Result<usize, Error> {
    size(&first(args))
}

fn items(args: &[View]) -> Result<usize, Error> {
    Ok(first(args).len().unwrap_or_default().saturating_mul(ITEM))
}

fn grouped(args: &[View]) -> Result<usize, Error> {
    let count = args.get(1).and_then(View::as_usize).unwrap_or_default();
    Ok(items(args)?.saturating_add(count.saturating_mul(ITEM)))
}

fn escaped(args: &[View]) -> Result<usize, Error> {
    let value = first(args);
    let marks =
        value.as_str().map_or(0, |text| text.bytes().filter(|byte| b"<>&\"'/".contains(byte)).count());
    Ok(size(&value)?.saturating_add(marks.saturating_mul(5)))
}

fn replaced(args: &[View]) -> Result<usize, Error> {
    let text = first(args);
    let whole = size(&text)?;
    let (Some(from), Some(to)) = (args.get(1), args.get(2)) else { return Ok(whole) };
    let from = from.as_str().map(str::to_owned).unwrap_or_else(|| from.to_string());
    let text = text.as_str().map(str::to_owned).unwrap_or_else(|| text.to_string());
    Ok(whole.saturating_add(text.matches(&from).count().saturating_mul(size(to)?)))
}

fn joined(args: &[View]) -> Result<usize, Error> {
    let value = first(args);
    let between = text_argument(args, 1, "d").map_or(0, |text| text.len());
    Ok(size(&value)?.saturating_add(value.len().unwrap_or_default().saturating_mul(between)))
}

fn split(args: &[View]) -> Result<usize, Error> {
    let value = first(args);
    let Some(text) = value.as_str() else { return size(&value) };
    let pieces = match text_argument(args, 1, "split") {
        Some(by) => text.matches(&by).count(),
        None => text.split_whitespace().count(),
    };
    Ok(text.len().saturating_add(pieces.saturating_mul(ITEM)))
}

fn lines(args: &[View]) -> Result<usize, Error> {
    let value = first(args);
    let lines = value.as_str().map_or(0, |text| text.lines().count());
    Ok(size(&value)?.saturating_add(lines.saturating_mul(ITEM)))
}

/// A sum of texts or lists copies the intermediate result for each entry.
fn summed(args: &[View]) -> Result<usize, Error> {
    let value = first(args);
    let mut others = value.try_iter()?.filter(|item| !item.is_number());
    if others.next().is_some() && size(&value)?.saturating_mul(value.len().unwrap_or_default()) > COPIED {
        return Err(invalid("the sum of so many texts or lists takes too long; use join"));
    }
    Ok(0)
}

fn indented(args: &[View]) -> Result<usize, Error> {
    let value = first(args);
    let width = narrow(largest_number(args))?.max(4);
    let lines = value.as_str().map_or(0, |text| text.lines().count());
    Ok(size(&value)?.saturating_add(lines.saturating_add(1).saturating_mul(width)))
}

fn narrow(width: usize) -> Result<usize, Error> {
    if width > WIDEST {
        return Err(invalid(format!("{width} is larger than the largest width, {WIDEST}")));
    }
    Ok(width)
}

/// JSON and other structured text: each part on its own line.
fn written(args: &[View]) -> Result<usize, Error> {
    let value = first(args);
    let width = narrow(largest_number(args))?.max(4);
    Ok(size(&value)?.saturating_add(indentation(&value, 1).saturating_mul(width)))
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

/// Sums the widths in a format: numbers in its text or its arguments.
fn formatted(args: &[View]) -> Result<usize, Error> {
    let value = first(args);
    let Some(text) = value.as_str() else { return Ok(0) };
    let mut widths = 0_usize;
    for digits in text.split(|letter: char| !letter.is_ascii_digit()).filter(|digits| !digits.is_empty()) {
        widths = widths.saturating_add(narrow(digits.parse().unwrap_or(usize::MAX))?);
    }
    let asked = if text.contains('*') { narrow(largest_number(args))? } else { 0 };
    let mut longest = asked;
    for value in args.iter().skip(1) {
        longest = longest.max(size(value)?);
    }
    let holes = text.bytes().filter(|byte| *byte == b'%').count();
    Ok(text.len().saturating_add(widths).saturating_add(holes.saturating_mul(longest)))
}
