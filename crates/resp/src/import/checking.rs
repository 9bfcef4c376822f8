//! The third reading: keys are read back and compared with the file.

use muesli::SmallBytes;
use muesli_rdb::{RdbElement, RdbKind};

use super::error::{RdbImportError, shown};
use super::parts::{ImportPart, kind_of, member_of};
use super::target::{ImportTarget, read_ahead};
use crate::keyspace::header::{KeyHeader, KeyValue};
use crate::keyspace::rows::Id;
use crate::keyspace::scope::KeyScope;
use crate::keyspace::sorted::score_in;
use crate::keyspace::stop::CommandStop;
use crate::keyspace::strings;

/// So many keys are shown that are different.
const SHOWN_KEYS: usize = 3;

/// A key with its database, and what of it is not as in the file.
pub(super) type Difference = ((u8, Vec<u8>), &'static str);

/// Keys that are not as in the file.
#[derive(Default)]
pub(super) struct Differences {
    count: u64,
    shown: Vec<String>,
    /// The last key, of which one part is enough.
    last: Option<(u8, Vec<u8>)>,
}

impl Differences {
    pub fn add(&mut self, found: Vec<Difference>) {
        for (key, what) in found {
            if self.last.as_ref() == Some(&key) {
                continue;
            }
            self.count += 1;
            if self.shown.len() < SHOWN_KEYS {
                self.shown.push(format!("the key {} {what}", shown(key.0, &key.1)));
            }
            self.last = Some(key);
        }
    }

    /// # Errors
    /// There are some.
    pub fn none(self) -> Result<(), RdbImportError> {
        let Differences { count, shown, .. } = self;
        match count {
            0 => Ok(()),
            _ => Err(RdbImportError::Differs { count, shown: shown.join("; ") }),
        }
    }
}

impl ImportTarget {
    /// Compares parts of keys with what is there; what is different.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn compare_parts(
        &mut self,
        parts: Vec<ImportPart>,
    ) -> Result<Vec<Difference>, RdbImportError> {
        self.read(async move |scope| {
            read_ahead(scope, &parts, false).await?;
            let mut found = Vec::new();
            for part in parts.iter().filter(|it| !it.is_empty()) {
                if let Some(what) = difference(scope, part).await? {
                    found.push(((part.db, part.key.clone()), what));
                }
            }
            Ok(found)
        })
    }
}

async fn difference(
    scope: &KeyScope<'_>,
    part: &ImportPart,
) -> Result<Option<&'static str>, CommandStop> {
    let Some(header) = scope.header(part.db, &part.key).await? else {
        let has_expired = part.expires.is_some_and(|at| at <= scope.now);
        return Ok((!has_expired).then_some("is not there"));
    };
    if header.value.kind() != kind_of(part.kind) {
        return Ok(Some("is of another type"));
    }
    if header.expires != part.expires {
        return Ok(Some("expires at another time"));
    }
    if part.kind == RdbKind::List {
        return list_difference(scope, part).await;
    }
    match header.value {
        KeyValue::Rows(_, id) => collection_difference(scope, part, id).await,
        KeyValue::Text(_) | KeyValue::Pieces(..) => string_difference(scope, part, &header).await,
    }
}

/// Whether there are as many as there are to be: at the last part all, and before at least those.
fn has_length(part: &ImportPart, length: u64) -> bool {
    if part.is_last { length == part.to() } else { length >= part.to() }
}

async fn string_difference(
    scope: &KeyScope<'_>,
    part: &ImportPart,
    header: &KeyHeader,
) -> Result<Option<&'static str>, CommandStop> {
    let [RdbElement::Text(text)] = &part.elements[..] else { unreachable!("it is a string") };
    if !has_length(part, strings::length(Some(header))?) {
        return Ok(Some("has another length"));
    }
    let found = scope.string_part(header, part.from, part.to()).await?;
    Ok((found != *text).then_some("has other bytes"))
}

async fn list_difference(
    scope: &KeyScope<'_>,
    part: &ImportPart,
) -> Result<Option<&'static str>, CommandStop> {
    let Some(list) = scope.list(part.db, &part.key).await? else { return Ok(Some("is not there")) };
    if !has_length(part, list.len() as u64) {
        return Ok(Some("has another length"));
    }
    let found = match part.elements.is_empty() {
        true => Vec::new(),
        false => scope.items(list, part.from as i64, part.to() as i64).await?,
    };
    let is_item = |(found, element): (&SmallBytes, &RdbElement)| match element {
        RdbElement::Item(item) => found.as_slice() == item,
        _ => false,
    };
    let are_all = found.len() == part.elements.len();
    let is_same = are_all && found.iter().zip(&part.elements).all(is_item);
    Ok((!is_same).then_some("has other items"))
}

async fn collection_difference(
    scope: &KeyScope<'_>,
    part: &ImportPart,
    id: Id,
) -> Result<Option<&'static str>, CommandStop> {
    let found = scope.members_at(id, part.elements.iter().filter_map(member_of)).await?;
    let is_same = |(element, found): (&RdbElement, &Option<SmallBytes>)| match (element, found) {
        (RdbElement::Member(_), Some(_)) => true,
        (RdbElement::Scored(_, score), Some(found)) => score_in(found) == *score,
        (RdbElement::Field(_, value), Some(found)) => found.as_slice() == value,
        _ => false,
    };
    let are_all = found.len() == part.elements.len();
    if !are_all || !part.elements.iter().zip(&found).all(is_same) {
        return Ok(Some("lacks a member, or has other values"));
    }
    let length = scope.members_count(id).await? as u64;
    Ok((!has_length(part, length)).then_some("has more or fewer members"))
}
