//! Rules of TFA that are broken: in small scopes the checker notices, or another rule makes up for
//! it.

use Do::{Get, GiveUp, Merge, Nest, Put};
use muesli_check::Level;
use muesli_protocols::tfa::{OwnedObjects, Switches};
use muesli_protocols::two_phase::{FamilySwitch, Sabotage, TwoPhase};

use super::explore::{NESTED_AT_0, NESTED_AT_1, READ_A_AT_2, TAKE_A_AT_1, TAKE_A_AT_2};
use crate::clusters::cluster;
use crate::harness::exploration::{Do, Program, Scope, explore};
use crate::harness::scripted::Script;
use crate::harness::transcripts::scripts;
use crate::two_phase::exploring::LIMIT;

const WRITE_A_AT_2: Program = (2, &[Put("a")]);
const WRITE_B_AT_1: Program = (1, &[Put("b")]);
const WRITE_C_AT_0: Program = (0, &[Put("c")]);
const WRITE_AB_AT_0: Program = (0, &[Put("a"), Put("b")]);
const WRITE_BC_AT_2: Program = (2, &[Put("b"), Put("c")]);
const READ_ABC_AT_0: Program = (0, &[Get("a"), Get("b"), Get("c")]);
/// It is forwarded to the clock of c, before it reads a.
const FORWARDED_AT_1: Program = (1, &[Get("b"), Get("c"), Get("a"), Put("c")]);

/// Children that read what the other transaction writes, and are merged.
const CHILD_READS_A_AT_1: Program = (1, &[Nest, Get("a"), Merge, Put("b")]);
const CHILD_READS_B_AT_0: Program = (0, &[Nest, Get("b"), Merge, Put("a")]);
const GIVES_UP_B_AT_0: Program = (0, &[Nest, Put("b"), GiveUp, Get("a"), Put("a")]);
const READ_B_AT_2: Program = (2, &[Get("b")]);

const WRITE_ABB_AT_0: Program = (0, &[Put("a"), Put("b"), Put("b1")]);
/// Both levels have read what the other transaction overwrites, when the inner one meets a.
const TWO_LEVELS_AT_1: Program =
    (1, &[Nest, Get("b"), Nest, Get("b1"), Get("a"), Merge, Put("b"), Merge]);

/// What is found with some rules broken.
fn violation(
    switches: Switches,
    (before, programs): (&[Program], &[Program]),
    level: Level,
) -> Option<String> {
    let before = before.to_vec();
    let scope = Scope::<TwoPhase<OwnedObjects>> { switches, level, before, ..Scope::of(programs) };
    explore(&scope, LIMIT).violation
}

#[test]
fn a_snapshot_that_moves_without_a_look_is_noticed() {
    let switches = Switches::staying().without(FamilySwitch::MovesValidated);
    let programs: &[_] = &[NESTED_AT_0, NESTED_AT_1];
    assert!(violation(switches, (&[], programs), Level::SerializableAttempts).is_some());
}

#[test]
fn a_look_at_one_level_alone_and_a_rollback_to_an_inner_one_are_noticed() {
    let scope: (&[_], &[_]) = (&[], &[WRITE_ABB_AT_0, TWO_LEVELS_AT_1]);
    for switch in [FamilySwitch::MovesAllLevels, FamilySwitch::UndoesOutermost] {
        let switches = Switches::default().without(switch);
        let found = violation(switches, scope, Level::SerializableAttempts);
        assert!(found.is_some(), "without {switch:?}");
    }
    assert_eq!(violation(Switches::default(), scope, Level::SerializableAttempts), None);
}

/// The transaction itself has read what the other one overwrites, when its child meets a.
const OUTER_READ_AT_1: Program = (1, &[Get("b"), Nest, Get("a"), Merge, Put("c")]);

/// As `validate` is printed for open nesting, which leaves out the innermost open ancestor.
#[test]
fn a_look_that_leaves_out_the_transactions_own_level_is_noticed() {
    let scope: (&[_], &[_]) = (&[], &[WRITE_AB_AT_0, OUTER_READ_AT_1]);
    let switches = Switches::default().without(FamilySwitch::MovesOwnLevel);
    assert!(violation(switches, scope, Level::SerializableAttempts).is_some());
    assert_eq!(violation(Switches::default(), scope, Level::SerializableAttempts), None);
}

