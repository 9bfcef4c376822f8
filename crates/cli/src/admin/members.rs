//! What the members of groups do, and whether each group can go on; of a cluster without groups,
//! where its repositories live.

use std::time::{Duration, Instant};

use anyhow::bail;
use muesli_core::{Lag, ReplicaRole, RepositoryId};
use muesli_group::layout;

use super::survey::Survey;
use crate::table;

/// How often is looked.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A table of all members, or of all repositories; and what cannot serve, a line each.
pub fn members(survey: &Survey) -> (String, Vec<String>) {
    if survey.shape.group <= 1 {
        return (repositories(survey), survey.silent().collect());
    }
    let header = ["member", "group", "place", "node", "part", "state", "placement"];
    let mut table = table::new(header.map(str::to_owned).to_vec());
    for server in &survey.servers {
        let Some((placement, replica_roles)) = &server.answer else {
            let row = ["-", "-", "-", &server.node.0.to_string(), "does not answer", "-", "-"];
            table.add_row(row.map(str::to_owned));
            continue;
        };
        for (member, role) in replica_roles {
            let (group, place) = layout::place(*member);
            let numbers = [u32::from(member.0), u32::from(group), u32::from(place), server.node.0];
            let part = format!("{role:?}").to_lowercase();
            let row = numbers.map(|number| number.to_string()).into_iter();
            let lag = server.lags.iter().find(|(it, _)| it == member);
            let state = state(*role, lag.map(|(_, lag)| *lag));
            table.add_row(row.chain([part, state, placement.to_string()]));
        }
    }
    (table.to_string(), without_majority(survey))
}

/// Waits until a majority of each group takes part.
///
/// # Errors
/// It does not in time, or no server answers.
pub fn wait_for_majorities(addresses: &[String], within: Duration) -> anyhow::Result<()> {
    let deadline = Instant::now() + within;
    loop {
        let lacking = without_majority(&Survey::of(addresses, None)?);
        let Some(first) = lacking.first() else { return Ok(()) };
        if Instant::now() > deadline {
            bail!("{first}");
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// Where the repositories of a cluster without groups live.
fn repositories(survey: &Survey) -> String {
    let header = ["repository", "node", "address", "state"];
    let mut table = table::new(header.map(str::to_owned).to_vec());
    for (repository, (home, _)) in survey.map.homes.iter().enumerate() {
        let server = survey.servers.iter().find(|server| server.node == *home);
        let address = server.map_or("-", |server| &server.address);
        let answer = server.and_then(|server| server.answer.as_ref());
        let joins = (RepositoryId(repository as u16), ReplicaRole::Joins);
        let state = match answer {
            None => "does not answer",
            Some((_, replica_roles)) if replica_roles.contains(&joins) => "gets its data back",
            Some(_) => "serves",
        };
        let row = [&*repository.to_string(), &home.0.to_string(), address, state];
        table.add_row(row.map(str::to_owned));
    }
    format!("{table}\nThere are no groups (`group = 1`): each repository is on one node.")
}

/// The groups of which no majority takes part.
fn without_majority(survey: &Survey) -> Vec<String> {
    let row = survey.row();
    let groups = 0..row.homes.len().div_ceil(usize::from(layout::PLACES)) as u16;
    let lost = groups.filter_map(|group| {
        let members: Vec<RepositoryId> = row.members(group).collect();
        let takes_part = |member: &&RepositoryId| {
            let replica_roles = survey.servers.iter().filter_map(|server| server.answer.as_ref());
            let mut replica_roles = replica_roles.flat_map(|(_, replica_roles)| replica_roles);
            replica_roles.any(|(it, role)| it == *member && role.takes_part())
        };
        let (all, part) = (members.len(), members.iter().filter(takes_part).count());
        (all > 0 && part <= all / 2).then(|| {
            format!(
                "group {group} has no majority: {part} of its {all} members take part, and it \
                 serves again when {} do",
                all / 2 + 1
            )
        })
    });
    lost.collect()
}

/// How far a member is, as operators are told.
fn state(role: ReplicaRole, lag: Option<Lag>) -> String {
    match (lag, role) {
        (Some(lag), _) => lag.to_string(),
        (None, ReplicaRole::Lost) => "lost its memory".to_owned(),
        (None, ReplicaRole::Leads) => "hears no majority".to_owned(),
        (None, ReplicaRole::Joins | ReplicaRole::Follows | ReplicaRole::Regroups) => {
            "behind by unknown".to_owned()
        }
        (None, ReplicaRole::Alone | ReplicaRole::Moved | ReplicaRole::Leaves) => "-".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_knows_nothing_is_not_up_to_date() {
        let behind = Lag { entries: 3, bytes: 70, percent: None };
        assert_eq!(state(ReplicaRole::Joins, Some(behind)), "behind by 3 entries / 70 bytes");
        assert_eq!(state(ReplicaRole::Leads, Some(Lag::default())), "up to date");
        assert_eq!(state(ReplicaRole::Joins, None), "behind by unknown");
        assert_eq!(state(ReplicaRole::Follows, None), "behind by unknown", "it is cut off");
        assert_eq!(state(ReplicaRole::Leads, None), "hears no majority");
        assert_eq!(state(ReplicaRole::Lost, None), "lost its memory");
        assert_eq!(state(ReplicaRole::Moved, None), "-");
    }
}
