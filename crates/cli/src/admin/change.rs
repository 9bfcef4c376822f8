//! Changes of the placement: transactions on its row, and then a word to the servers.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use muesli::{Connect, Db, Space};
use muesli_core::{
    NodeId, Reader, ReplicaRole, RepositoryId, Secret, SmallBytes, Tag, Wire, WireError,
};
use muesli_group::placement::{KEY, PlacementRow, Refused, SPACE, Shape};

use super::survey::Survey;

/// How long a member may take to arrive, and how long is waited for others that are under way.
const PATIENCE: Duration = Duration::from_secs(60);
/// What the tag of the placement's row is for.
const PURPOSE: &str = "muesli: the row of the placement";
/// How often is looked.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A way into a cluster for whoever looks after it.
pub struct Admin {
    addresses: Vec<String>,
    secret: Option<Secret>,
    db: Db,
    space: Space,
}

/// Makes the next row from the present one and what the servers say.
trait PlacementChange:
    Fn(&PlacementRow, &Survey) -> Result<PlacementRow, Refused> + Clone + Send + 'static
{
}

impl<R> PlacementChange for R where
    R: Fn(&PlacementRow, &Survey) -> Result<PlacementRow, Refused> + Clone + Send + 'static
{
}

impl Admin {
    /// Connects to the cluster that these addresses belong to.
    ///
    /// # Errors
    /// It does not answer, has no groups, or wants a secret that is not this one.
    pub fn connect(
        addresses: Vec<String>,
        protocol: &str,
        secret: Option<Secret>,
    ) -> anyhow::Result<Admin> {
        let survey = Survey::of(&addresses, secret.as_ref())?;
        survey.check_groups()?;
        survey.prove()?;
        let connect = Connect {
            addresses: addresses.clone(),
            protocol: protocol.to_owned(),
            secret: secret.clone(),
            ..Connect::default()
        };
        let db = Db::connect_with(connect)?;
        let space = db.space(SPACE).context("the cluster has no row of its placement")?;
        Ok(Admin { addresses, secret, db, space })
    }

    /// What the servers say.
    ///
    /// # Errors
    /// None of them answers.
    pub fn survey(&self) -> anyhow::Result<Survey> {
        Survey::of(&self.addresses, self.secret.as_ref())
    }

    /// The row as it is now.
    ///
    /// # Errors
    /// The database does not answer.
    pub fn row(&self) -> anyhow::Result<PlacementRow> {
        self.change(|row| Ok(row.clone()))
    }

    /// Lets a server come in.
    ///
    /// # Errors
    /// Its number is not the next one, or the database does not answer.
    pub fn join(&self, server: u32, address: &str) -> anyhow::Result<String> {
        let survey = self.survey()?;
        let (servers, shape) = (&survey.map.servers, survey.shape);
        let known = servers.len();
        let addresses = each_loop(address, shape.loops)?;
        if servers.iter().any(|(_, it)| addresses.contains(it)) {
            bail!("a server at {address} is known already");
        }
        let row = self.change(move |row| {
            // Who wrote the row may not have told everybody yet.
            let more = row.joined.iter().filter(|(it, _)| it.0 as usize >= known).count();
            row.with_server(server, &addresses, known + more, shape)
        })?;
        self.survey()?.tell(&row);
        Ok(format!("server {server} may come in; it holds no members yet"))
    }

    /// Takes a server that holds no members off the list, for good.
    ///
    /// # Errors
    /// There is no such server, it holds members, or the database does not answer.
    pub fn leave(&self, server: u32) -> anyhow::Result<String> {
        let survey = self.survey()?;
        let shape = survey.shape;
        survey.check_server(server)?;
        let row = self.change(move |row| row.without_server(server, shape))?;
        // It is one of those that are told, and stops then.
        survey.tell(&row);
        Ok(format!("server {server} has left the cluster for good; it stops if it runs"))
    }

