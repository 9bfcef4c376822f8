//! Ranges of sorted sets: by index, by score, by member.

use crate::call::{Answer, CommandCall, index_range, integer_or};
use crate::commands::sorted::bounds;
use crate::commands::sorted::members::{scored_replies, store};
use crate::keyspace::header::ValueKind;
use crate::keyspace::rows::Id;
use crate::keyspace::sorted::{ScoreRows, Scored};
use crate::keyspace::stop::{CommandStop, texts};
use crate::protocol::reply::RespReply;

/// What a range goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    Index,
    Score,
    Text,
}

/// A range, as it is asked for.
#[derive(Clone, Copy)]
pub(super) struct RangeQuery {
    by: By,
    reverse: bool,
    limit: Option<(i64, i64)>,
    scores: bool,
    /// Where its key stands, behind which are both ends.
    key: usize,
}

impl RangeQuery {
    pub fn all(by: By, reverse: bool, key: usize) -> RangeQuery {
        RangeQuery { by, reverse, limit: None, scores: false, key }
    }

    /// Reads the options behind the ends; `any`: those of ZRANGE, too.
    fn read(self, call: &CommandCall<'_>, any: bool) -> Result<RangeQuery, CommandStop> {
        let (mut wanted, mut at) = (self, self.key + 3);
        let stores = self.key == 2;
        while at < call.len() {
            match () {
                () if !stores && call.is(at, "WITHSCORES") => wanted.scores = true,
                () if call.is(at, "LIMIT") && at + 2 < call.len() => {
                    let number = |at| integer_or(call.arg(at), texts::NO_INTEGER);
                    wanted.limit = Some((number(at + 1)?, number(at + 2)?));
                    at += 2;
                }
                () if any && call.is(at, "BYSCORE") => wanted.by = By::Score,
                () if any && call.is(at, "BYLEX") => wanted.by = By::Text,
                () if any && call.is(at, "REV") => wanted.reverse = true,
                () => return CommandStop::refused(texts::SYNTAX),
            }
            at += 1;
        }
        if wanted.limit.is_some() && wanted.by == By::Index {
            return CommandStop::refused(
                "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or \
                 BYLEX",
            );
        }
        if wanted.scores && wanted.by == By::Text {
            return CommandStop::refused(
                "ERR syntax error, WITHSCORES not supported in combination with BYLEX",
            );
        }
        Ok(wanted)
    }

    /// The members of the range.
    pub async fn find(
        self,
        call: &CommandCall<'_>,
    ) -> Result<Option<(Id, Vec<Scored>)>, CommandStop> {
        let ends = (call.arg(self.key + 1), call.arg(self.key + 2));
        let (lo, hi) = if self.reverse { (ends.1, ends.0) } else { ends };
        let (offset, most) = match self.limit {
            Some((offset, most)) => {
                let most = usize::try_from(most).unwrap_or(usize::MAX);
                (usize::try_from(offset).ok(), most)
            }
            None => (Some(0), usize::MAX),
        };
        let scope = call.scope;
        match self.by {
            By::Index => {
                let number = |text| integer_or(text, texts::NO_INTEGER);
                let (start, stop) = (number(ends.0)?, number(ends.1)?);
                let Some(id) = self.id(call).await? else { return Ok(None) };
                let count = scope.members_count(id).await?;
                let Some((from, to)) = index_range(start, stop, count) else {
                    return Ok(Some((id, Vec::new())));
                };
                let (all, from, most) = (ScoreRows::all(id), from as usize, (to - from) as usize);
                Ok(Some((id, scope.scored(id, &all, self.reverse, from, most).await?)))
            }
            By::Score => {
                let scores = bounds::scores(lo, hi)?;
                let Some(id) = self.id(call).await? else { return Ok(None) };
                let rows = ScoreRows::of_scores(id, scores);
                let Some(offset) = offset else { return Ok(Some((id, Vec::new()))) };
                Ok(Some((id, scope.scored(id, &rows, self.reverse, offset, most).await?)))
            }
            By::Text => {
                let texts = bounds::texts(lo, hi)?;
                let Some(id) = self.id(call).await? else { return Ok(None) };
                let found = scope.scored_texts(id, &texts, self.reverse).await?;
                let Some(offset) = offset else { return Ok(Some((id, Vec::new()))) };
                Ok(Some((id, found.into_iter().skip(offset).take(most).collect())))
            }
        }
    }

    async fn id(self, call: &CommandCall<'_>) -> Result<Option<Id>, CommandStop> {
        call.scope.rows(call.db, call.arg(self.key), ValueKind::Sorted).await
    }
}

async fn range(call: &CommandCall<'_>, wanted: RangeQuery, any: bool) -> Answer {
    let wanted = wanted.read(call, any)?;
    let found = wanted.find(call).await?.map_or_else(Vec::new, |it| it.1);
    Ok(scored_replies(call, found, wanted.scores))
}

pub(super) async fn zrange(call: &CommandCall<'_>) -> Answer {
    range(call, RangeQuery::all(By::Index, false, 1), true).await
}

pub(super) async fn zrevrange(call: &CommandCall<'_>) -> Answer {
    range(call, RangeQuery::all(By::Index, true, 1), false).await
}

pub(super) async fn zrangebyscore(call: &CommandCall<'_>) -> Answer {
    range(call, RangeQuery::all(By::Score, false, 1), false).await
}

pub(super) async fn zrevrangebyscore(call: &CommandCall<'_>) -> Answer {
    range(call, RangeQuery::all(By::Score, true, 1), false).await
}

pub(super) async fn zrangebylex(call: &CommandCall<'_>) -> Answer {
    range(call, RangeQuery::all(By::Text, false, 1), false).await
}

pub(super) async fn zrevrangebylex(call: &CommandCall<'_>) -> Answer {
    range(call, RangeQuery::all(By::Text, true, 1), false).await
}

pub(super) async fn zrangestore(call: &CommandCall<'_>) -> Answer {
    let wanted = RangeQuery::all(By::Index, false, 2).read(call, true)?;
    let found = wanted.find(call).await?.map_or_else(Vec::new, |it| it.1);
    store(call, found).await
}

pub(super) async fn zcount(call: &CommandCall<'_>) -> Answer {
    let found = RangeQuery::all(By::Score, false, 1).find(call).await?;
    Ok(RespReply::count(found.map_or(0, |it| it.1.len())))
}

pub(super) async fn zlexcount(call: &CommandCall<'_>) -> Answer {
    let found = RangeQuery::all(By::Text, false, 1).find(call).await?;
    Ok(RespReply::count(found.map_or(0, |it| it.1.len())))
}
