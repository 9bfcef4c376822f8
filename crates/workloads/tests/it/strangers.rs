//! Strangers among honest clients: nodes live, and histories of honest clients hold.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use muesli_sim::plan::Plan;
use muesli_sim::plan::fault::FaultKinds;
use muesli_sim::time::{Span, VirtualTime};
use muesli_sim::world::{Routes, StrangerCount, Strangers};
use muesli_workloads::available;
use muesli_workloads::embedded::Length;
use muesli_workloads::seeded_run::SeededRun;
use muesli_workloads::simulated::{
    self, Simulated, SimulatedOutcome, Upkeep, guarantee, is_guaranteed,
};
use muesli_workloads::tally::Tallies;
use serde_json::Map;

const CLIENTS: u32 = 6;
/// Each protocol, under every name that says other things, alone and in groups.
const PROTOCOLS: [(&str, u16); 15] = [
    ("score", 1),
    ("gmu", 1),
    ("bumper", 1),
    ("bumper-tw", 1),
    ("bumper-da", 1),
    ("bumper-reconciled", 1),
    ("2pc", 1),
    ("rr", 1),
    ("ngm", 1),
    ("granola", 1),
    ("granola-passing", 1),
    ("granola-locking", 1),
    ("sinfonia", 1),
    ("score", 3),
    ("granola", 3),
];

/// What no client ever says, and members take from none: answers, and what servers say to each
/// other.
const OF_MEMBERS: [&str; 34] = [
    "Acknowledge",
    "Ask",
    "AskDoubts",
    "AskMember",
    "At",
    "Begun",
    "Behind",
    "Confirm",
    "Confirmed",
    "Consensus",
    "Entries",
    "Fetch",
    "FetchState",
    "Knows",
    "Leads",
    "Load",
    "Locked",
    "News",
    "NoDoubts",
    "NoState",
    "Placement",
    "Position",
    "Ran",
    "Reached",
    "ReadReply",
    "Reply",
    "Resync",
    "ScanReply",
    "Stable",
    "State",
    "Tell",
    "Vote",
    "Watermark",
    "WhichPosition",
];
/// With some of these seeds, strangers that pass for members get records into the logs of groups
/// that contradict those before.
const CONTRADICTING: Range<u64> = 77_000_000..77_000_100;
/// Of kinds that were said more seldom the share says little.
const FEW: u64 = 60;

fn one_round(protocol: &str) -> bool {
    protocol.starts_with("granola") || protocol == "sinfonia"
}

/// The workloads of a protocol, one a seed.
fn workload(protocol: &str, seed: u64) -> &'static str {
    match seed % 3 {
        0 => "append",
        1 if one_round(protocol) => "append-procedures",
        _ => "bank",
    }
}

/// Counts by kind what became of strangers' messages.
fn count(all: &mut BTreeMap<&'static str, StrangerCount>, outcome: &SimulatedOutcome) {
    for (name, counted) in &outcome.run.strangers {
        *all.entry(name).or_default() += *counted;
    }
}

fn run(protocol: &str, group: u16, seed: u64, as_members: bool) -> SimulatedOutcome {
    let workload = available::find(workload(protocol, seed)).unwrap();
    let workload = workload.build(&workload.small_parameters(), CLIENTS).unwrap();
    let every = Span::from_nanos(150_000);
    let upkeep = Upkeep {
        group,
        checkpoint_every: Some(Span::from_millis(40)),
        strangers: Some(Strangers { every, as_members }),
        ..Upkeep::default()
    };
    let calm = Simulated::calm(protocol, 3, seed, Length::Time(Duration::ZERO));
    let plan = Simulated {
        replicas: 1 + seed as usize % 2,
        plan: Plan::calm(VirtualTime::ZERO + Span::from_millis(200)),
        transactions_least: if as_members { 0 } else { 150 },
        pause_most: Span::from_millis(2),
        logging: true,
        history: true,
        upkeep,
        ..calm
    };
    let tallies = Arc::new(Tallies::new(CLIENTS));
    simulated::run(&workload, &plan, &tallies).unwrap()
}

/// How many messages of strangers were taken, of how many.
fn taken(outcome: &SimulatedOutcome) -> (u64, u64) {
    let all = outcome.run.strangers.values();
    all.fold((0, 0), |(taken, of), it| (taken + it.taken, of + it.taken + it.rejected))
}

