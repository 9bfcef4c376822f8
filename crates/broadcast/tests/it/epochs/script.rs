//! Exchanges whose messages arrive as a test says.

use std::collections::BTreeMap;

use muesli_broadcast::epochs::{
    ChangeError, EpochEffectsOf, EpochMember, EpochMessage, EpochSettings, EpochSwitch,
    EpochSwitches, GroupEpoch, MemberChange, MemberName, MemberState, RequestId,
};
use muesli_broadcast::m2paxos::M2Paxos;
use muesli_broadcast::pob::Pob;
use muesli_broadcast::{Broadcast, Command, CommandId, MemberId};
use muesli_core::Nanos;
use muesli_core::sabotage::Sabotage as _;

use super::site::Site;
use crate::group::command;
use crate::order::disorder;

/// Sites by their names, and what is on its way between them.
struct Exchanges<B: Broadcast> {
    now: Nanos,
    sites: Vec<Site<B>>,
    on_their_way: Vec<(usize, usize, EpochMessage<B::Message>)>,
    commands: BTreeMap<RequestId, Command>,
    settings: EpochSettings<B::Switches>,
}

impl<B: Broadcast> Exchanges<B> {
    fn new(members: u64, settings: EpochSettings<B::Switches>) -> Exchanges<B> {
        let founder = |name| Site::founded(MemberName(name), members, &settings);
        Exchanges {
            now: Nanos(0),
            sites: (0..members).map(founder).collect(),
            on_their_way: Vec::new(),
            commands: BTreeMap::new(),
            settings,
        }
    }

    /// A site that begins without a memory, under this name.
    fn empty(&mut self, name: usize, peers: &[u64]) {
        let peers = peers.iter().copied().map(MemberName);
        let site = Site::empty(MemberName(name as u64), 3, peers, &self.settings);
        if name == self.sites.len() {
            self.sites.push(site);
        } else {
            self.sites[name] = site;
        }
    }

    fn act<T>(
        &mut self,
        at: usize,
        act: impl FnOnce(&mut EpochMember<B>, &mut EpochEffectsOf<B>) -> T,
    ) -> T {
        let mut out = EpochEffectsOf::<B>::at(self.now);
        let result = act(&mut self.sites[at].member, &mut out);
        let sent = self.sites[at].perform(out, usize::MAX);
        let sent = sent.into_iter().map(|(to, message)| (at, to.0 as usize, message));
        self.on_their_way.extend(sent);
        result
    }

    fn propose(&mut self, at: usize) -> RequestId {
        let command = command("", &[1]);
        let request = self.act(at, |it, out| it.propose(command.clone(), out));
        let request = request.expect("a member takes commands");
        self.commands.insert(request, command);
        request
    }

    fn change(&mut self, at: usize, leaves: u64, joins: u64) -> Result<RequestId, ChangeError> {
        let (leaves, joins) = (MemberName(leaves), MemberName(joins));
        self.act(at, |it, out| it.change(MemberChange { leaves, joins }, out))
    }

    /// All that is on its way from one to the other arrives.
    fn pass(&mut self, from: usize, to: usize) {
        let is_there = |it: &(usize, usize, _)| (it.0, it.1) == (from, to);
        let passed: Vec<_> = self.on_their_way.extract_if(.., |it| is_there(it)).collect();
        for (_, _, message) in passed {
            let from = MemberName(from as u64);
            assert_eq!(self.sites[to].member.judge(from, &message), Ok(()));
            self.act(to, |it, out| it.receive(from, message, out));
        }
    }

    /// All that is on its way is lost.
    fn lose(&mut self) {
        self.on_their_way.clear();
    }

    /// These speak to each other for so many seconds, and nobody else does.
    fn run(&mut self, among: &[usize], seconds: u64) {
        for _ in 0..seconds * 100 {
            self.now = Nanos(self.now.0 + 10_000_000);
            for at in among {
                self.act(*at, |it, out| it.tick(out));
            }
            self.on_their_way.retain(|(from, to, _)| among.contains(from) && among.contains(to));
            for from in among {
                among.iter().for_each(|to| self.pass(*from, *to));
            }
        }
        self.lose();
    }

    fn order(&self, at: usize) -> &[RequestId] {
        &self.sites[at].applied.order
    }

    fn violation(&self) -> Option<String> {
        let orders: Vec<_> = self.sites.iter().map(|site| site.applied.order.clone()).collect();
        disorder(&orders, &self.commands).map(|found| found.to_string())
    }

    fn state(&self, at: usize) -> MemberState {
        self.sites[at].member.state()
    }
}

/// 0 and 2 have accepted a position, and 0 alone knows that it is final.
fn accepted_by_two(switches: EpochSwitches) -> (Exchanges<Pob>, RequestId) {
    let settings = EpochSettings { switches, ..EpochSettings::default() };
    let mut group = Exchanges::<Pob>::new(3, settings);
    let first = group.propose(0);
    for (from, to) in [(0, 2), (2, 0), (0, 2), (2, 0)] {
        group.pass(from, to);
    }
    assert_eq!(group.order(0), [first]);
    group.lose();
    (group, first)
}

/// Of three members one forgets that it has accepted a position. Under its old name it and the
/// third one are a majority that gives the command up, which the first one has delivered.
#[test]
fn who_forgets_and_goes_on_under_its_old_name_breaks_the_order() {
    let (mut group, _) = accepted_by_two(EpochSwitches::broken(EpochSwitch::FoundersRemember));
    group.empty(2, &[1]);
    group.run(&[1, 2], 1);
    assert_eq!(group.state(2), MemberState::Member, "it goes on under its old name");
    let lost = CommandId { leader: MemberId(0), sequence: 1 };
    group.act(1, |it, out| it.recover(lost, out));
    let second = group.propose(1);
    group.run(&[1, 2], 3);
    assert_eq!([group.order(1), group.order(2)], [[second], [second]]);
    group.run(&[0, 1, 2], 3);
    assert!(group.violation().is_some_and(|it| it.contains("before")), "{:?}", group.violation());
}

