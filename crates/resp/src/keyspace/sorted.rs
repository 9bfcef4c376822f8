//! Sorted sets: a row for each member with its score, and one in the order of the scores.

use std::ops::Bound;

use muesli::{Range, SmallBytes};

use super::rows::{ContentPart, Id, RowKey, score_bytes, score_of};
use super::scope::{KeyHandle, KeyScope};
use super::stop::CommandStop;

/// Of so many members it is not looked whether they are all that there are.
const TAKEN_SINGLY: usize = 256;

/// A member with its score.
pub(crate) type Scored = (SmallBytes, f64);

/// A range of members by score.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Scores {
    pub lo: Bound<f64>,
    pub hi: Bound<f64>,
}

/// A range of members of one score by their bytes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Texts {
    pub lo: Bound<Vec<u8>>,
    pub hi: Bound<Vec<u8>>,
    /// No member is in it.
    pub is_empty: bool,
}

fn score_row(id: Id, score: f64, member: &[u8]) -> SmallBytes {
    RowKey::content(id, ContentPart::Score).bytes(&score_bytes(score)).bytes(member).done()
}

/// The score that a member's row has.
pub(crate) fn score_in(value: &SmallBytes) -> f64 {
    value.as_slice().first_chunk().map_or(0.0, |it| f64::from_be_bytes(*it))
}

/// The rows of a range.
#[derive(Clone, Debug)]
pub(crate) struct ScoreRows {
    lo: SmallBytes,
    hi: Option<SmallBytes>,
}

impl ScoreRows {
    pub fn all(id: Id) -> ScoreRows {
        let lo = RowKey::content(id, ContentPart::Score).done();
        ScoreRows { hi: lo.prefix_end(), lo }
    }

    pub fn of_scores(id: Id, scores: Scores) -> ScoreRows {
        let row =
            |score: f64| RowKey::content(id, ContentPart::Score).bytes(&score_bytes(score)).done();
        let all = ScoreRows::all(id);
        let lo = match scores.lo {
            Bound::Included(score) => row(score),
            Bound::Excluded(score) => row(score).prefix_end().unwrap_or(all.lo),
            Bound::Unbounded => all.lo,
        };
        let hi = match scores.hi {
            Bound::Included(score) => row(score).prefix_end(),
            Bound::Excluded(score) => Some(row(score)),
            Bound::Unbounded => all.hi,
        };
        ScoreRows { lo, hi }
    }

    fn range(&self) -> Range {
        match &self.hi {
            Some(hi) if *hi <= self.lo => Range::of(self.lo.as_slice()..self.lo.as_slice()),
            Some(hi) => Range::of(self.lo.as_slice()..hi.as_slice()),
            None => Range::of(self.lo.as_slice()..),
        }
    }
}

impl Texts {
    /// Whether a member is in the range.
    fn holds(&self, member: &[u8]) -> bool {
        let above = match &self.lo {
            Bound::Included(lo) => member >= &lo[..],
            Bound::Excluded(lo) => member > &lo[..],
            Bound::Unbounded => true,
        };
        above
            && match &self.hi {
                Bound::Included(hi) => member <= &hi[..],
                Bound::Excluded(hi) => member < &hi[..],
                Bound::Unbounded => true,
            }
    }
}

impl KeyScope<'_> {
    pub async fn score(&self, id: Id, member: &[u8]) -> Result<Option<f64>, CommandStop> {
        Ok(self.member(id, member).await?.as_ref().map(score_in))
    }

    /// Gives a member a score; the one that it had.
    pub async fn put_score(
        &self,
        id: Id,
        member: &[u8],
        score: f64,
    ) -> Result<Option<f64>, CommandStop> {
        let value = SmallBytes::new(&score.to_be_bytes());
        let before = self.put_member(id, member, value).await?.as_ref().map(score_in);
        if before != Some(score) {
            if let Some(before) = before {
                self.delete(score_row(id, before, member)).await?;
            }
            self.put(score_row(id, score, member), SmallBytes::EMPTY).await?;
        }
        Ok(before)
    }

    /// Takes a member away; the score that it had.
    pub async fn take_score(&self, id: Id, member: &[u8]) -> Result<Option<f64>, CommandStop> {
        let before = self.take_member(id, member).await?.as_ref().map(score_in);
        if let Some(score) = before {
            self.delete(score_row(id, score, member)).await?;
        }
        Ok(before)
    }

    /// Takes members of a key away; the key goes with the last of them, and all its rows at once
    /// where all go.
    pub async fn take_scores(
        &self,
        entry: &mut KeyHandle,
        id: Id,
        gone: &[Scored],
    ) -> Result<(), CommandStop> {
        if gone.is_empty() {
            return Ok(());
        }
        self.changed(entry).await?;
        if gone.len() > TAKEN_SINGLY && gone.len() as i64 == self.members_count(id).await? {
            return self.vanish(entry).await;
        }
        for (member, _) in gone {
            self.take_score(id, member.as_slice()).await?;
        }
        self.drop_if_empty(entry, id, ContentPart::Member).await
    }

    /// The members of a range in order, from an offset on, at most so many.
    pub async fn scored(
        &self,
        id: Id,
        rows: &ScoreRows,
        reverse: bool,
        offset: usize,
        most: usize,
    ) -> Result<Vec<Scored>, CommandStop> {
        let range = rows.range().limit(offset.saturating_add(most));
        let range = if reverse { range.reverse() } else { range };
        let before = RowKey::content(id, ContentPart::Score).len();
        let found = self.scan(range).await?;
        let scored = |(row, _): (SmallBytes, SmallBytes)| {
            let (score, member) = row.as_slice()[before..].split_first_chunk()?;
            Some((SmallBytes::new(member), score_of(*score)))
        };
        Ok(found.into_iter().skip(offset).filter_map(scored).collect())
    }

    /// The members of a range by their bytes, as if all had one score.
    pub async fn scored_texts(
        &self,
        id: Id,
        texts: &Texts,
        reverse: bool,
    ) -> Result<Vec<Scored>, CommandStop> {
        if texts.is_empty {
            return Ok(Vec::new());
        }
        let mut all = self.scored(id, &ScoreRows::all(id), reverse, 0, usize::MAX).await?;
        all.retain(|(member, _)| texts.holds(member.as_slice()));
        Ok(all)
    }

    /// How many members come before this one.
    pub async fn rank(
        &self,
        id: Id,
        member: &[u8],
        reverse: bool,
    ) -> Result<Option<usize>, CommandStop> {
        let Some(score) = self.score(id, member).await? else { return Ok(None) };
        let (all, own) = (ScoreRows::all(id), score_row(id, score, member));
        let rows = match reverse {
            false => ScoreRows { lo: all.lo, hi: Some(own) },
            true => ScoreRows { lo: own.successor(), hi: all.hi },
        };
        Ok(Some(self.scan(rows.range()).await?.len()))
    }
}