#[test]
fn honest_clients_see_nothing_of_strangers() {
    for (protocol, group) in PROTOCOLS {
        let mut kinds = BTreeMap::new();
        for seed in 1..7 {
            let outcome = run(protocol, group, seed, false);
            count(&mut kinds, &outcome);
            let name = format!("{protocol}, groups of {group}, seed {seed}");
            for check in outcome.checks.iter().filter(|it| is_guaranteed(protocol, it.name)) {
                assert!(check.ok, "{name}: {}: {}", check.name, check.details);
            }
            let history = outcome.run.history(Map::new()).unwrap();
            let (level, options) = guarantee(protocol).unwrap();
            let verdict = muesli_check::check(&history, level, &options);
            assert!(verdict.holds(), "{name}: {verdict}");
            let (taken, all) = taken(&outcome);
            assert!(all > 300, "{name}: {all} messages");
            assert!(5 * taken >= all, "{name}: {taken} of {all}: {:?}", outcome.run.strangers);
        }
        println!("{protocol}, groups of {group}, as clients: {kinds:?}");
        for (name, StrangerCount { taken, rejected }) in kinds {
            let all = taken + rejected;
            match OF_MEMBERS.contains(&name) {
                true => assert_eq!(taken, 0, "{protocol} {group}: {name} of {all}"),
                false => assert!(all < FEW || 5 * taken >= all, "{protocol}: {name} {taken}/{all}"),
            }
        }
    }
}

#[test]
fn nodes_outlive_strangers_that_pass_for_members() {
    for (protocol, group) in PROTOCOLS {
        let mut kinds = BTreeMap::new();
        for seed in 1..4 {
            let outcome = run(protocol, group, seed, true);
            count(&mut kinds, &outcome);
            let (taken, all) = taken(&outcome);
            assert!(all > 300 && 5 * taken >= all, "{protocol} {group}: {taken} of {all}");
        }
        println!("{protocol}, groups of {group}, as members: {kinds:?}");
        for (name, StrangerCount { taken, rejected }) in kinds {
            let all = taken + rejected;
            assert!(all < FEW || 5 * taken >= all, "{protocol} {group}: {name} {taken}/{all}");
        }
    }
}

/// In each of these a member said of more entries than there are that they are decided, and others
/// ended by it.
#[test]
fn nobody_is_told_that_more_is_decided_than_there_is() {
    let strangers = Some(Strangers { every: Span::from_micros(10), as_members: true });
    for (protocol, seed) in [("gmu", 88_000_709), ("gmu", 88_000_715), ("rr", 88_003_101)] {
        let seeded_run = SeededRun {
            protocol: protocol.to_owned(),
            group: 3,
            strangers,
            transactions_least: 100,
            ..SeededRun::of(available::find("bank").unwrap())
        };
        let trialled = seeded_run.run(seed, false).unwrap();
        assert!(trialled.problems.is_empty(), "{protocol} {seed}: {:?}", trialled.problems);
    }
}

/// Once some of its messages are in the log of a group, a stranger is one of those who write it.
#[test]
fn members_leave_out_records_that_contradict_each_other() {
    let strangers = Some(Strangers { every: Span::from_micros(20), as_members: true });
    let seeded_run = SeededRun {
        protocol: "bumper-tw".to_owned(),
        group: 3,
        strangers,
        faults: FaultKinds::NONE,
        ..SeededRun::of(available::find("bank").unwrap())
    };
    let left_out = |seed| seeded_run.run(seed, false).unwrap().left_out;
    assert!(CONTRADICTING.into_iter().any(|seed| left_out(seed) > 0), "nothing was left out");
}

#[test]
fn honest_nodes_reject_nothing_of_each_other() {
    for (protocol, group) in PROTOCOLS {
        let workload = available::find("bank").unwrap();
        let workload = workload.build(&workload.small_parameters(), CLIENTS).unwrap();
        let plan = Simulated {
            replicas: 2,
            plan: Plan::calm(VirtualTime::ZERO + Span::from_millis(200)),
            transactions_least: 150,
            logging: true,
            upkeep: Upkeep { group, ..Upkeep::default() },
            ..Simulated::calm(protocol, 3, 7, Length::Time(Duration::ZERO))
        };
        let tallies = Arc::new(Tallies::new(CLIENTS));
        let outcome = simulated::run(&workload, &plan, &tallies).unwrap();
        let rejected = &outcome.run.rejections;
        assert!(rejected.is_empty(), "{protocol}, groups of {group}: {rejected:?}");
    }
}

/// Kinds that no stranger hears, so that none says them: `Stable` a node says to itself alone,
/// `Long` comes before an entry of more than a megabyte, and `Tell` is of procedures that are told
/// what others read, of which no workload has any. `AskOwned` and `Owned` are of a directory that
/// has lost its disk, which happens in no search.
const UNSAID: [&str; 5] = ["Stable", "Long", "Tell", "AskOwned", "Owned"];

/// The same of Granola: nobody waits in its searches (`protocols/tests/granola/strangers.rs` says
/// them).
const UNSAID_OF_GRANOLA: [&str; 3] = ["Watch", "Unwatch", "Changed"];

