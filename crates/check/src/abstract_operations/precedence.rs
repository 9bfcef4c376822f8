//! Who comes before whom in real time, with few pairs.

/// Of things with a begin and perhaps an end, for each place those that ended before it began and
/// before which nothing lies in between: all others that ended before it come before one of these.
pub(crate) fn direct_predecessors(spans: &[(u64, Option<u64>)]) -> Vec<Vec<usize>> {
    let mut ended: Vec<(u64, usize)> =
        spans.iter().zip(0..).filter_map(|((_, end), at)| end.map(|end| (end, at))).collect();
    ended.sort_unstable();
    // The latest begin among so many that ended first.
    let latest: Vec<u64> = ended
        .iter()
        .scan(0, |latest, (_, at)| {
            *latest = spans[*at].0.max(*latest);
            Some(*latest)
        })
        .collect();
    let before = |begin: u64| {
        let count = ended.partition_point(|(end, _)| *end < begin);
        let Some(last) = count.checked_sub(1) else { return Vec::new() };
        let from = ended.partition_point(|(end, _)| *end < latest[last]);
        ended[from..count].iter().map(|(_, at)| *at).collect()
    };
    spans.iter().map(|(begin, _)| before(*begin)).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn all_that_ended_before_is_reached(
            spans in prop::collection::vec((0..20_u64, prop::option::of(0..6_u64)), 0..12),
        ) {
            let spans: Vec<_> =
                spans.iter().map(|(begin, long)| (*begin, long.map(|it| begin + it))).collect();
            let direct = direct_predecessors(&spans);
            for (at, (begin, _)) in spans.iter().enumerate() {
                let (mut reached, mut open) = (BTreeSet::new(), direct[at].clone());
                while let Some(next) = open.pop() {
                    if reached.insert(next) {
                        open.extend(&direct[next]);
                    }
                }
                let ended = |other: &usize| spans[*other].1.is_some_and(|end| end < *begin);
                let expected: BTreeSet<usize> = (0..spans.len()).filter(ended).collect();
                prop_assert_eq!(reached, expected);
            }
        }
    }
}
