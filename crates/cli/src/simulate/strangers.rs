//! Messages of strangers: how many are sent, and how many of them pass the first checks.

use std::collections::BTreeMap;

use muesli_sim::time::Span;
use muesli_sim::world::{StrangerCount, Strangers};

use super::options::SimOptions;
use crate::table::grouped;

/// Of so few messages of a kind the share that was taken says little.
const FEW: u64 = 60;

/// The strangers that are asked for.
pub fn strangers(options: &SimOptions) -> Option<Strangers> {
    let every = Span::from_nanos(1_000_000 / u64::from(options.strangers.max(1)));
    let as_members = options.as_members;
    (options.strangers > 0).then_some(Strangers { every, as_members })
}

/// How many messages of strangers passed the first checks, by kind and in all. A kind of which only
/// few do is marked: what it does behind these checks is hardly looked at.
pub fn of_strangers(counted: &BTreeMap<&'static str, StrangerCount>) -> String {
    let line = |name: &str, it: StrangerCount| {
        let all = it.taken + it.rejected;
        let share = 100.0 * it.taken as f64 / all.max(1) as f64;
        format!("strangers: {name}: {} of {} taken, {share:.0} %", grouped(it.taken), grouped(all))
    };
    let mut sum = StrangerCount::default();
    let mut text = String::new();
    for (name, it) in counted {
        sum += *it;
        let all = it.taken + it.rejected;
        let is_low = all >= FEW && it.taken > 0 && 5 * it.taken < all;
        text += &line(name, *it);
        text += if is_low { " BELOW A FIFTH\n" } else { "\n" };
    }
    text + &line("all", sum) + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_which_few_messages_are_taken_are_marked() {
        let counted = |taken, rejected| StrangerCount { taken, rejected };
        let all = [
            ("Few", counted(1, 50)),
            ("Low", counted(10, 50)),
            ("None", counted(0, 90)),
            ("Well", counted(30, 100)),
        ];
        let text = of_strangers(&all.into_iter().collect());
        let marked: Vec<&str> =
            text.lines().filter(|line| line.ends_with(" BELOW A FIFTH")).collect();
        assert_eq!(marked, ["strangers: Low: 10 of 60 taken, 17 % BELOW A FIFTH"]);
        assert!(text.ends_with("strangers: all: 41 of 331 taken, 12 %\n"));
    }
}
