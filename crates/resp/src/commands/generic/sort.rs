//! Sorted views of lists, sets and sorted sets.

use std::cmp::Ordering;

use muesli::SmallBytes;

use crate::call::{Answer, CommandCall};
use crate::keyspace::header::{KeyValue, ValueKind};
use crate::keyspace::lists::ListEnd;
use crate::keyspace::sorted::ScoreRows;
use crate::keyspace::stop::{CommandStop, texts};
use crate::protocol::numbers;
use crate::protocol::reply::RespReply;

/// How members are sorted, and what is shown of each.
#[derive(Default)]
struct SortOptions<'a> {
    by: Option<&'a [u8]>,
    limit: Option<(i64, i64)>,
    get: Vec<&'a [u8]>,
    descending: bool,
    alpha: bool,
    store: Option<&'a [u8]>,
}

impl<'a> SortOptions<'a> {
    fn read(call: &CommandCall<'a>, may_store: bool) -> Result<SortOptions<'a>, CommandStop> {
        let mut options = SortOptions::default();
        let mut at = 2;
        while at < call.len() {
            let left = call.len() - at - 1;
            match () {
                () if call.is(at, "ASC") => options.descending = false,
                () if call.is(at, "DESC") => options.descending = true,
                () if call.is(at, "ALPHA") => options.alpha = true,
                () if call.is(at, "LIMIT") && left >= 2 => {
                    options.limit = Some((call.integer(at + 1)?, call.integer(at + 2)?));
                    at += 2;
                }
                () if call.is(at, "BY") && left >= 1 => {
                    options.by = Some(call.arg(at + 1));
                    at += 1;
                }
                () if call.is(at, "GET") && left >= 1 => {
                    options.get.push(call.arg(at + 1));
                    at += 1;
                }
                () if may_store && call.is(at, "STORE") && left >= 1 => {
                    options.store = Some(call.arg(at + 1));
                    at += 1;
                }
                () => return CommandStop::refused(texts::SYNTAX),
            }
            at += 1;
        }
        Ok(options)
    }

    /// Whether members stay in the order that they have.
    fn keeps_order(&self) -> bool {
        self.by.is_some_and(|by| !by.contains(&b'*'))
    }
}

pub(super) async fn sort(call: &CommandCall<'_>) -> Answer {
    run(call, SortOptions::read(call, true)?).await
}

pub(super) async fn sort_ro(call: &CommandCall<'_>) -> Answer {
    run(call, SortOptions::read(call, false)?).await
}

async fn run(call: &CommandCall<'_>, options: SortOptions<'_>) -> Answer {
    let (mut members, is_set) = members(call, &options).await?;
    if !options.keeps_order() {
        members = sorted(call, &options, members).await?;
    } else if is_set && (options.store.is_some() || call.from_script) {
        // What is kept, and what a script does, is to be the same however it was stored.
        members.sort_unstable();
    }
    if let Some((offset, count)) = options.limit {
        let skipped = usize::try_from(offset).unwrap_or(0);
        let most = usize::try_from(count).unwrap_or(usize::MAX);
        members = members.into_iter().skip(skipped).take(most).collect();
    }
    let (mut shown, mut bytes): (Vec<Option<SmallBytes>>, usize) = (Vec::new(), 0);
    for member in members {
        if options.get.is_empty() {
            shown.push(Some(member));
            continue;
        }
        for pattern in &options.get {
            call.check_reply(bytes)?;
            let found = looked_up(call, pattern, &member).await?;
            bytes += found.as_ref().map_or(0, |it| it.len());
            shown.push(found);
        }
    }
    match options.store {
        Some(key) => store(call, key, &shown).await,
        None => Ok(RespReply::Array(
            shown.into_iter().map(|it| it.map_or(RespReply::Null, RespReply::Bulk)).collect(),
        )),
    }
}

/// The members, and whether they are those of a set, which has no order.
async fn members(
    call: &CommandCall<'_>,
    options: &SortOptions<'_>,
) -> Result<(Vec<SmallBytes>, bool), CommandStop> {
    let header = call.scope.header(call.db, call.arg(1)).await?;
    match header.map(|it| it.value) {
        None => Ok((Vec::new(), false)),
        Some(KeyValue::Rows(ValueKind::List, _)) => {
            match call.scope.list(call.db, call.arg(1)).await? {
                Some(list) => Ok((call.scope.items(list, 0, list.len()).await?, false)),
                None => Ok((Vec::new(), false)),
            }
        }
        Some(KeyValue::Rows(ValueKind::Set, id)) => {
            let all = call.scope.members(id).await?;
            Ok((all.into_iter().map(|it| it.0).collect(), true))
        }
        Some(KeyValue::Rows(ValueKind::Sorted, id)) => {
            let (all, reverse) = (ScoreRows::all(id), options.descending);
            let found = call.scope.scored(id, &all, reverse, 0, usize::MAX).await?;
            Ok((found.into_iter().map(|it| it.0).collect(), false))
        }
        Some(_) => CommandStop::refused(texts::WRONG_TYPE),
    }
}

/// What a member is sorted by.
enum Weight {
    Number(f64),
    Text(Option<SmallBytes>),
}

impl Weight {
    fn compare(&self, other: &Weight) -> Ordering {
        match (self, other) {
            (Weight::Number(left), Weight::Number(right)) => left.total_cmp(right),
            (Weight::Text(left), Weight::Text(right)) => left.cmp(right),
            (Weight::Number(_), Weight::Text(_)) => Ordering::Less,
            (Weight::Text(_), Weight::Number(_)) => Ordering::Greater,
        }
    }
}

async fn sorted(
    call: &CommandCall<'_>,
    options: &SortOptions<'_>,
    members: Vec<SmallBytes>,
) -> Result<Vec<SmallBytes>, CommandStop> {
    let mut weighed = Vec::new();
    for member in members {
        let text = match options.by {
            Some(pattern) => looked_up(call, pattern, &member).await?,
            None => Some(member.clone()),
        };
        let weight = match (options.alpha, text) {
            (true, text) => Weight::Text(text),
            (false, None) => Weight::Number(0.0),
            (false, Some(text)) => match numbers::double(text.as_slice()) {
                Some(number) => Weight::Number(number),
                None => {
                    return CommandStop::refused(
                        "ERR One or more scores can't be converted into double",
                    );
                }
            },
        };
        weighed.push((weight, member));
    }
    let by_members = options.by.is_none();
    weighed.sort_by(|left, right| {
        let order = left.0.compare(&right.0);
        // Equal weights of other keys go by the members themselves.
        let order = if by_members { order } else { order.then_with(|| left.1.cmp(&right.1)) };
        if options.descending { order.reverse() } else { order }
    });
    Ok(weighed.into_iter().map(|it| it.1).collect())
}

/// What a pattern leads to, in which a star stands for a member: a key, or a field of a hash.
async fn looked_up(
    call: &CommandCall<'_>,
    pattern: &[u8],
    member: &SmallBytes,
) -> Result<Option<SmallBytes>, CommandStop> {
    if pattern == b"#" {
        return Ok(Some(member.clone()));
    }
    let Some(star) = pattern.iter().position(|it| *it == b'*') else { return Ok(None) };
    let arrow = pattern[star + 1..].windows(2).position(|it| it == b"->");
    let (end, field) = match arrow {
        Some(at) if star + 1 + at + 2 < pattern.len() => {
            (star + 1 + at, Some(&pattern[star + 1 + at + 2..]))
        }
        _ => (pattern.len(), None),
    };
    let key = [&pattern[..star], member.as_slice(), &pattern[star + 1..end]].concat();
    let header = call.scope.header(call.db, &key).await?;
    match (header.as_ref().map(|it| &it.value), field) {
        (Some(KeyValue::Rows(ValueKind::Hash, id)), Some(field)) => {
            call.scope.member(*id, field).await
        }
        (Some(KeyValue::Text(_) | KeyValue::Pieces(..)), None) => {
            call.scope.string_of(header.as_ref()).await
        }
        _ => Ok(None),
    }
}

async fn store(call: &CommandCall<'_>, key: &[u8], shown: &[Option<SmallBytes>]) -> Answer {
    let mut entry = call.scope.entry(call.db, key).await?;
    call.scope.remove(&mut entry).await?;
    if shown.is_empty() {
        return Ok(RespReply::Integer(0));
    }
    let list = call.scope.list_to_grow(&mut entry).await?;
    let items = shown.iter().map(|it| it.as_ref().map_or(&b""[..], |it| it.as_slice()));
    let list = call.scope.push(list, ListEnd::Right, items).await?;
    call.scope.is_ready(&entry);
    Ok(RespReply::Integer(list.len()))
}
