//! Numbers as text, as C's `%.14g` and `%.17g` write them.

/// A number with at most so many digits that count.
pub(crate) fn general(value: f64, digits: usize) -> String {
    if value.is_infinite() {
        return if value > 0.0 { "inf".to_owned() } else { "-inf".to_owned() };
    }
    if value.is_nan() {
        return if value.is_sign_negative() { "-nan".to_owned() } else { "nan".to_owned() };
    }
    if value == 0.0 {
        return if value.is_sign_negative() { "-0".to_owned() } else { "0".to_owned() };
    }
    let digits = digits.max(1);
    let scientific = format!("{value:.*e}", digits - 1);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trimmed = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    if exponent >= -4 && i64::from(exponent) < digits as i64 {
        let behind = (digits as i64 - 1 - i64::from(exponent)) as usize;
        return trimmed(&format!("{value:.behind$}"));
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", trimmed(mantissa), exponent.abs())
}

#[cfg(test)]
mod tests {
    use super::general;

    #[test]
    fn numbers_are_written_as_c_does() {
        for (value, digits, expected) in [
            (0.1, 17, "0.10000000000000001"),
            (0.1, 14, "0.1"),
            (9_007_199_254_740_991.0, 17, "9007199254740991"),
            (1e20, 17, "1e+20"),
            (-1099511627776.0, 14, "-1099511627776"),
            (0.00001, 14, "1e-05"),
            (1e15, 14, "1e+15"),
            (f64::INFINITY, 14, "inf"),
            (100.5, 17, "100.5"),
            (-0.0, 14, "-0"),
        ] {
            assert_eq!(general(value, digits), expected);
        }
    }
}
