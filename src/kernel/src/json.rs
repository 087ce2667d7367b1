//! JSON with exact numbers. `serde_json` keeps 64-bit integers and doubles, and silently rounds every other number.

use serde::de::DeserializeOwned;

/// Significant digits that every normal double keeps.
const ALWAYS_KEPT: usize = 15;
/// Maximum significant digits in a double's exact value.
const LONGEST: usize = 767;

/// The reader for which numbers must keep their value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Numbers {
    /// 64-bit integers and doubles. A fraction is accepted if its double has the written digits: most JSON writers
    /// write a double with up to 17 digits.
    Values,
    /// Like [`Self::Values`], but fractions must keep their decimal value: they may come from a decimal type.
    Decimals,
    /// Doubles only, as in JavaScript.
    Doubles,
}

/// A number that reading would round.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the number {0} would be rounded; send it as a string")]
pub struct RoundedNumber(String);

impl RoundedNumber {
    /// The number, shortened if very long.
    #[must_use]
    pub fn number(&self) -> &str {
        &self.0
    }
}

/// A JSON parse error.
#[derive(Debug, thiserror::Error)]
pub enum JsonError {
    /// The text is not JSON for this type.
    #[error(transparent)]
    Syntax(#[from] serde_json::Error),
    /// A number would be rounded.
    #[error(transparent)]
    Rounded(#[from] RoundedNumber),
}

/// Parses JSON and rejects numbers that would be rounded.
///
/// # Errors
/// [`JsonError`].
pub fn read<T: DeserializeOwned>(text: &str, numbers: Numbers) -> Result<T, JsonError> {
    let value = serde_json::from_str(text)?;
    check_numbers(text.as_bytes(), numbers)?;
    Ok(value)
}

/// Checks the numbers in a valid JSON text.
///
/// # Errors
/// The first number that would be rounded.
pub fn check_numbers(text: &[u8], numbers: Numbers) -> Result<(), RoundedNumber> {
    const SHOWN: usize = 60;
    let mut rest = text.iter().enumerate();
    while let Some((start, byte)) = rest.next() {
        match byte {
            b'"' => skip_string(&mut rest),
            b'-' | b'0'..=b'9' => {
                let after = text.get(start..).unwrap_or_default();
                let length = after.iter().take_while(|byte| is_of_number(**byte)).count();
                let token =
                    after.get(..length).and_then(|token| std::str::from_utf8(token).ok()).unwrap_or_default();
                if !is_kept(token, numbers) {
                    let end = if token.len() > SHOWN { "…" } else { "" };
                    return Err(RoundedNumber(format!("{}{end}", token.get(..SHOWN).unwrap_or(token))));
                }
                if let Some(more) = length.checked_sub(2) {
                    rest.nth(more);
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Skips past the closing quote.
fn skip_string<'a>(rest: &mut impl Iterator<Item = (usize, &'a u8)>) {
    while let Some((_, byte)) = rest.next() {
        match byte {
            b'\\' => _ = rest.next(),
            b'"' => return,
            _ => {}
        }
    }
}

fn is_of_number(byte: u8) -> bool {
    byte.is_ascii_digit() || matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E')
}

fn is_kept(token: &str, numbers: Numbers) -> bool {
    let is_scaled = token.contains(['e', 'E']);
    if token.len() <= ALWAYS_KEPT && !is_scaled {
        return true;
    }
    let is_integer = !is_scaled && !token.contains('.');
    if is_integer
        && numbers != Numbers::Doubles
        && (token.parse::<i64>().is_ok() || token.parse::<u64>().is_ok())
    {
        return true;
    }
    let (Ok(double), Some(decimal)) = (token.parse::<f64>(), Decimal::read(token)) else { return false };
    let has_precision = double.is_normal() || decimal.digits.is_empty();
    if has_precision && decimal.digits.len() <= ALWAYS_KEPT {
        return true;
    }
    if Decimal::read(&format!("{double:e}")).is_some_and(|kept| kept == decimal) {
        return true;
    }
    let last = decimal.digits.len().saturating_sub(1);
    numbers == Numbers::Values
        && !is_integer
        && last < LONGEST
        && Decimal::read(&format!("{double:.last$e}")).is_some_and(|kept| kept == decimal)
}

/// The absolute value of a number.
#[derive(PartialEq)]
struct Decimal {
    /// The digits without zeros at both ends; empty for zero.
    digits: String,
    /// The first digit's power of ten.
    exponent: i64,
}

impl Decimal {
    fn read(number: &str) -> Option<Self> {
        let number = number.trim_start_matches('-');
        let (mantissa, scale) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all = format!("{whole}{fraction}");
        let digits = all.trim_start_matches('0');
        let zeros = i64::try_from(all.len() - digits.len()).ok()?;
        let exponent = i64::try_from(whole.len()).ok()? - 1 - zeros;
        let exponent = exponent.checked_add(scale.trim_start_matches('+').parse().ok()?)?;
        let digits = digits.trim_end_matches('0');
        Some(Self { digits: digits.to_owned(), exponent: if digits.is_empty() { 0 } else { exponent } })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn is_exact(numbers: Numbers, token: &str) -> bool {
        check_numbers(
            format!(r#"{{"a": ["-1e999 \" 12345678901234567890123", {token}]}}"#).as_bytes(),
            numbers,
        )
        .is_ok()
    }

    #[test]
    fn numbers_that_would_be_rounded_are_named() {
        use Numbers::{Decimals, Doubles, Values};
        for (token, values, decimals, doubles) in [
            ("0", true, true, true),
            ("-0.0", true, true, true),
            ("0.1", true, true, true),
            ("1.10", true, true, true),
            ("1e2", true, true, true),
            ("1E+300", true, true, true),
            ("1e-400", false, false, false),
            ("9007199254740992", true, true, true),
            ("9007199254740993", true, true, false),
            ("1152921504606846976", true, true, false),
            ("-9223372036854775808", true, true, false),
            ("18446744073709551615", true, true, false),
            ("18446744073709551616", false, false, false),
            ("100000000000000000000", true, true, true),
            ("123456789012345678901", false, false, false),
            ("0.30000000000000004", true, true, true),
            ("0.10000000000000001", true, false, false),
            ("0.1234567890123456789", false, false, false),
            ("12345678901234.567", false, false, false),
            ("12345678901234.566", true, true, true),
            ("1234567890123456.78", false, false, false),
            ("5e-324", true, true, true),
            ("1.2345678e-320", false, false, false),
        ] {
            let found = (is_exact(Values, token), is_exact(Decimals, token), is_exact(Doubles, token));
            assert_eq!(found, (values, decimals, doubles), "{token}");
        }
        let error = read::<Vec<f64>>("[1, 0.1234567890123456789]", Values).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the number 0.1234567890123456789 would be rounded; send it as a string"
        );
        assert!(matches!(read::<Vec<f64>>("[1", Values), Err(JsonError::Syntax(_))));
    }

    proptest! {
        #[test]
        fn doubles_and_integers_keep_their_spelling(double in any::<f64>(), whole in any::<i64>(), natural in any::<u64>()) {
            if double.is_finite() {
                for token in [format!("{double:e}"), format!("{double:.16e}"), format!("{double}")] {
                    prop_assert!(is_exact(Numbers::Values, &token), "{}", token);
                }
                let shortest = format!("{double:e}");
                prop_assert!(is_exact(Numbers::Decimals, &shortest));
            }
            prop_assert!(is_exact(Numbers::Decimals, &whole.to_string()) && is_exact(Numbers::Decimals, &natural.to_string()));
        }

        /// The parsed decimal equals the written one.
        #[test]
        fn accepted_decimals_keep_their_value(token in "-?[1-9][0-9]{0,24}(\\.[0-9]{1,24})?(e-?[0-9]{1,2})?") {
            if is_exact(Numbers::Decimals, &token) {
                let number: serde_json::Number = serde_json::from_str(&token).unwrap();
                prop_assert!(Decimal::read(&number.to_string()) == Decimal::read(&token), "{} became {}", token, number);
            }
        }
    }
}