    /// Moves a member, and waits until it takes part where it lives now.
    ///
    /// # Errors
    /// The rules say no, or it does not arrive in time.
    pub fn move_member(&self, member: RepositoryId, to: NodeId) -> anyhow::Result<String> {
        let survey = self.survey()?;
        survey.check_node(to)?;
        let shape = survey.shape;
        let placement_change = move |row: &PlacementRow, survey: &Survey| {
            row.moved(member, to, shape, |it| survey.role(row, it))
        };
        let row = self.decide(survey, placement_change)?;
        self.wait_for(member, to, &row)?;
        Ok(format!("member {} lives on node {} and takes part", member.0, to.0))
    }

    /// Moves a member off a server, alive or lost, to another one; what was done, or none where no
    /// member lives there.
    ///
    /// # Errors
    /// There is no such server or no other node for the member, or the move fails.
    pub fn drain_one(&self, server: u32) -> anyhow::Result<Option<String>> {
        let (row, survey) = (self.row()?, self.survey()?);
        survey.check_server(server)?;
        let here = row.homes.iter().position(|(home, _)| survey.shape.server(*home) == server);
        let Some(member) = here.map(|at| RepositoryId(at as u16)) else { return Ok(None) };
        let up = survey.servers.iter().filter(|server| server.answer.is_some());
        let to = target(&row, survey.shape, up.map(|server| server.node), member)
            .with_context(|| format!("member {} finds no other node", member.0))?;
        self.move_member(member, to).map(Some)
    }

    /// Gives a group one more member, and waits until it takes part.
    ///
    /// # Errors
    /// The rules say no, or it does not arrive in time.
    pub fn grow(&self, group: u16, to: NodeId) -> anyhow::Result<String> {
        let survey = self.survey()?;
        survey.check_node(to)?;
        if !survey.answers(to) {
            bail!("node {} does not answer; a new member has to learn there first", to.0);
        }
        let shape = survey.shape;
        let placement_change = move |row: &PlacementRow, survey: &Survey| {
            let next = row.grown(group, to, shape, |it| survey.role(row, it));
            next.map(|(row, _)| row)
        };
        let row = self.decide(survey, placement_change)?;
        let member = row.member_on(group, to)?;
        self.wait_for(member, to, &row)?;
        let members = row.members(group).count();
        Ok(format!("group {group} has {members} members; member {} takes part", member.0))
    }

    /// Takes the member on a node, alive or lost, from its group: first the group goes on without
    /// it, and then it is gone. Where it was told to go before, completes that.
    ///
    /// # Errors
    /// The rules say no, or the others do not come to go on without it in time.
    pub fn shrink(&self, group: u16, from: NodeId) -> anyhow::Result<String> {
        let member = self.row()?.member_on(group, from)?;
        let there = move |row: &PlacementRow| match row.home(member)? == from {
            true => Ok(()),
            false => Err(Refused::NotThere { group, node: from }),
        };
        let going = move |row: &PlacementRow, survey: &Survey| {
            there(row)?;
            row.shrinking(member, |it| survey.role(row, it))
        };
        let row = self.decide(self.survey()?, going)?;
        self.survey()?.tell(&row);
        let gone = move |row: &PlacementRow, survey: &Survey| {
            there(row)?;
            row.shrunk(member, |it| survey.role(row, it))
        };
        let row = self.decide(self.survey()?, gone)?;
        self.survey()?.tell(&row);
        let members = row.members(group).count();
        Ok(format!("group {group} has {members} members; member {} is gone", member.0))
    }

