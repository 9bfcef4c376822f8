//! What a configuration must keep to where repositories live on groups.
//!
//! What one member says to another must fit into a frame, and what it has from another into a
//! record: a message that does not fit is left out, and a member that lacks what is in it would
//! never come back.

use std::time::Duration;

use muesli_core::limits::ENVELOPE_BYTES;
use muesli_log::format::frame::PAYLOAD_MAX;

use crate::lifecycle::options::ServerOptions;

/// A disk that needs fewer ticks is not slow.
const DISK_TICKS_LEAST: u32 = 3;
/// A leader whose disk hangs leads for so long at most, or for so many ticks.
const DISK_MOST: Duration = Duration::from_secs(1);
const DISK_TICKS_MOST: u32 = 20;

/// Adds the rules that these options break, in words.
pub(crate) fn judge(options: &ServerOptions, broken: &mut Vec<String>) {
    if options.group <= 1 {
        return;
    }
    sizes(options, broken);
    disk(options, broken);
}

/// The longest message is the consensus's to a member that comes back: it has decided entries of
/// half a window at most, and those that are not decided, of which there is one or as many as a
/// leader lets there be.
fn sizes(options: &ServerOptions, broken: &mut Vec<String>) {
    let limits = &options.group_limits;
    let envelope = ENVELOPE_BYTES as u64;
    let transaction = options.settings.limits.transaction_bytes as u64;
    let undecided = limits.undecided_bytes_max.max(transaction.saturating_add(envelope));
    let longest = (limits.window_bytes / 2).saturating_add(undecided).saturating_add(envelope);
    for (what, most) in [
        ("`frame_bytes_max`", options.network.frame_bytes_max as u64),
        ("the longest record of a log", PAYLOAD_MAX as u64),
    ] {
        if longest > most {
            broken.push(format!(
                "{what} is {most} and must be at least {longest} where `group` is above 1: half \
                 of `group_window_bytes`, which is {}, and the more of `group_undecided_bytes`, \
                 which is {}, and of `transaction_bytes_max`, which is {transaction}, with \
                 {envelope}, and {envelope} more",
                limits.window_bytes, limits.undecided_bytes_max
            ));
        }
    }
    if limits.log_bytes_min > limits.log_bytes_max {
        let of_loop = if options.loops > 1 { ", an equal part of it for each loop" } else { "" };
        broken.push(format!(
            "`group_log_bytes` = {} must not be above `group_log_bytes_max` = {}{of_loop}",
            limits.log_bytes_min, limits.log_bytes_max
        ));
    }
}

fn disk(options: &ServerOptions, broken: &mut Vec<String>) {
    let (tick, disk) = (options.group_tick, options.group_disk);
    let least = tick.saturating_mul(DISK_TICKS_LEAST);
    let most = DISK_MOST.max(tick.saturating_mul(DISK_TICKS_MOST));
    if !(least..=most).contains(&disk) {
        broken.push(format!(
            "`group_disk_ms` = {} must be from {} to {} where `group_tick_ms` = {}: a disk is slow \
             after {DISK_TICKS_LEAST} ticks, and a leader whose disk hangs is followed by another \
             one soon",
            disk.as_millis(),
            least.as_millis(),
            most.as_millis(),
            tick.as_millis()
        ));
    }
}

#[cfg(test)]
mod tests {
    use muesli_core::NodeId;

    use super::*;
    use crate::lifecycle::validation::broken;

    /// The rules broken by a server of a group where one thing is changed.
    fn after(change: impl FnOnce(&mut ServerOptions)) -> Vec<String> {
        let servers = (0..3).map(|node| (NodeId(node), format!("a:{node}"))).collect();
        let mut options = ServerOptions { group: 3, servers, ..ServerOptions::default() };
        change(&mut options);
        broken(&options)
    }

    fn small(it: &mut ServerOptions) {
        it.settings.limits.value_bytes = 1 << 16;
        it.settings.limits.transaction_bytes = 1 << 20;
        it.network.frame_bytes_max = 2 << 20;
    }

    #[test]
    fn what_is_the_default_can_be_in_groups() {
        assert_eq!(after(|_| {}), [""; 0]);
    }

    #[test]
    fn small_frames_go_with_a_small_window() {
        let refused = after(small);
        assert_eq!(refused.len(), 1, "{refused:?}");
        let expected = "`frame_bytes_max` is 2097152 and must be at least 16842752 where `group`";
        assert!(refused[0].contains(expected), "{refused:?}");
        for key in ["`group_window_bytes`", "`group_undecided_bytes`", "`transaction_bytes_max`"] {
            assert!(refused[0].contains(key), "{refused:?}");
        }
        let fits = after(|it| {
            small(it);
            it.group_limits.window_bytes = 1 << 20;
            it.group_limits.undecided_bytes_max = 1 << 20;
        });
        assert_eq!(fits, [""; 0]);
        // Without groups there are no such messages.
        let alone = after(|it| {
            small(it);
            it.group = 1;
        });
        assert_eq!(alone, [""; 0]);
    }

    #[test]
    fn each_rule_of_groups_is_named_with_its_keys() {
        type Change = fn(&mut ServerOptions);
        let wrong: [(Change, &[&str]); 7] = [
            (
                |it| it.settings.limits.transaction_bytes = 111 << 20,
                &["`frame_bytes_max` is 117440512", "`transaction_bytes_max`, which is 116391936"],
            ),
            (
                |it| it.group_limits.window_bytes = 1 << 30,
                &["at least 637665280", "`group_window_bytes`, which is 1073741824"],
            ),
            (
                |it| it.group_limits.undecided_bytes_max = 1 << 30,
                &["`group_undecided_bytes`, which is 1073741824"],
            ),
            (
                |it| it.group_disk = Duration::from_millis(86_400_000),
                &["`group_disk_ms` = 86400000 ", "from 60 to 1000", "`group_tick_ms` = 20"],
            ),
            (|it| it.group_disk = Duration::from_millis(1), &["`group_disk_ms` = 1 "]),
            (
                |it| it.group_tick = Duration::from_millis(200),
                &["`group_disk_ms` = 400 ", "from 600 to 4000", "`group_tick_ms` = 200"],
            ),
            (
                |it| it.group_limits.log_bytes_min = (1 << 30) + 1,
                &["`group_log_bytes` = 1073741825", "`group_log_bytes_max` = 1073741824"],
            ),
        ];
        for (change, parts) in wrong {
            let broken = after(change);
            assert!(parts.iter().all(|part| broken[0].contains(part)), "{broken:?}: {parts:?}");
            let others = broken.iter().filter(|it| !it.contains("the longest record of a log"));
            assert_eq!(others.count(), 1, "{broken:?}");
        }
    }
}
