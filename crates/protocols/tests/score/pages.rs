//! A client elsewhere gets a long read a page at a time.

use muesli_core::ranges::KeyRange;
use muesli_core::{Address, Effect, Envelope, Limits, Nanos, RepositoryId, Sender, SmallBytes};
use muesli_protocols::score::Score;
use muesli_protocols::score::Snapshots;
use muesli_protocols::two_phase::message::Message;
use muesli_protocols::two_phase::message::ScanReply;
use muesli_protocols::two_phase::message::ScanRequest;

use crate::harness::every::fair::{Alone, ELSEWHERE, HERE, ROWS, SPACE};

/// The pages that were sent.
pub fn pages(alone: &mut Alone<Score>) -> Vec<ScanReply<Snapshots>> {
    let all = std::mem::take(&mut alone.effects.list).into_iter();
    let page = |effect| match effect {
        Effect::Send { envelope: Envelope { message: Message::ScanReply(page), .. }, .. } => {
            Some(*page)
        }
        Effect::SetTimer { after: Nanos(0), .. } => panic!("it goes on without being asked"),
        _ => None,
    };
    all.filter_map(page).collect()
}

#[test]
fn a_client_elsewhere_gets_one_page_for_each_request() {
    let mut alone = Alone::<Score>::new();
    let (from, to) = (Address::coordinator(ELSEWHERE), Address::repository(HERE, RepositoryId(0)));
    let (mut lo, mut seen, mut requests) = (SmallBytes::EMPTY, 0, 0);
    let snapshot = alone.node.participants()[0].1.committed();
    loop {
        requests += 1;
        let message = Message::Scan(Box::new(ScanRequest {
            request: requests,
            snapshot,
            first: false,
            reader: (),
            range: KeyRange { space: SPACE, lo: lo.clone(), hi: None },
            partitions: (0..alone.node.catalog().partitions() as u16).collect(),
            reverse: false,
            limit: usize::MAX,
        }));
        let envelope = Envelope { from, to, message };
        alone.node.receive(Sender::Member, envelope, &mut alone.effects).unwrap();
        let mut pages = pages(&mut alone);
        assert_eq!(pages.len(), 1, "request {requests}");
        let page = pages.remove(0);
        assert!(page.rows.len() <= Limits::default().page_rows, "{}", page.rows.len());
        seen += page.rows.len();
        match page.seen_to {
            Some(last) => lo = last.successor(),
            None => break,
        }
    }
    assert_eq!((seen, requests as usize), (ROWS, ROWS / Limits::default().page_rows));
}
