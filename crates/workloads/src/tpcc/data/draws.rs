//! What TPC-C draws: uneven numbers, last names, strings.

use crate::chance::Chance;

/// The constants C of the uneven draws. That of last names is another one at the load than in the
/// run; the standard wants their difference from 65 to 119, and neither 96 nor 112.
const C_ITEM: u32 = 7911;
const C_CUSTOMER: u32 = 259;
const C_NAME_LOAD: u32 = 157;
const C_NAME_RUN: u32 = 223;

/// There are so many last names at most.
pub(in crate::tpcc) const NAMES: u32 = 1000;

/// A number from `low` to `high`, drawn unevenly (NURand): the bits of two draws are united, which
/// makes numbers with many bits set more likely.
fn uneven(a: u32, c: u32, [low, high]: [u32; 2], chance: &mut Chance) -> u32 {
    let united = chance.between(0, a.into()) | chance.between(low.into(), high.into());
    ((united + u64::from(c)) % u64::from(high - low + 1)) as u32 + low
}

/// The standard's A for a range of `count` numbers, so that at full size it is the standard's and
/// smaller ranges are as uneven: the next `2^n - 1` from one `parts`-th of the range on.
fn dealt(count: u32, parts: u32) -> u32 {
    (count / parts + 1).next_power_of_two() - 1
}

/// An item: A is 8191 for 100,000.
pub(in crate::tpcc) fn item(items: u32, chance: &mut Chance) -> u32 {
    uneven(dealt(items, 13), C_ITEM, [1, items], chance)
}

/// A customer: A is 1023 for 3,000.
pub(in crate::tpcc) fn customer(customers: u32, chance: &mut Chance) -> u32 {
    uneven(dealt(customers, 3), C_CUSTOMER, [1, customers], chance)
}

/// When a last name is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tpcc) enum When {
    Load,
    Run,
}

/// The number of one of so many last names: A is 255 for 1,000.
pub(in crate::tpcc) fn name(names: u32, when: When, chance: &mut Chance) -> u32 {
    let c = if when == When::Load { C_NAME_LOAD } else { C_NAME_RUN };
    uneven(dealt(names, 4), c, [0, names - 1], chance)
}

/// The last name of a number below 1,000: a syllable for each of its three digits.
pub(in crate::tpcc) fn last_name(number: u32) -> String {
    const SYLLABLES: [&str; 10] =
        ["BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"];
    let digits = [number / 100 % 10, number / 10 % 10, number % 10];
    digits.map(|digit| SYLLABLES[digit as usize]).concat()
}

/// Letters, digits and the like: so many as drawn from `least` to `most`.
pub(in crate::tpcc) fn text(least: usize, most: usize, chance: &mut Chance) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789 .";
    let length = chance.between(least as u64, most as u64) as usize;
    let mut text = String::with_capacity(length);
    // Ten letters from one draw: a load draws thousands of millions of them.
    while text.len() < length {
        let mut bits = chance.between(0, u64::MAX);
        for _ in 0..10.min(length - text.len()) {
            text.push(LETTERS[(bits & 63) as usize].into());
            bits >>= 6;
        }
    }
    text
}

/// So many digits.
pub(in crate::tpcc) fn digits(length: usize, chance: &mut Chance) -> String {
    (0..length).map(|_| char::from(b'0' + chance.below(10) as u8)).collect()
}

/// 26 to 50 characters; in a tenth of all draws ORIGINAL is somewhere among them.
pub(in crate::tpcc) fn data(chance: &mut Chance) -> String {
    const ORIGINAL: &str = "ORIGINAL";
    let mut text = text(26, 50, chance);
    if chance.percent(10.0) {
        let at = chance.below((text.len() - ORIGINAL.len() + 1) as u64) as usize;
        text.replace_range(at..at + ORIGINAL.len(), ORIGINAL);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_made_of_syllables() {
        assert_eq!(last_name(0), "BARBARBAR");
        assert_eq!(last_name(371), "PRICALLYOUGHT");
        assert_eq!(last_name(999), "EINGEINGEING");
    }

    #[test]
    fn spreads_are_the_standards_at_full_size() {
        assert_eq!([dealt(100_000, 13), dealt(3_000, 3), dealt(1_000, 4)], [8191, 1023, 255]);
        assert!((65..=119).contains(&(C_NAME_RUN - C_NAME_LOAD)));
    }

    #[test]
    fn draws_stay_in_their_ranges_and_are_uneven() {
        let mut chance = Chance::new(1, 0, 0);
        let mut counts = vec![0u32; 3001];
        for _ in 0..60_000 {
            counts[customer(3000, &mut chance) as usize] += 1;
            assert!((1..=7).contains(&item(7, &mut chance)));
            assert!(name(1000, When::Run, &mut chance) < 1000);
            assert_eq!(name(1, When::Load, &mut chance), 0);
        }
        assert_eq!(counts[0], 0);
        // With A = 1023 and C = 259 a draw of 2047 becomes customer 2307; even draws would give
        // each about 20.
        assert!(counts[2307] > 200, "{}", counts[2307]);
    }

    #[test]
    fn texts_have_their_lengths_and_some_are_original() {
        let mut chance = Chance::new(2, 0, 0);
        let all: Vec<_> = (0..1000).map(|_| data(&mut chance)).collect();
        assert!(all.iter().all(|text| (26..=50).contains(&text.len())));
        let original = all.iter().filter(|text| text.contains("ORIGINAL")).count();
        assert!((50..150).contains(&original), "{original}");
        assert_eq!(digits(16, &mut chance).len(), 16);
    }
}
