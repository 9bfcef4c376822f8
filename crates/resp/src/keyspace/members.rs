//! Fields of hashes, members of sets and of sorted sets: a row each, in the order of their hashes.

use std::collections::BTreeSet;

use muesli::{Range, SmallBytes};

use super::rows::{ContentPart, Id, RowKey, hash};
use super::scope::KeyScope;
use super::stop::CommandStop;

/// Of a collection of up to so many members, random ones are chosen among all.
pub(crate) const CHOSEN_AMONG: usize = 1024;
/// For each random member so many are drawn at most, of which some may be the same.
const DRAWS_EACH: usize = 8;

/// A member with what it has: a field's value, a score, nothing.
pub(crate) type Member = (SmallBytes, SmallBytes);

fn member_row(id: Id, member: &[u8]) -> SmallBytes {
    RowKey::content(id, ContentPart::Member).hashed(member).done()
}

fn member_of((row, value): (SmallBytes, SmallBytes), before: usize) -> Member {
    (SmallBytes::new(&row.as_slice()[before..]), value)
}

/// How many bytes a row's key has before the member.
fn before_members(id: Id) -> usize {
    RowKey::content(id, ContentPart::Member).len() + size_of::<u32>()
}

impl KeyScope<'_> {
    pub async fn member(&self, id: Id, member: &[u8]) -> Result<Option<SmallBytes>, CommandStop> {
        self.get(member_row(id, member)).await
    }

    /// What some members have, read at once; `None` for one that is not there. What reads or writes
    /// them afterwards in the same transaction need not ask for them.
    pub async fn members_at(
        &self,
        id: Id,
        members: impl Iterator<Item = &[u8]>,
    ) -> Result<Vec<Option<SmallBytes>>, CommandStop> {
        let rows = members.map(|member| member_row(id, member));
        Ok(self.tx.get_many(self.space, rows).await?)
    }

    /// Writes a member; what it had.
    pub async fn put_member(
        &self,
        id: Id,
        member: &[u8],
        value: SmallBytes,
    ) -> Result<Option<SmallBytes>, CommandStop> {
        let row = member_row(id, member);
        let before = self.get(row.clone()).await?;
        if before.as_ref() != Some(&value) {
            self.put(row, value).await?;
        }
        if before.is_none() {
            self.count(RowKey::content(id, ContentPart::Count), 1).await?;
        }
        Ok(before)
    }

    /// Takes a member away; what it had.
    pub async fn take_member(
        &self,
        id: Id,
        member: &[u8],
    ) -> Result<Option<SmallBytes>, CommandStop> {
        let row = member_row(id, member);
        let before = self.get(row.clone()).await?;
        if before.is_some() {
            self.delete(row).await?;
            self.count(RowKey::content(id, ContentPart::Count), -1).await?;
        }
        Ok(before)
    }

    /// How many members there are.
    pub async fn members_count(&self, id: Id) -> Result<i64, CommandStop> {
        self.total(RowKey::content(id, ContentPart::Count)).await
    }

    /// All members.
    pub async fn members(&self, id: Id) -> Result<Vec<Member>, CommandStop> {
        let all = RowKey::content(id, ContentPart::Member).done();
        self.members_in(id, Range::prefix(all.as_slice())).await
    }

    async fn members_in(&self, id: Id, range: Range) -> Result<Vec<Member>, CommandStop> {
        let before = before_members(id);
        let rows = self.scan(range).await?;
        Ok(rows.into_iter().map(|row| member_of(row, before)).collect())
    }

    /// The members whose hashes come next from `from` on, about so many, and where to go on; 0:
    /// that was all.
    pub async fn members_from(
        &self,
        id: Id,
        from: u64,
        about: usize,
    ) -> Result<(u64, Vec<Member>), CommandStop> {
        let prefix = RowKey::content(id, ContentPart::Member).done();
        let (rows, next) = self.page(prefix.as_slice(), from, about).await?;
        let before = before_members(id);
        Ok((next, rows.into_iter().map(|row| member_of(row, before)).collect()))
    }

    /// The rows with a prefix whose hashes come next, all of a hash together, and where to go on.
    pub async fn page(
        &self,
        prefix: &[u8],
        from: u64,
        about: usize,
    ) -> Result<(Vec<(SmallBytes, SmallBytes)>, u64), CommandStop> {
        let Ok(from) = u32::try_from(from) else { return Ok((Vec::new(), 0)) };
        let all = SmallBytes::new(prefix);
        let range = |from: u32| {
            let from = [prefix, &from.to_be_bytes()].concat();
            match all.prefix_end() {
                Some(end) => Range::of(&from[..]..end.as_slice()),
                None => Range::of(&from[..]..),
            }
        };
        let mut rows = self.scan(range(from).limit(about)).await?;
        let hash_of = |row: &SmallBytes| {
            let bytes = row.as_slice()[prefix.len()..].first_chunk();
            bytes.map_or(0, |it| u32::from_be_bytes(*it))
        };
        if rows.len() < about {
            return Ok((rows, 0));
        }
        let last = rows.last().map_or(0, |(row, _)| hash_of(row));
        // Those of the same hash that did not go in.
        rows.retain(|(row, _)| hash_of(row) != last);
        let lo = [prefix, &last.to_be_bytes()].concat();
        rows.extend(self.scan(Range::prefix(&lo)).await?);
        Ok((rows, last.checked_add(1).map_or(0, u64::from)))
    }

    /// Random members, each once, at most so many.
    pub async fn random_members(&self, id: Id, most: usize) -> Result<Vec<Member>, CommandStop> {
        let count = usize::try_from(self.members_count(id).await?).unwrap_or(0);
        if count > CHOSEN_AMONG && most <= count / 2 {
            let (mut chosen, mut known) = (Vec::new(), BTreeSet::new());
            for _ in 0..most * DRAWS_EACH {
                if chosen.len() == most {
                    break;
                }
                let member = self.member_near(id, fastrand::u32(..)).await?;
                let Some(member) = member else { break };
                if known.insert(hash(member.0.as_slice())) {
                    chosen.push(member);
                }
            }
            if chosen.len() == most {
                return Ok(chosen);
            }
        }
        let mut all = self.members(id).await?;
        let count = all.len();
        let most = most.min(count);
        for at in 0..most {
            all.swap(at, fastrand::usize(at..count));
        }
        all.truncate(most);
        Ok(all)
    }

    /// The first member from this hash on, or the first one of all.
    async fn member_near(&self, id: Id, at: u32) -> Result<Option<Member>, CommandStop> {
        let all = RowKey::content(id, ContentPart::Member).done();
        let from = RowKey::content(id, ContentPart::Member).at_hash(at).done();
        let range = match all.prefix_end() {
            Some(end) => Range::of(from.as_slice()..end.as_slice()),
            None => Range::of(from.as_slice()..),
        };
        let mut near = self.members_in(id, range.limit(1)).await?;
        if near.is_empty() {
            near = self.members_in(id, Range::prefix(all.as_slice()).limit(1)).await?;
        }
        Ok(near.pop())
    }
}
