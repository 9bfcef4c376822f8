//! The second reading: parts of keys are written.

use muesli::SmallBytes;
use muesli_rdb::{RdbElement, RdbKind};

use super::error::{RdbImportError, shown};
use super::parts::{ImportPart, kind_of, member_of};
use super::target::{ImportTarget, read_ahead};
use crate::keyspace::header::{KeyHeader, ValueKind};
use crate::keyspace::lists::ListEnd;
use crate::keyspace::scope::{KeyHandle, KeyScope};
use crate::keyspace::stop::CommandStop;

/// What was begun of a key and not gone on with for so long is taken away, in milliseconds.
const UNFINISHED_FOR: u64 = 3_600_000;

impl ImportTarget {
    /// Writes parts of keys in one transaction.
    ///
    /// # Errors
    /// A key is there, and is not to be replaced; or the database cannot go on.
    pub fn write_parts(
        &mut self,
        parts: Vec<ImportPart>,
        replace: bool,
    ) -> Result<(), RdbImportError> {
        let unfinished = self.unfinished.clone();
        let built = parts.iter().find(|it| !it.is_whole()).map(|it| (it.db, it.is_last));
        self.unfinished_in = self.unfinished_in.or(built.map(|it| it.0));
        self.write(async move |scope| {
            read_ahead(scope, &parts, true).await?;
            for part in parts.iter().filter(|it| !it.is_empty()) {
                write_part(scope, part, &unfinished, replace).await?;
            }
            Ok(())
        })?;
        if built.is_some_and(|it| it.1) {
            self.unfinished_in = None;
        }
        Ok(())
    }
}

async fn write_part(
    scope: &KeyScope<'_>,
    part: &ImportPart,
    unfinished: &[u8],
    replace: bool,
) -> Result<(), CommandStop> {
    let mut entry = scope.entry(part.db, &part.key).await?;
    if part.is_last && entry.found.is_some() && !replace {
        return CommandStop::refused(format!(
            "the key {} was written by somebody else meanwhile, or is in the file twice",
            shown(part.db, &part.key)
        ));
    }
    if part.is_whole() {
        scope.remove(&mut entry).await?;
        add(scope, &mut entry, part).await?;
        return expire(scope, &mut entry, part.expires).await;
    }
    let mut built = scope.entry(part.db, unfinished).await?;
    if part.is_first() {
        scope.remove(&mut built).await?;
    } else if built.found.is_none() {
        return CommandStop::refused(format!(
            "what was written of the key {} is gone: somebody else has taken it away",
            shown(part.db, &part.key)
        ));
    }
    add(scope, &mut built, part).await?;
    match built.found.clone() {
        Some(header) if part.is_last => {
            scope.remove(&mut entry).await?;
            scope.erase(&mut built, Some(&header)).await?;
            scope.set(&mut entry, KeyHeader { expires: part.expires, ..header }).await
        }
        _ => expire(scope, &mut built, Some(scope.now + UNFINISHED_FOR)).await,
    }
}

async fn expire(
    scope: &KeyScope<'_>,
    entry: &mut KeyHandle,
    expires: Option<u64>,
) -> Result<(), CommandStop> {
    match entry.found.clone() {
        Some(header) if header.expires != expires => {
            scope.set(entry, KeyHeader { expires, ..header }).await
        }
        _ => Ok(()),
    }
}

/// Adds the elements of a part to a key, as the commands for it do.
async fn add(
    scope: &KeyScope<'_>,
    entry: &mut KeyHandle,
    part: &ImportPart,
) -> Result<(), CommandStop> {
    if part.kind == RdbKind::List {
        let list = scope.list_to_grow(entry).await?;
        let items = part.elements.iter().filter_map(|element| match element {
            RdbElement::Item(item) => Some(item.as_slice()),
            _ => None,
        });
        return scope.push(list, ListEnd::Right, items).await.map(drop);
    }
    let kind = kind_of(part.kind);
    if kind != ValueKind::String && !part.elements.is_empty() {
        let id = scope.collection(entry, kind).await?;
        scope.members_at(id, part.elements.iter().filter_map(member_of)).await?;
    }
    for element in &part.elements {
        match element {
            RdbElement::Text(text) if part.is_whole() => {
                scope.set_string(entry, text, None).await?;
            }
            RdbElement::Text(text) => drop(scope.write_string(entry, part.from, text).await?),
            RdbElement::Item(_) => unreachable!("an item is of a list"),
            RdbElement::Member(member) => {
                let id = scope.collection(entry, kind).await?;
                scope.put_member(id, member, SmallBytes::EMPTY).await?;
            }
            RdbElement::Field(field, value) => {
                let id = scope.collection(entry, kind).await?;
                scope.put_member(id, field, SmallBytes::new(value)).await?;
            }
            RdbElement::Scored(member, score) => {
                let id = scope.collection(entry, kind).await?;
                scope.put_score(id, member, *score).await?;
            }
        }
    }
    Ok(())
}