/// The same member is refused under its old name, and comes back as another one.
#[test]
fn who_forgets_comes_back_as_another_member() {
    let (mut group, first) = accepted_by_two(EpochSwitches::default());
    group.empty(2, &[1]);
    group.run(&[1, 2], 1);
    assert_eq!(group.state(2), MemberState::Empty);
    assert!(group.sites[2].happened.refused > 0, "it is told so");
    let lost = CommandId { leader: MemberId(0), sequence: 1 };
    group.act(1, |it, out| it.recover(lost, out));
    let second = group.propose(1);
    group.run(&[1, 2], 3);
    assert_eq!(group.order(1), [], "one of three decides nothing");
    group.empty(3, &[1, 0]);
    group.change(1, 2, 3).expect("a change that can be made");
    group.run(&[0, 1, 3], 10);
    for at in [0, 1, 3] {
        assert_eq!(group.order(at), [first, second], "{at}");
        assert_eq!(group.sites[at].member.list().epoch, GroupEpoch(2));
        assert!(!group.sites[at].member.remembers_previous(), "all have left the first epoch");
    }
    let third = group.propose(3);
    group.run(&[1, 3], 5);
    assert_eq!(group.order(1), [first, second, third], "it is one of a majority");
    assert_eq!(group.violation(), None);
}

/// A member that lives is taken for dead: it learns that, and takes part in nothing.
#[test]
fn who_was_replaced_is_told_so() {
    let mut group = Exchanges::<Pob>::new(3, EpochSettings::default());
    let first = group.propose(2);
    group.run(&[0, 1, 2], 2);
    group.empty(3, &[0, 1]);
    group.change(0, 2, 3).expect("a change that can be made");
    group.run(&[0, 1, 3], 10);
    assert_eq!(group.state(2), MemberState::Member, "it has heard of nothing");
    let lost = group.propose(2);
    group.run(&[0, 1, 2, 3], 3);
    assert_eq!(group.state(2), MemberState::Replaced);
    assert_eq!(group.act(2, |it, out| it.propose(command("", &[1]), out)), None);
    for at in 0..4 {
        assert_eq!(group.order(at), [first], "{at} has not {lost}");
    }
    assert_eq!(group.violation(), None);
}

/// Who was away for two changes takes the state, as nobody remembers its epoch; what it had asked
/// for is delivered once.
#[test]
fn who_was_away_for_two_changes_takes_the_state() {
    let mut group = Exchanges::<Pob>::new(3, EpochSettings::default());
    let first = group.propose(2);
    group.pass(2, 0);
    group.pass(2, 1);
    group.lose(); // The others bring it to its end.
    group.run(&[0, 1], 5);
    let waits = group.propose(2);
    for (leaves, joins) in [(1, 3), (0, 4)] {
        let alive = [[0, 1, 3], [0, 3, 4]][joins - 3];
        group.empty(joins, &[0, 1, 3]);
        group.change(0, leaves, joins as u64).expect("a change that can be made");
        group.run(&alive, 10);
    }
    assert_eq!(group.order(4), [first]);
    assert_eq!(group.order(2), [], "it has heard of nothing");
    group.run(&[2, 3, 4], 10);
    assert_eq!(group.sites[2].happened.snapshots, 1);
    assert_eq!(group.sites[2].happened.taken_as_delivered, 1, "{first} is in it");
    for at in [2, 3, 4] {
        assert_eq!(group.order(at), [first, waits], "{at}");
    }
}

/// Of two changes the first one counts; the other one is ordered in the next epoch, where it can
/// still be made, or not.
#[test]
fn of_two_changes_both_are_made_or_the_second_has_no_effect() {
    for (other, epoch, voids) in [((1, 4), 3, 0), ((2, 4), 2, 1), ((1, 3), 2, 1)] {
        let mut group = Exchanges::<Pob>::new(3, EpochSettings::default());
        group.empty(3, &[0, 1]);
        group.empty(4, &[0, 3]);
        group.change(0, 2, 3).expect("a change that can be made");
        group.change(1, other.0, other.1).expect("a change that can be made");
        group.run(&[0, 1, 2, 3, 4], 20);
        let list = group.sites[0].member.list().clone();
        assert_eq!(list.epoch, GroupEpoch(epoch), "{other:?}");
        let all: usize = group.sites.iter().map(|site| site.happened.voids).sum();
        assert_eq!(all, voids, "{other:?}");
        for name in list.names() {
            let member = &group.sites[name.0 as usize].member;
            assert_eq!((member.list(), member.state()), (&list, MemberState::Member));
        }
    }
}

/// Each reason for which no change is made.
#[test]
fn changes_that_cannot_be_made_are_refused() {
    let mut group = Exchanges::<Pob>::new(3, EpochSettings::default());
    assert_eq!(group.change(0, 7, 3), Err(ChangeError::NotThere(MemberName(7))));
    assert_eq!(group.change(0, 2, 1), Err(ChangeError::Taken(MemberName(1))));
    group.empty(3, &[0]);
    assert_eq!(group.change(3, 2, 4), Err(ChangeError::NoMember));
    let mut alone = Exchanges::<Pob>::new(1, EpochSettings::default());
    assert_eq!(alone.change(0, 0, 3), Err(ChangeError::Alone));
    let mut owned = Exchanges::<M2Paxos>::new(3, EpochSettings::default());
    assert_eq!(owned.change(0, 2, 3), Err(ChangeError::Unordered));
}