    /// Waits until a member takes part where it is to live by this row.
    fn wait_for(&self, member: RepositoryId, to: NodeId, row: &PlacementRow) -> anyhow::Result<()> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let survey = self.survey()?;
            survey.tell(row);
            // Somebody else may have made further changes meanwhile.
            let now = self.row()?;
            if now.home(member) != Ok(to)
                || survey.role(&now, member).is_some_and(ReplicaRole::takes_part)
            {
                return Ok(());
            }
            if Instant::now() > deadline {
                let seconds = PATIENCE.as_secs();
                bail!(
                    "member {} is to live on node {} now, but does not take part after {seconds} \
                     s; `muesli admin members` tells which others it waits for",
                    member.0,
                    to.0
                );
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// Writes the row that a rule makes by what the servers say. As long as members that it needs
    /// do not take part, tries again.
    fn decide(
        &self,
        mut survey: Survey,
        placement_change: impl PlacementChange,
    ) -> anyhow::Result<PlacementRow> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            // A node that is behind would not count.
            survey.tell(&self.row()?);
            survey = self.survey()?;
            let (placement_change, seen) = (placement_change.clone(), Arc::new(survey));
            let next = self.attempt(move |row| placement_change(row, &seen))?;
            match next {
                Err(Refused::UnderWay { .. } | Refused::TooFew { .. })
                    if Instant::now() < deadline =>
                {
                    std::thread::sleep(LOOK_EVERY);
                    survey = self.survey()?;
                }
                done => return Ok(done?),
            }
        }
    }

    fn change(
        &self,
        placement_change: impl Fn(&PlacementRow) -> Result<PlacementRow, Refused>
        + Clone
        + Send
        + 'static,
    ) -> anyhow::Result<PlacementRow> {
        Ok(self.attempt(placement_change)??)
    }

    /// One transaction: reads the row, and writes what the rule makes of it, if that is another.
    fn attempt(
        &self,
        placement_change: impl Fn(&PlacementRow) -> Result<PlacementRow, Refused>
        + Clone
        + Send
        + 'static,
    ) -> anyhow::Result<Result<PlacementRow, Refused>> {
        let (space, first) = (self.space, PlacementRow::of(&self.db.catalog()));
        let (secret, known) = (self.secret.clone(), self.survey()?.row());
        let done = self.db.strict().blocking().transact(async move |tx| {
            let found = tx.get(space, SmallBytes::new(KEY)).await?;
            let row = found.map(|bytes| read(bytes.as_slice(), secret.as_ref(), &known));
            let row = match row {
                None => first.clone(),
                Some(Ok(row)) => row,
                Some(Err(error)) => return Ok(Err(format!("the row is damaged: {error}"))),
            };
            let next = placement_change(&row);
            if let Ok(next) = &next
                && *next != row
            {
                tx.put(space, SmallBytes::new(KEY), written(next, secret.as_ref())).await?;
            }
            Ok::<_, muesli::Error>(Ok(next))
        })?;
        done.map_err(anyhow::Error::msg)
    }
}

/// Of these nodes the one with the fewest members whose server holds none of a member's group, the
/// member itself included.
fn target(
    row: &PlacementRow,
    shape: Shape,
    nodes: impl Iterator<Item = NodeId>,
    member: RepositoryId,
) -> Option<NodeId> {
    let all = row.others(member).chain([member]);
    let taken: Vec<_> =
        all.filter_map(|other| row.home(other).ok()).map(|home| shape.server(home)).collect();
    let free = nodes.filter(|node| !taken.contains(&shape.server(*node)));
    free.min_by_key(|node| row.homes.iter().filter(|(home, _)| home == node).count())
}

/// The bytes of a row, with a tag after it where there is a secret.
fn written(row: &PlacementRow, secret: Option<&Secret>) -> Vec<u8> {
    let mut bytes = Vec::new();
    row.encode(&mut bytes);
    if let Some(secret) = secret {
        secret.tag(PURPOSE, &bytes).encode(&mut bytes);
    }
    bytes
}

