//! A leader that is deposed with entries that nobody decides keeps its state all the same: it takes
//! these back, and asks nobody for the rest.

use std::rc::Rc;

use muesli::Tx;
use muesli_core::NodeId;
use muesli_group::Grouped;
use muesli_group::agreement::ledger::{ReplicaState, StateOnDisk};
use muesli_group::{GroupSettings, Limits};
use muesli_protocols::score::Score;
use muesli_sim::time::Span;
use muesli_sim::world::ClientBody;

use crate::one_group::{OneGroup, one_group};

const NODES: u32 = 3;
/// So many keys are written, over and over: far more than fits into what members keep of the log.
const KEYS: u64 = 40;

/// Runs clients on all nodes, of which each in turn is alone for a while. How often a leader
/// returned to what was decided, and how many members have fetched a state.
fn run(seed: u64, limits: Limits) -> (u64, usize) {
    let cut = |round: u64| format!("{}ms+60ms partition n{}", 40 + 120 * round, (round + seed) % 3);
    let cuts: Vec<_> = (0..6).map(cut).collect();
    let plan = format!("horizon 900ms; {}", cuts.join("; "));
    let group_settings = GroupSettings { limits, ..GroupSettings::default() };
    let OneGroup { mut world, db, space, nodes } =
        one_group(NODES, NODES, seed, &plan, group_settings);
    for (number, node) in (0..).zip(nodes) {
        let db = db.independent();
        let body: ClientBody = Rc::new(move |start| {
            let db = db.independent();
            Box::pin(async move {
                let mut round: u64 = number;
                while !start.stop.is_raised() {
                    round += 3;
                    let key = (round % KEYS).to_be_bytes().to_vec();
                    let put = async move |tx: &Tx| {
                        let seen = tx.get(space, key.clone()).await?;
                        let next = seen.map_or(1, |it| it.as_slice().len() % 90 + 1);
                        tx.put(space, key.clone(), vec![7; next]).await
                    };
                    let _ = db.transact_here(put).await; // One that fails is no matter here.
                }
            })
        });
        world.add_client(node, body);
    }
    world.run_to_end(Span::from_secs(60)).expect("everything ends");
    let (mut returned, mut fetched) = (0, 0);
    for node in (0..NODES).map(NodeId) {
        let seen = world.with_node::<Grouped<Score>, _>(node, |node| {
            let each = node.participants().iter();
            let is_new = |it: &ReplicaState| it.needs > 0 || it.held != StateOnDisk::Whole;
            each.map(|(_, member)| (member.returned(), member.look(is_new))).collect()
        });
        let seen: Vec<(u64, bool)> = seen.expect("it is up");
        returned += seen.iter().map(|(returned, _)| returned).sum::<u64>();
        fetched += seen.iter().filter(|(_, is_new)| *is_new).count();
    }
    (returned, fetched)
}

#[test]
fn a_deposed_leader_takes_back_what_nobody_decided_and_fetches_nothing() {
    // Enough of the log is kept for who was away, and too little to begin from its beginning.
    let limits = Limits { log_bytes_min: 300, log_bytes_max: 3 << 20, ..Limits::tight() };
    let mut all = 0;
    for seed in 0..8 {
        let (returned, fetched) = run(seed, limits);
        assert_eq!(fetched, 0, "seed {seed}: no state was lost");
        all += returned;
    }
    assert!(all >= 8, "{all} leaders returned to what was decided");
}
