//! Tables on the terminal.

use comfy_table::TableComponent::{
    HorizontalLines, LeftBorderIntersections, MiddleIntersections, RightBorderIntersections,
};
use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use comfy_table::{CellAlignment, Table};

/// A table with this header; all columns but the first are aligned to the right.
pub fn new(header: Vec<String>) -> Table {
    let mut table = Table::new();
    table.load_preset(UTF8_HORIZONTAL_ONLY);
    for line in
        [HorizontalLines, MiddleIntersections, LeftBorderIntersections, RightBorderIntersections]
    {
        table.remove_style(line);
    }
    let columns = header.len();
    table.set_header(header);
    for column in table.column_iter_mut().take(columns).skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// A whole number with its thousands apart.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

/// Microseconds, in the unit that reads best.
pub fn micros(micros: f64) -> String {
    match micros {
        micros if micros < 10.0 => format!("{micros:.2} µs"),
        micros if micros < 1_000.0 => format!("{micros:.0} µs"),
        micros if micros < 1_000_000.0 => format!("{:.2} ms", micros / 1e3),
        micros => format!("{:.2} s", micros / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        let texts: Vec<_> = [0, 999, 1_000, 12_345, 1_234_567].map(grouped).into();
        assert_eq!(texts, ["0", "999", "1 000", "12 345", "1 234 567"]);
        let texts: Vec<_> = [0.5, 12.0, 1_500.0, 2e6].map(micros).into();
        assert_eq!(texts, ["0.50 µs", "12 µs", "1.50 ms", "2.00 s"]);
    }
}
