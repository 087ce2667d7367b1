//! Formats numbers for reports.

/// The text for a value that is not a number.
const UNKNOWN: &str = "–";
/// From here on, scientific notation is used, because such a value does not fit a score column.
const LARGE: f64 = 1e6;

/// Formats a value with `places` decimals and without its leading zero, such as `.64`.
pub(super) fn decimal(value: f64, places: usize) -> String {
    if !value.is_finite() {
        return UNKNOWN.to_owned();
    }
    if value.abs() >= LARGE {
        return format!("{value:.1e}");
    }
    let text = format!("{value:.places$}");
    let (sign, digits) = text.strip_prefix('-').map_or(("", text.as_str()), |digits| ("-", digits));
    let is_zero = digits.chars().all(|digit| "0.".contains(digit));
    let digits = digits.strip_prefix('0').filter(|rest| rest.starts_with('.')).unwrap_or(digits);
    format!("{}{digits}", if is_zero { "" } else { sign })
}

/// Formats a score, such as `.64`.
pub(super) fn score(value: f64) -> String {
    decimal(value, 2)
}

/// Formats a difference with its sign, such as `+.12`.
pub(super) fn signed(value: f64, places: usize) -> String {
    let text = decimal(value, places);
    let is_positive = value > 0.0 && text.chars().any(|digit| ('1'..='9').contains(&digit));
    if is_positive { format!("+{text}") } else { text }
}

/// Decimals: two, or three if two would show a non-zero value as 0.
pub(super) fn places(values: &[f64]) -> usize {
    if values.iter().any(|value| *value != 0.0 && value.abs() < 0.005) { 3 } else { 2 }
}

/// Formats an interval, such as `.04 to .20`.
pub(super) fn interval([low, high]: [f64; 2], places: usize) -> String {
    format!("{} to {}", decimal(low, places), decimal(high, places))
}

/// Formats a count with thousands separators, such as `1,240`.
pub(super) fn count(value: u64) -> String {
    let digits = value.to_string();
    let first = digits.len() % 3;
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place != 0 && place % 3 == first {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a count with its unit, such as `1 case` or `24 cases`.
pub(super) fn things(value: u64, thing: &str) -> String {
    format!("{} {thing}{}", count(value), if value == 1 { "" } else { "s" })
}

/// Formats US dollars; amounts below a dollar with four decimals.
pub(super) fn money(value: f64) -> String {
    if !value.is_finite() {
        return UNKNOWN.to_owned();
    }
    match value.abs() {
        0.0 => "0 USD".to_owned(),
        amount if amount < 0.0001 => "under 0.0001 USD".to_owned(),
        amount if amount < 1.0 => format!("{value:.4} USD"),
        amount if amount < 1e12 => format!("{value:.2} USD"),
        _ => format!("{value:.1e} USD"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_have_two_decimals_and_no_leading_zero() {
        let all = [0.0, 1.0, 0.5, 0.645, -0.04, -0.001, 12.3, f64::NAN, f64::INFINITY, -1e300];
        let texts = all.map(score);
        assert_eq!(texts, [".00", "1.00", ".50", ".65", "-.04", ".00", "12.30", "–", "–", "-1.0e300"]);
    }

    #[test]
    fn differences_have_a_sign_unless_they_are_zero() {
        assert_eq!(
            [0.12, -0.12, 0.0, 0.001, -0.001].map(|value| signed(value, 2)),
            ["+.12", "-.12", ".00", ".00", ".00"]
        );
        assert_eq!(signed(0.001, 3), "+.001");
    }

    #[test]
    fn an_interval_does_not_touch_zero_only_because_of_rounding() {
        assert_eq!(interval([0.04, 0.2], places(&[0.04, 0.2])), ".04 to .20");
        assert_eq!(interval([0.002, 0.2], places(&[0.002, 0.2])), ".002 to .200");
        assert_eq!(interval([0.0, 0.2], places(&[0.0, 0.2])), ".00 to .20");
    }

    #[test]
    fn counts_have_commas() {
        assert_eq!(
            [0, 12, 123, 1_234, 123_456, 1_234_567].map(count),
            ["0", "12", "123", "1,234", "123,456", "1,234,567"]
        );
        assert_eq!((things(1, "case"), things(1_000, "case")), ("1 case".into(), "1,000 cases".into()));
    }

    #[test]
    fn small_amounts_of_money_are_not_zero() {
        let texts = [0.0, 0.00001, 0.0042, 1.234, 1e300, f64::NAN].map(money);
        assert_eq!(texts, ["0 USD", "under 0.0001 USD", "0.0042 USD", "1.23 USD", "1.0e300 USD", "–"]);
    }
}
