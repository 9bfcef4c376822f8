//! Lists: a row for each item, by a position; and a row with the first and the last position.

use muesli::{Range, SmallBytes};

use super::header::{KeyHeader, KeyValue, ValueKind};
use super::rows::{ContentPart, Id, RowKey, position_bytes};
use super::scope::{KeyHandle, KeyScope};
use super::stop::CommandStop;

/// So many items of a list are taken away one by one. Of more, it depends on how many stay.
const CUT_MAX: i64 = 256;

/// An end of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListEnd {
    Left,
    Right,
}

/// A list that is there: its items have the positions from `first` to before `after`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StoredList {
    pub id: Id,
    first: i64,
    after: i64,
}

impl StoredList {
    pub fn len(self) -> i64 {
        self.after - self.first
    }

    /// An index from an end as one from the left, where there is such an item.
    pub fn index(self, index: i64) -> Option<i64> {
        let index = if index < 0 { self.len().checked_add(index)? } else { index };
        (0..self.len()).contains(&index).then_some(index)
    }

    fn row(self, index: i64) -> SmallBytes {
        let position = position_bytes(self.first + index);
        RowKey::content(self.id, ContentPart::Item).bytes(&position).done()
    }
}

fn ends_row(id: Id) -> SmallBytes {
    RowKey::content(id, ContentPart::Ends).done()
}

