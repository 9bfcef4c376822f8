//! Scripts of commands that come to their ends although messages are lost and members are dead.

use std::collections::VecDeque;

use muesli_broadcast::pob::message::Message;
use muesli_broadcast::pob::{Pob, PobSwitch, Switches};
use muesli_broadcast::{Broadcast as _, BroadcastSettings, EffectsOf, MemberId};
use muesli_core::Nanos;
use muesli_core::sabotage::Sabotage as _;

use crate::group::{command, made, members};
use crate::script::Script;

/// A minute passes, each second of it with all messages but those to a member that is dead.
fn pass_a_minute(group: &mut Script<Pob>, dead: Option<u16>) {
    for second in 1..60 {
        for at in (0..3).filter(|at| Some(*at) != dead) {
            group.tick(at, second * 1_000);
        }
        match dead {
            Some(dead) => group.deliver_all_but(dead),
            None => group.deliver_all(),
        }
    }
    assert_eq!(group.violation(), None);
}

/// How many commands each member has delivered in the end, with all rules and without one.
fn delivered_without(switch: PobSwitch, run: impl Fn(&Switches) -> Script<Pob>) -> [[usize; 3]; 2] {
    [Switches::default(), Switches::broken(switch)].map(|switches| {
        let group = run(&switches);
        [0, 1, 2].map(|at| group.order(at).len())
    })
}

/// All answer alike where nothing is in the way.
#[test]
fn answers_that_are_the_same_count_by_member() {
    let run = |switches: &Switches| {
        let mut group = Script::<Pob>::new(3, switches);
        group.propose(0, &[1]);
        pass_a_minute(&mut group, None);
        group
    };
    assert_eq!(delivered_without(PobSwitch::CountsMembers, run), [[1; 3], [0; 3]]);
}

/// Member 0 has named a command of its own that nobody else has seen, and dies.
#[test]
fn a_command_that_is_known_by_its_name_alone_is_taken_over() {
    let run = |switches: &Switches| {
        let mut group = Script::<Pob>::new(3, switches);
        let unknown = group.propose(0, &[1]);
        [1, 2].into_iter().for_each(|member| group.lose(0, member, unknown));
        let blocked = group.propose(1, &[1]);
        group.deliver(1, 0, blocked);
        group.deliver(0, 1, blocked);
        group.exchange(1, 2, blocked);
        assert_eq!(group.order(1).len(), 0, "it is stable, and waits");
        pass_a_minute(&mut group, Some(0));
        group
    };
    let switches =
        [PobSwitch::RecoversUnknown, PobSwitch::SuspectsOthers, PobSwitch::PassesNothing];
    for switch in switches {
        assert_eq!(delivered_without(switch, run), [[0, 1, 1], [0, 0, 0]], "{switch:?}");
    }
}

/// Member 1 takes a command over that is stable. What is said of it arrives after that.
#[test]
fn a_final_position_counts_in_any_epoch() {
    let run = |switches: &Switches| {
        let mut group = Script::<Pob>::new(3, switches);
        let id = group.propose(0, &[1]);
        group.exchange(0, 1, id);
        group.lose(0, 2, id); // The proposal; the position that is to be accepted is left.
        group.recover(2, id);
        pass_a_minute(&mut group, None);
        group
    };
    assert_eq!(delivered_without(PobSwitch::StableInAnyEpoch, run), [[1; 3], [1, 1, 0]]);
}

/// Nobody gets the proposal.
#[test]
fn who_does_not_answer_is_asked_again() {
    let run = |switches: &Switches| {
        let mut group = Script::<Pob>::new(3, switches);
        let id = group.propose(0, &[1]);
        [1, 2].into_iter().for_each(|member| group.lose(0, member, id));
        pass_a_minute(&mut group, None);
        group
    };
    assert_eq!(delivered_without(PobSwitch::AsksAgain, run), [[1; 3], [0; 3]]);
}

/// The answer of member 1 is lost.
#[test]
fn who_is_asked_again_answers_again() {
    let run = |switches: &Switches| {
        let mut group = Script::<Pob>::new(3, switches);
        let id = group.propose(0, &[1]);
        group.deliver(0, 1, id);
        group.lose(1, 0, id);
        group.tick(0, 1_000);
        group.exchange(0, 1, id);
        group
    };
    assert_eq!(delivered_without(PobSwitch::AnswersAgain, run), [[1, 1, 0], [0; 3]]);
}

/// Member 2 gets nothing of a command.
#[test]
fn who_has_missed_a_command_is_sent_it() {
    let run = |switches: &Switches| {
        let mut group = Script::<Pob>::new(3, switches);
        let id = group.propose(0, &[1]);
        group.exchange(0, 1, id);
        group.lose_all(0, 2, id);
        pass_a_minute(&mut group, None);
        group
    };
    assert_eq!(delivered_without(PobSwitch::ShowsMissed, run), [[1; 3], [1, 1, 0]]);
}

