//! Rates of two sides in rounds, what they come to, and how that is shown.

use serde_json::{Value, json};

/// The middle of some numbers, the smallest and the largest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RoundFigures {
    pub median: f64,
    pub least: f64,
    pub most: f64,
}

impl RoundFigures {
    /// Of some numbers, at least one. Between the two in the middle is the middle of an even count.
    fn of(mut numbers: Vec<f64>) -> RoundFigures {
        numbers.sort_by(f64::total_cmp);
        let (least, most) = (numbers[0], numbers[numbers.len() - 1]);
        let (below, above) = (numbers[(numbers.len() - 1) / 2], numbers[numbers.len() / 2]);
        RoundFigures { median: below.midpoint(above), least, most }
    }

    fn json(&self) -> Value {
        json!({ "median": self.median, "min": self.least, "max": self.most })
    }
}

/// What so many threads did on both sides, a rate a round.
#[derive(Clone, Debug)]
pub struct ThreadRow {
    threads: usize,
    muesli: Vec<f64>,
    store: Vec<f64>,
}

impl ThreadRow {
    /// From the rates of at least one round, those of Muesli first in each.
    pub fn new(threads: usize, rounds: &[(f64, f64)]) -> ThreadRow {
        let (muesli, store) = rounds.iter().copied().unzip();
        ThreadRow { threads, muesli, store }
    }

    /// Muesli's rate over the store's of the same round.
    fn ratios(&self) -> Vec<f64> {
        self.muesli.iter().zip(&self.store).map(|(muesli, store)| muesli / store).collect()
    }

    /// A line of the table.
    pub fn text(&self) -> String {
        let rates = |rates: &[f64]| {
            let RoundFigures { median, least, most } = RoundFigures::of(rates.to_vec());
            let ends = format!("({} to {})", grouped(least), grouped(most));
            format!("{:>11} {ends:<26}", grouped(median))
        };
        let RoundFigures { median, least, most } = RoundFigures::of(self.ratios());
        format!(
            "{:>7}  {}{}{median:>6.2} ({least:.2} to {most:.2})",
            self.threads,
            rates(&self.muesli),
            rates(&self.store)
        )
    }

    /// The same for programs, with the rate of each round.
    pub fn json(&self) -> Value {
        let side = |rates: &[f64]| {
            let mut side = RoundFigures::of(rates.to_vec()).json();
            side["rounds"] = json!(rates);
            side
        };
        json!({
            "threads": self.threads,
            "muesli": side(&self.muesli),
            "store": side(&self.store),
            "ratio": RoundFigures::of(self.ratios()).json(),
        })
    }
}

/// The head of the table.
pub fn head(store: &str) -> String {
    format!("{:>7}  {:>11} {:<26}{store:>11} {:<26} ratio", "threads", "muesli", "", "")
}

/// A number without what is behind the point, its digits in groups of three.
fn grouped(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_of_one_round() {
        let row = ThreadRow::new(2, &[(30.0, 10.0), (20.0, 20.0), (40.0, 20.0)]);
        let ratios = RoundFigures::of(row.ratios());
        // Not 30 over 20, which is what the medians of the rates come to.
        assert_eq!(ratios, RoundFigures { median: 2.0, least: 1.0, most: 3.0 });
        let json = row.json();
        assert_eq!(json["muesli"]["median"], 30.0);
        assert_eq!(json["store"]["rounds"], json!([10.0, 20.0, 20.0]));
        assert_eq!((&json["ratio"]["min"], &json["threads"]), (&json!(1.0), &json!(2)));
    }

    #[test]
    fn the_middle_of_an_even_count_is_between_two() {
        let figures = RoundFigures::of(vec![4.0, 1.0, 2.0, 8.0]);
        assert_eq!(figures, RoundFigures { median: 3.0, least: 1.0, most: 8.0 });
        let one = RoundFigures::of(vec![5.0]);
        assert_eq!(one, RoundFigures { median: 5.0, least: 5.0, most: 5.0 });
    }

    #[test]
    fn the_table_has_columns() {
        let row = ThreadRow::new(16, &[(1_234_567.8, 999.0), (400.0, 12_345.0)]);
        let (head, text) = (head("redb"), row.text());
        assert_eq!(
            text,
            "     16      617,484 (400 to 1,234,568)              6,672 (999 to 12,345)           \
             617.92 (0.03 to 1235.80)"
        );
        assert_eq!(head.find("redb").map(|at| at + 4), text.find(" (999"));
        assert_eq!(head.find("muesli").map(|at| at + 6), text.find(" (400"));
    }
}
