//! The first reading: whether all of a file can be imported, and how much it is.

use std::io::Read;

use muesli_rdb::RdbElement;

use super::error::{RdbImportError, shown};
use super::parts::{ImportPart, PartReader, element_bytes};
use super::{RdbImport, RdbImported};

/// So many bytes of the longest key of a row are left for what it has beside a key, field or
/// member.
const KEY_BYTES_BESIDE: usize = 536;
/// So many keys are shown that are there already.
const SHOWN_KEYS: usize = 3;

/// What was found so far.
#[derive(Default)]
pub(super) struct FileSurvey {
    found: RdbImported,
}

impl FileSurvey {
    /// Takes parts of keys into account.
    ///
    /// # Errors
    /// One has something that is too long.
    pub fn add(&mut self, import: &RdbImport, parts: &[ImportPart]) -> Result<(), RdbImportError> {
        for part in parts {
            check_lengths(import, part)?;
            self.count(part);
        }
        Ok(())
    }

    fn count(&mut self, part: &ImportPart) {
        if part.is_empty() {
            self.found.empty += 1;
            return;
        }
        let bytes: usize = part.elements.iter().map(element_bytes).sum();
        self.found.bytes += bytes as u64;
        if part.is_first() {
            self.found.bytes += part.key.len() as u64;
            *self.found.keys.entry(part.kind).or_default() += 1;
        }
        let is_more = |it: &RdbElement| !matches!(it, RdbElement::Text(_)) || part.is_first();
        self.found.elements += part.elements.iter().filter(|it| is_more(it)).count() as u64;
    }

    /// What is to be imported of a file that was read to its end.
    pub fn finish(self, reader: &PartReader<impl Read>) -> RdbImported {
        RdbImported {
            version: reader.version(),
            redis: reader.redis.clone(),
            expired: reader.expired,
            libraries: reader.libraries,
            ..self.found
        }
    }
}

/// Keys of a file that are there already.
#[derive(Default)]
pub(super) struct Existing {
    count: u64,
    shown: Vec<String>,
}

impl Existing {
    pub fn add(&mut self, keys: Vec<String>) {
        self.count += keys.len() as u64;
        let left = SHOWN_KEYS.saturating_sub(self.shown.len());
        self.shown.extend(keys.into_iter().take(left));
    }

    /// # Errors
    /// There are some.
    pub fn none(self) -> Result<(), RdbImportError> {
        let Existing { count, shown } = self;
        let more = if count > shown.len() as u64 { ", …" } else { "" };
        match count {
            0 => Ok(()),
            _ => Err(RdbImportError::Exists { count, shown: shown.join(", ") + more }),
        }
    }
}

/// # Errors
/// Something of the part is longer than it may be.
fn check_lengths(import: &RdbImport, part: &ImportPart) -> Result<(), RdbImportError> {
    let short = import.limits.key_bytes.saturating_sub(KEY_BYTES_BESIDE);
    let long = import.limits.value_bytes;
    let check = |what: &'static str, bytes: usize, most: usize| match bytes > most {
        true => Err(RdbImportError::TooLong { key: shown(part.db, &part.key), what, bytes, most }),
        false => Ok(()),
    };
    check("a key", part.key.len(), short)?;
    part.elements.iter().try_for_each(|element| match element {
        RdbElement::Text(_) => Ok(()), // It is in pieces.
        RdbElement::Item(item) => check("an item", item.len(), long),
        RdbElement::Member(member) | RdbElement::Scored(member, _) => {
            check("a member", member.len(), short)
        }
        RdbElement::Field(field, value) => {
            check("a field", field.len(), short)?;
            check("the value of a field", value.len(), long)
        }
    })
}
