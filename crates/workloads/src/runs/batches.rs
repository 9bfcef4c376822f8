//! Batches in searches: in some seeds messages wait for each other, over some links; in some,
//! commits that a broadcast orders.

use muesli_core::{BatchLinks, Batching, CommitBatch, LinkBatch, Nanos};

use crate::chance::Chance;

/// Of so many seeds one has messages wait for each other.
const ONCE_IN: u64 = 4;
/// How large batches are.
const SIZES: [usize; 4] = [2, 5, 10, 50];
/// How long they wait at least and at most, in microseconds: what a commit of a group says one
/// after the other is then said before anybody asks again.
const TIMEOUTS_US: (u64, u64) = (20, 500);

/// How many commits are ordered as one at most.
const COMMITS: [usize; 3] = [2, 8, 100];

/// The batches of a seed; most have none. They take nothing from what else the seed draws.
pub(crate) fn draw(seed: u64) -> Batching {
    draw_messages(seed).with_commits(draw_commits(seed))
}

fn draw_commits(seed: u64) -> CommitBatch {
    let mut chance = Chance::new(seed, u32::MAX, 2);
    if chance.below(ONCE_IN) > 0 {
        return CommitBatch::default();
    }
    let most = COMMITS[chance.below(COMMITS.len() as u64) as usize];
    CommitBatch::new(most).expect("numbers that can be")
}

fn draw_messages(seed: u64) -> Batching {
    let mut chance = Chance::new(seed, u32::MAX, 1);
    if chance.below(ONCE_IN) > 0 {
        return Batching::default();
    }
    let size = SIZES[chance.below(SIZES.len() as u64) as usize];
    let timeout = Nanos::from_micros(chance.between(TIMEOUTS_US.0, TIMEOUTS_US.1));
    let links = match chance.below(8) {
        0..5 => BatchLinks::All,
        5 => BatchLinks::Tree,
        6 => BatchLinks::Up,
        _ => BatchLinks::Down,
    };
    Batching::over(links, LinkBatch::new(size, timeout).expect("sizes and times that can be"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_seeds_have_batches_over_all_links_some_over_those_of_the_tree_and_most_none() {
        let drawn: Vec<Batching> = (1..=400).map(draw).collect();
        let all = drawn.iter().filter(|it| it.others.holds()).count();
        let tree = drawn.iter().filter(|it| it.holds() && !it.others.holds()).count();
        assert!((30..100).contains(&all) && (15..70).contains(&tree), "{all} and {tree}");
        let commits = drawn.iter().filter(|it| it.commits.most().is_some()).count();
        assert!((60..140).contains(&commits), "{commits}");
    }
}
