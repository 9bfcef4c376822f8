//! What is drawn is what was asked for, and the checks notice what they are there for.

use super::*;

fn service(given: &str) -> CounterService {
    let given: Vec<String> = given.split_whitespace().map(str::to_owned).collect();
    let values = Values::read("counter-procedures", PARAMETERS, &given).unwrap();
    CounterService::new(&values, 2)
}

fn share(drawn: &[DrawnCall], of: impl Fn(&DrawnCall) -> bool) -> i64 {
    let count = drawn.iter().filter(|it| of(it)).count();
    (count * 100 / drawn.len()) as i64
}

#[test]
fn shares_are_those_asked_for() {
    let service = service("distributed=30 participants=3 coordinated=40 conflicts=25 reads=20");
    let mut chance = Chance::new(5, 0, 0);
    let drawn: Vec<_> = (0..10_000).map(|_| service.draw(1, 5, &mut chance)).collect();
    let near = |found: i64, asked: i64| assert!((found - asked).abs() <= 2, "{found} {asked}");
    near(share(&drawn, |it| it.counters.len() == 3), 30);
    near(share(&drawn, |it| it.counters.len() == 1), 70);
    near(share(&drawn, |it| it.counters[0].owner == 0), 25);
    near(share(&drawn, |it| it.amount.is_none()), 20);
    near(share(&drawn, |it| it.may_refuse), 32);
    for DrawnCall { counters, .. } in &drawn {
        let mut repositories: Vec<_> = counters.iter().map(|it| it.repository).collect();
        repositories.sort_unstable();
        repositories.dedup();
        assert_eq!(repositories.len(), counters.len());
        assert!(counters.iter().all(|it| it.owner == 0 || it.owner == 2));
    }
}

#[test]
fn parts_share_counters_all_or_none_where_the_transaction_draws() {
    let service = service("distributed=100 conflicts=30 conflicts-by=transaction");
    let mut chance = Chance::new(5, 0, 0);
    let drawn: Vec<_> = (0..10_000).map(|_| service.draw(1, 2, &mut chance)).collect();
    let shares = |it: &DrawnCall| it.counters.iter().filter(|it| it.owner == 0).count();
    assert!((share(&drawn, |it| shares(it) == 2) - 30).abs() <= 2);
    assert!((share(&drawn, |it| shares(it) == 0) - 70).abs() <= 2);
    assert_eq!(share(&drawn, |it| shares(it) == 1), 0);
}

#[test]
fn counters_of_a_repository_lie_together() {
    let service = service("");
    let spaces = service.spaces(3);
    let Partitioning::Range(splits) = &spaces[0].1.partitioning else { panic!("no ranges") };
    for (repository, owner, number) in [(0, 0, 0), (1, 70_000, 3), (2, 0, 0), (2, 9, 999_999)] {
        let key = CounterId { repository, owner, number }.number().encoded();
        assert_eq!(splits.partition_point(|split| *split <= key), usize::from(repository));
    }
}

#[test]
fn lost_and_invented_amounts_are_noticed_and_open_ends_allowed() {
    let service = service("");
    let id = |number| CounterId { repository: 0, owner: 1, number };
    for (number, ended) in [(1, Ended::Committed), (2, Ended::RolledBack), (3, Ended::Unknown)] {
        let mut book = service.books.of(0);
        book.set_out([(id(number), 5)].into_iter());
        book.settle(&ended);
    }
    let broken = |shows: [u64; 2]| {
        let mut totals = books::Totals::of(&service.books);
        let counters: Vec<_> = totals.counters_of(0).concat();
        assert_eq!(counters[1..], [id(1), id(3)]);
        totals.judge(&counters[1..], &shows);
        totals.checks().iter().filter(|check| !check.ok).count()
    };
    assert_eq!([[5, 0], [5, 5], [4, 0], [5, 6]].map(broken), [0, 0, 1, 1]);
    let mut book = service.books.of(1);
    book.see(&[CounterPart { counter: id(1), shows: 5 }]);
    book.see(&[CounterPart { counter: id(1), shows: 4 }]);
    drop(book);
    assert_eq!(broken([5, 0]), 1);
}
