//! Numbers as Redis reads and writes them.

/// A whole number as Redis takes it: decimal, no blanks, no plus sign, no leading zeros.
pub fn integer(text: &[u8]) -> Option<i64> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    match digits {
        [b'0'] => return (text.len() == 1).then_some(0),
        [b'1'..=b'9', ..] if digits.len() <= 19 => {}
        _ => return None,
    }
    let mut value: i128 = 0;
    for digit in digits {
        value = value * 10 + i128::from(digit.checked_sub(b'0').filter(|it| *it < 10)?);
    }
    i64::try_from(if digits.len() < text.len() { -value } else { value }).ok()
}

/// A number as C reads it: decimal or hexadecimal, infinities that are written as such, no blanks;
/// never "not a number", nor one that is too large or too small for a double.
pub fn double(text: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(text).ok()?;
    let (sign, unsigned) = match text.as_bytes().first()? {
        b'-' => (-1.0, &text[1..]),
        b'+' => (1.0, &text[1..]),
        _ => (1.0, text),
    };
    let lower = unsigned.to_ascii_lowercase();
    if let Some(digits) = lower.strip_prefix("0x") {
        return hexadecimal(digits).map(|it| sign * it);
    }
    match lower.as_str() {
        "inf" | "infinity" => Some(sign * f64::INFINITY),
        _ if lower.starts_with(|it: char| it.is_ascii_digit() || it == '.') => {
            let mantissa = lower.split('e').next().unwrap_or_default();
            let is_zero = !mantissa.contains(|it: char| matches!(it, '1'..='9'));
            in_range(lower.parse().ok()?, is_zero).map(|it| sign * it)
        }
        _ => None,
    }
}

/// A number, unless it was too large or too small: then it has become infinite, or zero.
fn in_range(value: f64, is_zero: bool) -> Option<f64> {
    (value.is_finite() && (value == 0.0) == is_zero).then_some(value)
}

/// A power of two with this exponent is a number, and one over it, too.
const EXPONENT_STEP: i32 = 512;