/// The names of kinds of messages, from the source of their protocol: of a function that names
/// them, or of a list of their numbers.
fn names(source: &'static str) -> BTreeSet<&'static str> {
    let arms = source.lines().filter_map(|line| line.trim().split_once(" => \""));
    let of_messages = arms.filter(|(variant, _)| variant.starts_with("Message::"));
    let named = of_messages.map(|(_, name)| name.trim_end_matches("\","));
    let list = source.split_once("wire_enum!(Message, ").map_or("", |(_, rest)| rest);
    let list = list.split_once("});").map_or("", |(list, _)| list);
    let numbered = list.lines().filter_map(|line| line.trim().split_once(" => "));
    let variants = numbered.filter(|(number, _)| number.chars().all(|it| it.is_ascii_digit()));
    let variants = variants.map(|(_, variant)| {
        variant.split(|it: char| !it.is_alphanumeric()).next().unwrap_or_default()
    });
    named.chain(variants).collect()
}

/// What was seen of a family of protocols in searches with strangers, under faults, with moves,
/// copies, masters and delayed actions.
pub struct Searched {
    /// The family.
    pub title: &'static str,
    /// The source that names its messages.
    pub source: &'static str,
    /// The names of its messages.
    pub names: BTreeSet<&'static str>,
    /// Kinds that strangers said in the name of members.
    counted: BTreeMap<&'static str, StrangerCount>,
    /// What nodes sent to each other.
    pub routes: Routes,
}

impl Searched {
    fn new(
        title: &'static str,
        (source, text): (&'static str, &'static str),
        runs: &[SeededRun],
    ) -> Searched {
        let (mut counted, mut routes) = (BTreeMap::<_, StrangerCount>::new(), Routes::default());
        for seeded_run in runs {
            for seed in 1..=3 {
                let trialled = seeded_run.run(seed, false).unwrap();
                routes.join(&trialled.routes);
                for (name, more) in trialled.strangers {
                    *counted.entry(name).or_default() += more;
                }
            }
        }
        Searched { title, source, names: names(text), counted, routes }
    }
}

/// The families, searched once.
pub fn searched() -> &'static [Searched] {
    static SEARCHED: OnceLock<Vec<Searched>> = OnceLock::new();
    SEARCHED.get_or_init(search)
}

fn search() -> Vec<Searched> {
    let strangers = Some(Strangers { every: Span::from_micros(100), as_members: true });
    let of = |protocol: &str, workload: &str, group: u16| SeededRun {
        protocol: protocol.to_owned(),
        group,
        strangers,
        transactions_least: 100,
        ..SeededRun::of(available::find(workload).unwrap())
    };
    let with = |seeded_run: SeededRun, parameters: &[&str]| {
        let own = parameters.iter().map(|given| (*given).to_owned());
        SeededRun {
            parameters: seeded_run.parameters.iter().cloned().chain(own).collect(),
            ..seeded_run
        }
    };
    let delayed = ["delayed=true", "procedures=true", "asked=true"];
    let two_phase = [
        with(of("score", "ycsb", 1), &["workload=s"]),
        of("rr", "bank", 1),
        of("hierarchy", "bank", 1),
        of("tfa", "queues", 1),
        SeededRun { partitions_per_repository: 3, ..with(of("bumper", "counters", 1), &delayed) },
    ];
    let procedures = |protocol| of(protocol, "append-procedures", 1);
    let granola = [
        SeededRun { caches: true, ..with(procedures("granola"), &["nearby=50"]) },
        SeededRun { partitions_per_repository: 3, ..with(procedures("granola"), &["moving=5"]) },
        procedures("granola-passing"),
        SeededRun { masters: 1, ..procedures("sinfonia") },
    ];
    let groups = [of("score", "bank", 3), of("bumper", "bank", 3)];
    macro_rules! source {
        ($path:literal) => {
            (concat!("crates/", $path), include_str!(concat!("../../../", $path)))
        };
    }
    vec![
        Searched::new(
            "Two-phase commit",
            source!("protocols/src/two_phase/message/sizes.rs"),
            &two_phase,
        ),
        Searched::new(
            "Granola and Sinfonia",
            source!("protocols/src/granola/message/wire.rs"),
            &granola,
        ),
        Searched::new("Groups", source!("group/src/grouped.rs"), &groups),
    ]
}

/// Whatever nodes say to each other, somebody says wrongly: each kind of message.
#[test]
fn every_kind_of_message_is_said() {
    let mut never = Vec::new();
    for Searched { title, names, counted, .. } in searched() {
        println!("{title}: {counted:?}");
        assert!(names.len() > 10, "{title}: {names:?}");
        let unsaid = names.iter().filter(|name| !counted.contains_key(*name));
        let is_known = |name: &&&str| {
            let of_granola = title.starts_with("Granola") && UNSAID_OF_GRANOLA.contains(name);
            UNSAID.contains(name) || of_granola
        };
        never.extend(unsaid.filter(|name| !is_known(name)).map(|name| (title, name)));
    }
    assert!(never.is_empty(), "strangers never say {never:?}");
}