#[test]
fn a_copy_that_is_left_behind_is_noticed() {
    let switches = Switches::default().without(FamilySwitch::LeavesNoCopy);
    let programs: &[_] = &[TAKE_A_AT_2, READ_A_AT_2];
    assert!(violation(switches, (&[TAKE_A_AT_1], programs), Level::StrictSerializable).is_some());
}

/// The clock of the repository of a is ahead, where the reader begins.
#[test]
fn a_version_of_before_the_last_lock_is_noticed() {
    let switches = Switches::staying().without(FamilySwitch::ProposalsPassClock);
    let scope: (&[_], &[_]) = (&[TAKE_A_AT_1, TAKE_A_AT_1], &[READ_ABC_AT_0, WRITE_BC_AT_2]);
    assert!(violation(switches, scope, Level::SerializableAttempts).is_some());
    assert_eq!(violation(Switches::staying(), scope, Level::SerializableAttempts), None);
}

/// The test of a commit that is printed, `version <= start`, is right where clocks are; exact
/// versions are where they are not.
#[test]
fn commits_go_by_exact_versions_or_by_clocks() {
    let before: &[_] = &[WRITE_B_AT_1, WRITE_C_AT_0, WRITE_C_AT_0];
    let scope: (&[_], &[_]) = (before, &[FORWARDED_AT_1, WRITE_AB_AT_0]);
    let (by_clocks, exactly) = (
        Switches::staying().without(FamilySwitch::ComparesExactly),
        Switches::staying().without(FamilySwitch::LooksRaise),
    );
    assert_eq!(violation(by_clocks, scope, Level::StrictSerializable), None);
    assert_eq!(violation(exactly, scope, Level::StrictSerializable), None);
    let neither = exactly.without(FamilySwitch::ComparesExactly);
    assert!(violation(neither, scope, Level::Serializable).is_some());
}

#[test]
fn a_blind_write_that_is_locked_at_no_owner_is_noticed() {
    let switches = Switches::default().without(FamilySwitch::WritesAtOwner);
    let scope: (&[_], &[_]) = (&[TAKE_A_AT_1], &[WRITE_A_AT_2, TAKE_A_AT_1]);
    assert!(violation(switches, scope, Level::StrictSerializable).is_some());
    assert_eq!(violation(Switches::default(), scope, Level::StrictSerializable), None);
}

/// What a merged child has read is validated, and looked at, with what its parent has.
#[test]
fn reads_that_a_merged_child_takes_along_are_noticed() {
    let switches = Switches::staying().without(FamilySwitch::MergesReads);
    let scope: (&[_], &[_]) = (&[], &[CHILD_READS_A_AT_1, CHILD_READS_B_AT_0]);
    assert!(violation(switches, scope, Level::Serializable).is_some());
    assert_eq!(violation(Switches::staying(), scope, Level::StrictSerializable), None);
}

#[test]
fn a_write_that_a_level_leaves_behind_is_noticed() {
    let switches = Switches::staying().without(FamilySwitch::UndoesWrites);
    let scope: (&[_], &[_]) = (&[], &[GIVES_UP_B_AT_0, READ_B_AT_2]);
    assert!(violation(switches, scope, Level::Serializable).is_some());
    assert_eq!(violation(Switches::staying(), scope, Level::StrictSerializable), None);
}

/// Its directory has the key by then, and would point away.
#[test]
#[should_panic(expected = "went, and is here")]
fn stale_news_that_a_directory_believes_are_noticed() {
    let scripts = scripts("tfa");
    let script = scripts.iter().find(|(name, _)| name == "stale_news_are_ignored.txt");
    let (_, text) = script.expect("a script in which the rule holds");
    let broken = text.replace("protocol=tfa-moving", "protocol=tfa-moving off=ignores_stale_news");
    let played = goldenscript::generate(&mut Script::new(cluster), &broken);
    played.expect("a script that runs");
}

#[test]
fn a_version_of_before_the_locks_is_noticed() {
    let switches = Switches::staying().without(FamilySwitch::ProposesUnderLocks);
    let scope: (&[_], &[_]) = (&[TAKE_A_AT_1, TAKE_A_AT_1], &[READ_ABC_AT_0, WRITE_BC_AT_2]);
    assert!(violation(switches, scope, Level::SerializableAttempts).is_some());
}