/// Members 0 and 1 each know the end of one of two commands, and wait for the other one.
#[test]
fn who_asks_about_a_stable_command_is_sent_its_end() {
    let run = |switches: &Switches| {
        let mut group = Script::<Pob>::new(3, switches);
        let first = group.propose(0, &[1]);
        group.deliver(0, 2, first);
        let second = group.propose(1, &[1]);
        group.deliver(0, 1, first);
        group.deliver(1, 0, first);
        group.deliver(1, 2, second);
        group.deliver(2, 1, second); // Both are to be at 2, and name each other.
        group.exchange(0, 2, first);
        group.exchange(1, 2, second);
        group.lose_all(0, 1, first);
        group.lose_all(1, 0, second);
        group.lose_all_to(2);
        let known = [0, 1].map(|at: usize| {
            [first, second].map(|id| group.members[at].final_position(id).is_some())
        });
        assert_eq!(known, [[true, false], [false, true]]);
        pass_a_minute(&mut group, Some(2));
        group
    };
    assert_eq!(delivered_without(PobSwitch::ShowsEnds, run), [[2; 3], [0, 0, 2]]);
}

/// Member 1 takes over what member 0 has proposed before it died; member 2 answers.
#[test]
fn who_takes_over_answers_itself() {
    let run = |switches: &Switches| {
        let mut group = Script::<Pob>::new(3, switches);
        let id = group.propose(0, &[1]);
        group.deliver(0, 1, id);
        group.lose(0, 2, id);
        pass_a_minute(&mut group, Some(0));
        group
    };
    assert_eq!(delivered_without(PobSwitch::OwnPromise, run), [[0, 1, 1], [0; 3]]);
}

/// Member 0 crashes before anybody else gets the proposal.
#[test]
fn who_comes_back_takes_its_own_commands_over() {
    let run = |switches: &Switches| {
        let mut group = Script::<Pob>::new(3, switches);
        let id = group.propose(0, &[1]);
        [1, 2].into_iter().for_each(|member| group.lose(0, member, id));
        group.restart(0);
        pass_a_minute(&mut group, None);
        group
    };
    assert_eq!(delivered_without(PobSwitch::SuspectsOwn, run), [[1; 3], [0; 3]]);
}

/// Two seconds after its leader has died the next member alone has taken a command over.
#[test]
fn members_take_over_one_after_the_other() {
    let asked = |switches: &Switches| {
        let mut group = Script::<Pob>::new(5, switches);
        let id = group.propose(0, &[1]);
        (1..5).for_each(|member| group.deliver(0, member, id));
        (1..5).for_each(|member| group.tick(member, 2_000));
        group.kinds().iter().filter(|kind| kind.ends_with("Prepare")).count()
    };
    assert_eq!(asked(&Switches::default()), 4);
    assert_eq!(asked(&Switches::broken(PobSwitch::RanksMembers)), 16);
}

/// Members whose messages take five seconds each, while they suspect each other after less.
struct SlowGroup {
    members: Vec<Pob>,
    second: u64,
    on_their_way: VecDeque<(u64, MemberId, MemberId, Message)>,
}

impl SlowGroup {
    fn act(&mut self, at: MemberId, act: impl FnOnce(&mut Pob, &mut EffectsOf<Pob>)) {
        let mut out = EffectsOf::<Pob>::at(Nanos(self.second * 1_000_000_000));
        act(&mut self.members[at.place()], &mut out);
        let sent = made::<Pob>(out).sent.into_iter();
        self.on_their_way.extend(sent.map(|(to, it)| (self.second + 5, at, to, it)));
    }

    /// A second passes at members 1 and 2; member 0 is dead.
    fn pass(&mut self) {
        self.second += 1;
        while self.on_their_way.front().is_some_and(|(due, ..)| *due <= self.second) {
            let (_, from, to, message) = self.on_their_way.pop_front().expect("looked at");
            if to != MemberId(0) {
                self.act(to, |it, out| it.receive(from, message, out));
            }
        }
        [1, 2].into_iter().for_each(|at| self.act(MemberId(at), |it, out| it.tick(out)));
    }
}

/// How many seconds it takes members 1 and 2 to bring a command of member 0 to its end, if that is
/// less than an hour.
fn slow_recovery(switches: &Switches) -> Option<u64> {
    let members = members(3, &BroadcastSettings::default(), switches);
    let mut group = SlowGroup { members, second: 0, on_their_way: VecDeque::new() };
    group.act(MemberId(0), |it, out| _ = it.propose(command("", &[1]), out));
    while group.second < 3_600 && group.members[1].delivered().is_empty() {
        group.pass();
    }
    Some(group.second).filter(|second| *second < 3_600)
}

/// Where messages take longer than members wait, each one would always supersede the other.
#[test]
fn who_takes_over_again_waits_longer() {
    let took = slow_recovery(&Switches::default());
    assert!(took.is_some_and(|seconds| seconds < 120), "{took:?}");
    assert_eq!(slow_recovery(&Switches::broken(PobSwitch::BacksOff)), None);
}