/// The row that these bytes hold. Any client may write them: where there is a secret, only what an
/// administrator has written counts, and only if the servers know of nothing newer; else what they
/// know.
fn read(
    bytes: &[u8],
    secret: Option<&Secret>,
    known: &PlacementRow,
) -> Result<PlacementRow, WireError> {
    let mut input = Reader::new(bytes);
    let row = PlacementRow::decode(&mut input).and_then(|row| {
        let signed = input.position();
        let tag = if input.left() > 0 { Some(Tag::decode(&mut input)?) } else { None };
        input.finish()?;
        Ok((row, signed, tag))
    });
    let Some(secret) = secret else { return row.map(|(row, ..)| row) };
    let holds = |row: &PlacementRow, signed: usize, tag: Option<Tag>| {
        row.epoch >= known.epoch
            && tag.is_some_and(|tag| secret.verify(PURPOSE, &bytes[..signed], &tag))
    };
    match row {
        Ok((row, signed, tag)) if holds(&row, signed, tag) => Ok(row),
        _ => Ok(known.clone()),
    }
}

/// The addresses of a server's loops: ports counted up from that of the first.
fn each_loop(address: &str, loops: u16) -> anyhow::Result<Vec<String>> {
    let message =
        || format!("{address}: an address ends in a port, with room for all loops after it");
    let (host, port) = address.rsplit_once(':').with_context(message)?;
    let port: u16 = port.parse().ok().filter(|port| *port > 0).with_context(message)?;
    let each = |number: u16| Some(format!("{host}:{}", port.checked_add(number)?));
    (0..loops.max(1)).map(each).collect::<Option<_>>().with_context(message)
}

#[cfg(test)]
mod tests {
    use muesli_core::Catalog;

    use super::*;

    fn row(epoch: u64) -> PlacementRow {
        let homes = vec![(NodeId(0), epoch)];
        PlacementRow { epoch, homes, joined: Vec::new(), left: Vec::new(), leaving: Vec::new() }
    }

    #[test]
    fn with_a_secret_only_rows_of_administrators_count() {
        let secret = Secret::new(b"known to the members alone").unwrap();
        let other = Secret::new(b"known to somebody else only").unwrap();
        let (known, next) = (row(4), row(5));
        let read = |bytes: &[u8]| read(bytes, Some(&secret), &known).unwrap();
        assert_eq!(read(&written(&next, Some(&secret))), next);
        assert_eq!(read(&written(&known, Some(&secret))), known);
        // Of somebody who is no administrator, bent, an old one put back, and garbage.
        assert_eq!(read(&written(&next, None)), known);
        assert_eq!(read(&written(&next, Some(&other))), known);
        let mut bent = written(&next, Some(&secret));
        bent[0] ^= 2;
        assert_eq!(read(&bent), known);
        assert_eq!(read(&written(&row(3), Some(&secret))), known);
        assert_eq!(read(b"garbage"), known);
    }

    #[test]
    fn without_a_secret_every_row_counts() {
        let secret = Secret::new(b"known to the members alone").unwrap();
        for bytes in [written(&row(5), None), written(&row(5), Some(&secret))] {
            assert_eq!(read(&bytes, None, &row(9)), Ok(row(5)));
        }
        assert!(read(b"garbage", None, &row(9)).is_err());
    }

    #[test]
    fn a_drained_member_goes_to_the_emptiest_node_on_a_server_without_its_group() {
        let shape = Shape { group: 3, loops: 2 };
        // Two groups, on servers 0, 1, 2 and 1, 2, 3; there are four of two nodes each.
        let mut homes = [NodeId::NOWHERE; 18];
        homes[..3].copy_from_slice(&[0, 2, 4].map(NodeId));
        homes[9..12].copy_from_slice(&[3, 5, 7].map(NodeId));
        let row = PlacementRow::of(&Catalog::new(&homes, 1, &[]).unwrap());
        let to = |member| target(&row, shape, (0..8).map(NodeId), RepositoryId(member));
        assert_eq!(
            to(0),
            Some(NodeId(6)),
            "server 3 holds none of it, and its other node is taken"
        );
        assert_eq!(to(11), Some(NodeId(1)), "server 0 holds none of it");
        let few = (0..6).map(NodeId);
        assert_eq!(target(&row, shape, few, RepositoryId(1)), None);
    }
}