fn hexadecimal(digits: &str) -> Option<f64> {
    let (mantissa, exponent) = match digits.split_once('p') {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (digits, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut value = 0.0;
    for digit in whole.chars() {
        value = value * 16.0 + f64::from(digit.to_digit(16)?);
    }
    let mut share = 1.0 / 16.0;
    for digit in fraction.chars() {
        value += share * f64::from(digit.to_digit(16)?);
        share /= 16.0;
    }
    let (is_zero, mut exponent) = (value == 0.0, exponent);
    while exponent != 0 && value != 0.0 && value.is_finite() {
        let step = exponent.clamp(-EXPONENT_STEP, EXPONENT_STEP);
        value *= 2_f64.powi(step);
        exponent -= step;
    }
    in_range(value, is_zero)
}

/// A number with at most 17 digits that count, as C's `%.17g` writes it.
pub fn double_text(value: f64) -> String {
    if value.is_infinite() {
        return if value > 0.0 { "inf".to_owned() } else { "-inf".to_owned() };
    }
    if value.is_nan() {
        return "nan".to_owned();
    }
    if value == value.trunc() && value.abs() < 1e17 {
        let sign = if value == 0.0 && value.is_sign_negative() { "-" } else { "" };
        return format!("{sign}{}", value as i64);
    }
    let scientific = format!("{value:.16e}");
    let (mantissa, exponent) = scientific.split_once('e').expect("it is written so");
    let exponent: i32 = exponent.parse().expect("it is written so");
    let trimmed = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    if (-4..17).contains(&exponent) {
        return trimmed(&format!("{value:.*}", (16 - exponent) as usize));
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", trimmed(mantissa), exponent.abs())
}

/// The sum of two numbers, exactly where both are decimal and not too long; then as text without
/// needless zeros. `None`: not a number, or infinite.
pub fn decimal_sum(left: &[u8], right: &[u8]) -> Option<String> {
    let exact = decimal(left).zip(decimal(right)).and_then(|(left, right)| {
        let scale = left.1.max(right.1);
        let widen = |(value, own): (i128, u32)| value.checked_mul(10_i128.pow(scale - own));
        let sum = widen(left)?.checked_add(widen(right)?)?;
        Some(decimal_text(sum, scale)).filter(|it| it.len() <= 19)
    });
    exact.or_else(|| {
        let sum = double(left)? + double(right)?;
        sum.is_finite().then(|| format!("{sum}"))
    })
}

/// A decimal number as a whole one and how many of its digits are behind the point.
fn decimal(text: &[u8]) -> Option<(i128, u32)> {
    let text = std::str::from_utf8(text).ok()?;
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let plain = |it: &str| it.bytes().all(|it| it.is_ascii_digit());
    let unsigned = whole.strip_prefix('-').unwrap_or(whole);
    if text.len() > 20 || unsigned.is_empty() || !plain(unsigned) || !plain(fraction) {
        return None;
    }
    Some((format!("{whole}{fraction}").parse().ok()?, fraction.len() as u32))
}

fn decimal_text(value: i128, scale: u32) -> String {
    let sign = if value < 0 { "-" } else { "" };
    let digits = format!("{:0width$}", value.unsigned_abs(), width = scale as usize + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale as usize);
    let fraction = fraction.trim_end_matches('0');
    let point = if fraction.is_empty() { "" } else { "." };
    format!("{sign}{whole}{point}{fraction}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_are_taken_strictly() {
        for (text, expected) in [
            ("0", Some(0)),
            ("-1", Some(-1)),
            ("9223372036854775807", Some(i64::MAX)),
            ("-9223372036854775808", Some(i64::MIN)),
            ("9223372036854775808", None),
            ("01", None),
            ("-0", None),
            ("+1", None),
            (" 1", None),
            ("1 ", None),
            ("", None),
            ("-", None),
            ("1a", None),
        ] {
            assert_eq!(integer(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn doubles_are_read_and_written_as_c_does() {
        for (text, expected) in [
            ("1.5", Some(1.5)),
            ("-inf", Some(f64::NEG_INFINITY)),
            ("+inf", Some(f64::INFINITY)),
            ("0x0p0", Some(0.0)),
            ("0x10", Some(16.0)),
            ("1e3", Some(1000.0)),
            (".5", Some(0.5)),
            ("0x0p2000", Some(0.0)),
            ("0x1.8p1", Some(3.0)),
            ("0x1p1023", Some(2_f64.powi(1023))),
            ("0x1p-1074", Some(f64::from_bits(1))),
            ("0x1p2000", None),
            ("0x1p-2000", None),
            ("1e400", None),
            ("-1e400", None),
            ("1e-400", None),
            ("0e400", Some(0.0)),
            ("nan", None),
            ("1 ", None),
            ("abc", None),
            ("", None),
        ] {
            assert_eq!(double(text.as_bytes()), expected, "{text}");
        }
        for (value, expected) in [
            (1.1, "1.1000000000000001"),
            (3.0, "3"),
            (0.5, "0.5"),
            (1e20, "1e+20"),
            (1e-5, "1.0000000000000001e-05"),
            (-2.25, "-2.25"),
            (1e16, "10000000000000000"),
        ] {
            assert_eq!(double_text(value), expected);
        }
    }

    #[test]
    fn decimal_sums_are_exact() {
        for (left, right, expected) in [
            ("0.1", "0.2", "0.3"),
            ("3", "1.1", "4.1"),
            ("3.0", "1", "4"),
            ("-1.5", "1.5", "0"),
            ("10.50", "0.1", "10.6"),
            ("5.0e3", "200", "5200"),
            ("-0.05", "0.01", "-0.04"),
        ] {
            let found = decimal_sum(left.as_bytes(), right.as_bytes());
            assert_eq!(found.as_deref(), Some(expected), "{left} + {right}");
        }
        assert_eq!(decimal_sum(b"inf", b"1"), None);
    }
}