impl KeyScope<'_> {
    /// The list of a key, for who only reads.
    pub async fn list(&self, db: u8, key: &[u8]) -> Result<Option<StoredList>, CommandStop> {
        match self.rows(db, key, ValueKind::List).await? {
            Some(id) => Ok(Some(self.list_of(id).await?)),
            None => Ok(None),
        }
    }

    /// The list of an entry.
    pub async fn entry_list(&self, entry: &KeyHandle) -> Result<Option<StoredList>, CommandStop> {
        match entry.rows(ValueKind::List)? {
            Some(id) => Ok(Some(self.list_of(id).await?)),
            None => Ok(None),
        }
    }

    /// The list of an entry; an empty one is made where there is none, to be pushed to.
    pub async fn list_to_grow(&self, entry: &mut KeyHandle) -> Result<StoredList, CommandStop> {
        let id = self.collection(entry, ValueKind::List).await?;
        self.list_of(id).await
    }

    async fn list_of(&self, id: Id) -> Result<StoredList, CommandStop> {
        let ends = self.get(ends_row(id)).await?;
        let number = |at: usize| {
            let bytes = ends.as_ref().and_then(|it| it.as_slice().get(at..)?.first_chunk());
            bytes.map_or(0, |it| i64::from_be_bytes(*it))
        };
        Ok(StoredList { id, first: number(0), after: number(8) })
    }

    async fn keep_ends(&self, list: StoredList) -> Result<(), CommandStop> {
        let ends = [list.first.to_be_bytes(), list.after.to_be_bytes()].concat();
        self.put(ends_row(list.id), SmallBytes::from(ends)).await
    }

    /// Adds items at an end, one after the other; the list then.
    pub async fn push(
        &self,
        list: StoredList,
        end: ListEnd,
        items: impl Iterator<Item = &[u8]>,
    ) -> Result<StoredList, CommandStop> {
        let mut list = list;
        for item in items {
            match end {
                ListEnd::Left => list.first -= 1,
                ListEnd::Right => list.after += 1,
            }
            let index = if end == ListEnd::Left { 0 } else { list.len() - 1 };
            self.put(list.row(index), SmallBytes::new(item)).await?;
        }
        self.keep_ends(list).await?;
        Ok(list)
    }

    /// Takes items from an end, at most so many; the list without them. The caller says that the
    /// key has changed, and takes away what is empty.
    pub async fn pop(
        &self,
        entry: &mut KeyHandle,
        list: StoredList,
        end: ListEnd,
        most: i64,
    ) -> Result<(StoredList, Vec<SmallBytes>), CommandStop> {
        let most = most.min(list.len());
        let mut taken = match end {
            ListEnd::Left => self.items(list, 0, most).await?,
            ListEnd::Right => self.items(list, list.len() - most, list.len()).await?,
        };
        if end == ListEnd::Right {
            taken.reverse();
        }
        let (from, to) = match end {
            ListEnd::Left => (most, list.len()),
            ListEnd::Right => (0, list.len() - most),
        };
        Ok((self.keep(entry, list, from, to).await?, taken))
    }

    /// Keeps the items from an index to before another one, which are within the list, and no
    /// others; the list then. Where many go and few stay, these are written anew, and the rows that
    /// were there are swept. The caller says that the key has changed, and takes away what is
    /// empty.
    pub async fn keep(
        &self,
        entry: &mut KeyHandle,
        list: StoredList,
        from: i64,
        to: i64,
    ) -> Result<StoredList, CommandStop> {
        let stay = to - from;
        let go = list.len() - stay;
        if go <= CUT_MAX.max(stay) {
            let shorter = self.cut(list, ListEnd::Right, list.len() - to).await?;
            return self.cut(shorter, ListEnd::Left, from).await;
        }
        if stay == 0 {
            // The key goes, and its rows are of no use then.
            return Ok(StoredList { after: list.first, ..list });
        }
        let kept = self.items(list, from, to).await?;
        let (id, expires) = (self.new_id(), entry.expires());
        let value = KeyValue::Rows(ValueKind::List, id);
        self.set(entry, KeyHeader { value, expires }).await?;
        let list = StoredList { id, first: 0, after: 0 };
        self.push(list, ListEnd::Right, kept.iter().map(SmallBytes::as_slice)).await
    }

    /// Takes so many items away at an end.
    async fn cut(
        &self,
        list: StoredList,
        end: ListEnd,
        count: i64,
    ) -> Result<StoredList, CommandStop> {
        if count == 0 {
            return Ok(list);
        }
        let mut rest = list;
        for at in 0..count {
            let index = if end == ListEnd::Left { at } else { list.len() - 1 - at };
            self.delete(list.row(index)).await?;
        }
        match end {
            ListEnd::Left => rest.first += count,
            ListEnd::Right => rest.after -= count,
        }
        self.keep_ends(rest).await?;
        Ok(rest)
    }

    /// The items from an index to before another one, which are within the list.
    pub async fn items(
        &self,
        list: StoredList,
        from: i64,
        to: i64,
    ) -> Result<Vec<SmallBytes>, CommandStop> {
        if to - from == 1 {
            return Ok(self.get(list.row(from)).await?.into_iter().collect());
        }
        let (lo, hi) = (list.row(from), list.row(to));
        let rows = self.scan(Range::of(lo.as_slice()..hi.as_slice())).await?;
        Ok(rows.into_iter().map(|(_, item)| item).collect())
    }

    pub async fn set_item(
        &self,
        list: StoredList,
        index: i64,
        item: &[u8],
    ) -> Result<(), CommandStop> {
        self.put(list.row(index), SmallBytes::new(item)).await
    }

    /// Puts an item before the one at this index. Those of the shorter side move.
    pub async fn insert(
        &self,
        list: StoredList,
        index: i64,
        item: &[u8],
    ) -> Result<StoredList, CommandStop> {
        let mut grown = list;
        if index < list.len() / 2 {
            grown.first -= 1;
            for (at, moved) in self.items(list, 0, index).await?.into_iter().enumerate() {
                self.put(grown.row(at as i64), moved).await?;
            }
        } else {
            grown.after += 1;
            let moved = self.items(list, index, list.len()).await?;
            for (at, moved) in moved.into_iter().enumerate() {
                self.put(grown.row(index + 1 + at as i64), moved).await?;
            }
        }
        self.put(grown.row(index), SmallBytes::new(item)).await?;
        self.keep_ends(grown).await?;
        Ok(grown)
    }

    /// Takes the items at these indices away, which ascend. Those of the shorter side move.
    pub async fn remove_items(
        &self,
        list: StoredList,
        indices: &[i64],
    ) -> Result<StoredList, CommandStop> {
        let (Some(first), Some(last)) = (indices.first(), indices.last()) else { return Ok(list) };
        let gone = |index: i64| indices.binary_search(&index).is_ok();
        let (mut rest, count) = (list, indices.len() as i64);
        if last + 1 < list.len() - first {
            rest.first += count;
            let kept = self.items(list, 0, last + 1).await?;
            let kept = kept.into_iter().enumerate().filter(|(at, _)| !gone(*at as i64));
            for (at, (_, moved)) in kept.enumerate() {
                self.put(rest.row(at as i64), moved).await?;
            }
            for index in 0..count {
                self.delete(list.row(index)).await?;
            }
        } else {
            rest.after -= count;
            let kept = self.items(list, *first, list.len()).await?;
            let kept = kept.into_iter().enumerate().filter(|(at, _)| !gone(first + *at as i64));
            for (at, (_, moved)) in kept.enumerate() {
                self.put(rest.row(first + at as i64), moved).await?;
            }
            for index in rest.len()..list.len() {
                self.delete(list.row(index)).await?;
            }
        }
        self.keep_ends(rest).await?;
        Ok(rest)
    }

    /// A list that has lost items: the key goes with the last one.
    pub async fn shrunk(&self, entry: &mut KeyHandle, list: StoredList) -> Result<(), CommandStop> {
        self.changed(entry).await?;
        if list.len() == 0 { self.vanish(entry).await } else { Ok(()) }
    }
}
