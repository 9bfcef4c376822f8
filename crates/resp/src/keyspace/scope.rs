//! A transaction, as commands see it: keys of databases, what they have, and when they expire.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;

use muesli::{Range, SmallBytes, Space, Tx};

#[cfg(feature = "scripts")]
use super::events::KeyEvent;
use super::events::{EFFECT_BYTES, KeyEvents, PublishedMessage};
use super::header::{KeyHeader, KeyValue, ValueKind};
use super::rows::{ContentPart, DATABASES, Generation, Id, RowKey, hash, tag};
use super::stop::{CommandStop, texts};

/// Ids for what is in rows: of an instance, which no other server or start of one has.
#[derive(Debug)]
pub(crate) struct Ids {
    pub next: Cell<Id>,
}

/// So many bits of an id are counted within an instance.
const COUNTED_BITS: u32 = 40;

impl Ids {
    pub fn of_instance(instance: u64) -> Ids {
        Ids { next: Cell::new(instance << COUNTED_BITS) }
    }

    pub fn next(&self) -> Id {
        let next = self.next.get();
        assert!((next + 1) >> COUNTED_BITS == next >> COUNTED_BITS, "an instance has enough ids");
        self.next.set(next + 1);
        next
    }
}

/// A key that has something to give to who waits for it: its database, and the key.
pub(crate) type Ready = (u8, Vec<u8>);

/// A transaction, as commands see it.
pub(crate) struct KeyScope<'t> {
    pub tx: &'t Tx,
    pub space: Space,
    ids: &'t Ids,
    /// The time, in milliseconds since 1970; one for the whole transaction.
    pub now: u64,
    /// A count is spread over rows with these numbers.
    stripes: std::ops::Range<u8>,
    generations: RefCell<[Option<Generation>; DATABASES]>,
    /// Lists and sorted sets that have grown.
    pub ready: RefCell<BTreeSet<Ready>>,
    /// Any key may have something now: databases were swapped.
    pub all_ready: Cell<bool>,
    /// How many changes were made.
    pub changes: Cell<u64>,
    /// What is told of them.
    pub events: KeyEvents,
    /// What scripts have for channels, once it has committed.
    pub published: RefCell<Vec<PublishedMessage>>,
    /// How many bytes all have that is told after the commit.
    effect_bytes: Rc<Cell<usize>>,
}

/// So many bytes a transaction has of what is told after its commit, where a script is to add to
/// them: messages, events, and keys that others may wait for.
#[cfg(feature = "scripts")]
const EFFECT_BYTES_MAX: usize = 16 << 20;

/// What a child of a transaction has done, beside its rows.
#[cfg(feature = "scripts")]
pub(crate) struct ChildEffects {
    generations: [Option<Generation>; DATABASES],
    ready: BTreeSet<Ready>,
    all_ready: bool,
    changes: u64,
    events: Vec<KeyEvent>,
    published: Vec<PublishedMessage>,
    bytes: usize,
}

/// A key in a transaction, with what it has.
pub(crate) struct KeyHandle {
    pub db: u8,
    generation: Generation,
    pub key: Vec<u8>,
    row: SmallBytes,
    /// What it has, if that has not expired.
    pub found: Option<KeyHeader>,
    /// What it had, and has expired.
    over: Option<KeyHeader>,
}

impl KeyHandle {
    /// What it has, if that is of this type; `None` where it has nothing.
    ///
    /// # Errors
    /// It is of another type.
    pub fn rows(&self, kind: ValueKind) -> Result<Option<Id>, CommandStop> {
        match &self.found {
            None => Ok(None),
            Some(KeyHeader { value: KeyValue::Rows(found, id), .. }) if *found == kind => {
                Ok(Some(*id))
            }
            Some(_) => CommandStop::refused(texts::WRONG_TYPE),
        }
    }

    /// When it expires.
    pub fn expires(&self) -> Option<u64> {
        self.found.as_ref().and_then(|it| it.expires)
    }

    fn before(&self) -> Option<&KeyHeader> {
        self.found.as_ref().or(self.over.as_ref())
    }
}

impl<'t> KeyScope<'t> {
    pub fn new(tx: &'t Tx, space: Space, ids: &'t Ids, now: u64, stripes: u8) -> KeyScope<'t> {
        assert!(stripes > 0, "a count has a row");
        KeyScope {
            tx,
            space,
            ids,
            now,
            stripes: 0..stripes,
            generations: RefCell::default(),
            ready: RefCell::default(),
            all_ready: Cell::new(false),
            changes: Cell::new(0),
            events: KeyEvents::default(),
            published: RefCell::default(),
            effect_bytes: Rc::default(),
        }
    }

    /// Counts in a row of its own: it does not meet those who count elsewhere.
    pub fn in_stripe(self, stripe: u8) -> KeyScope<'t> {
        KeyScope { stripes: stripe..stripe + 1, ..self }
    }

    /// Has events be told, where somebody may want to know.
    pub fn with_events(self, wanted: bool) -> KeyScope<'t> {
        KeyScope { events: KeyEvents::new(wanted, self.effect_bytes.clone()), ..self }
    }

    /// The same for a child of the transaction, whose changes can be undone alone.
    #[cfg(feature = "scripts")]
    pub fn child<'c>(&self, tx: &'c Tx) -> KeyScope<'c>
    where
        't: 'c,
    {
        let child = KeyScope::new(tx, self.space, self.ids, self.now, 1);
        *child.generations.borrow_mut() = *self.generations.borrow();
        let effect_bytes = Rc::new(Cell::new(self.effect_bytes.get()));
        let (events, stripes) = (self.events.child(effect_bytes.clone()), self.stripes.clone());
        KeyScope { events, stripes, effect_bytes, ..child }
    }

    /// What a child has done, beside its rows.
    #[cfg(feature = "scripts")]
    pub fn effects(&self) -> ChildEffects {
        ChildEffects {
            generations: *self.generations.borrow(),
            ready: self.ready.take(),
            all_ready: self.all_ready.get(),
            changes: self.changes.get(),
            events: self.events.take(),
            published: self.published.take(),
            bytes: self.effect_bytes.get(),
        }
    }

    /// What a child has done that was merged is this scope's.
    #[cfg(feature = "scripts")]
    pub fn merge(&self, child: ChildEffects) {
        *self.generations.borrow_mut() = child.generations;
        self.ready.borrow_mut().extend(child.ready);
        self.published.borrow_mut().extend(child.published);
        self.all_ready.set(self.all_ready.get() || child.all_ready);
        self.changes.set(self.changes.get() + child.changes);
        self.events.merge(child.events);
        self.effect_bytes.set(child.bytes);
    }

    /// A script has a message for a channel.
    #[cfg(feature = "scripts")]
    pub fn publish(&self, message: PublishedMessage) {
        self.add_effect(message.channel.len() + message.message.len());
        self.published.borrow_mut().push(message);
    }

    /// # Errors
    /// So much is told after the commit that a script is not to add to it.
    #[cfg(feature = "scripts")]
    pub fn check_effects(&self) -> Result<(), CommandStop> {
        if self.effect_bytes.get() <= EFFECT_BYTES_MAX {
            return Ok(());
        }
        CommandStop::refused(format!(
            "LIMIT the messages and events of a transaction with scripts have no more than \
             {EFFECT_BYTES_MAX} bytes"
        ))
    }

    fn add_effect(&self, bytes: usize) {
        self.effect_bytes.set(self.effect_bytes.get() + EFFECT_BYTES + bytes);
    }

    pub async fn get(&self, row: SmallBytes) -> Result<Option<SmallBytes>, CommandStop> {
        Ok(self.tx.get(self.space, row).await?)
    }

    pub async fn put(&self, row: SmallBytes, value: SmallBytes) -> Result<(), CommandStop> {
        Ok(self.tx.put(self.space, row, value).await?)
    }

    pub async fn delete(&self, row: SmallBytes) -> Result<(), CommandStop> {
        Ok(self.tx.delete(self.space, row).await?)
    }

    pub async fn scan(&self, range: Range) -> Result<Vec<(SmallBytes, SmallBytes)>, CommandStop> {
        Ok(self.tx.scan(self.space, range).await?)
    }

    /// A number that a row has, if it is there.
    pub async fn number(&self, row: SmallBytes) -> Result<Option<u64>, CommandStop> {
        let found = self.get(row).await?;
        let bytes = found.as_ref().and_then(|it| it.as_slice().first_chunk());
        Ok(bytes.map(|it| u64::from_be_bytes(*it)))
    }

    pub async fn put_number(&self, row: SmallBytes, number: u64) -> Result<(), CommandStop> {
        self.put(row, SmallBytes::new(&number.to_be_bytes())).await
    }

    pub fn new_id(&self) -> Id {
        self.ids.next()
    }

    /// The generation of a database.
    pub async fn generation(&self, db: u8) -> Result<Generation, CommandStop> {
        if let Some(known) = self.generations.borrow()[usize::from(db)] {
            return Ok(known);
        }
        let found = self.number(database_row(db)).await?;
        let generation = found.map_or(Generation::from(db), |it| it as Generation);
        self.generations.borrow_mut()[usize::from(db)] = Some(generation);
        Ok(generation)
    }

    /// Gives databases other generations.
    pub async fn set_generation(&self, db: u8, generation: Generation) -> Result<(), CommandStop> {
        self.put_number(database_row(db), u64::from(generation)).await?;
        self.generations.borrow_mut()[usize::from(db)] = Some(generation);
        Ok(())
    }

    /// A key.
    pub async fn entry(&self, db: u8, key: &[u8]) -> Result<KeyHandle, CommandStop> {
        let generation = self.generation(db).await?;
        let row = header_row(generation, key);
        let found = match self.get(row.clone()).await? {
            Some(row) => Some(KeyHeader::of_row(&row)?),
            None => None,
        };
        let (over, found) = match found {
            Some(header) if header.is_over(self.now) => (Some(header), None),
            found => (None, found),
        };
        Ok(KeyHandle { db, generation, key: key.to_vec(), row, found, over })
    }

    /// What a key has, for who only reads.
    pub async fn header(&self, db: u8, key: &[u8]) -> Result<Option<KeyHeader>, CommandStop> {
        let row = header_row(self.generation(db).await?, key);
        match self.get(row).await? {
            Some(row) => Ok(Some(KeyHeader::of_row(&row)?).filter(|it| !it.is_over(self.now))),
            None => Ok(None),
        }
    }

    /// The rows of a key of this type, for who only reads; `None` where it has nothing.
    ///
    /// # Errors
    /// It is of another type.
    pub async fn rows(
        &self,
        db: u8,
        key: &[u8],
        kind: ValueKind,
    ) -> Result<Option<Id>, CommandStop> {
        match self.header(db, key).await?.map(|it| it.value) {
            None => Ok(None),
            Some(KeyValue::Rows(found, id)) if found == kind => Ok(Some(id)),
            Some(_) => CommandStop::refused(texts::WRONG_TYPE),
        }
    }

    /// Gives a key something else, or another expiry. Rows that it had, and has no more, are swept.
    pub async fn set(&self, entry: &mut KeyHandle, header: KeyHeader) -> Result<(), CommandStop> {
        let before = entry.before().cloned();
        match &before {
            Some(before) => self.leave_rows(before, Some(&header)).await?,
            None => self.count_keys(entry.generation, 1).await?,
        }
        if entry.found.is_none() {
            self.events.add('n', "new", entry.db, &entry.key);
        }
        let expired = before.and_then(|it| it.expires);
        if expired != header.expires {
            if let Some(at) = expired {
                self.delete(expiry_row(at, entry.generation, &entry.key)).await?;
            }
            if let Some(at) = header.expires {
                let row = expiry_row(at, entry.generation, &entry.key);
                self.put(row, SmallBytes::EMPTY).await?;
            }
        }
        self.put(entry.row.clone(), header.to_row()).await?;
        let expires = header.expires.is_some() && header.expires != expired;
        (entry.found, entry.over) = (Some(header), None);
        self.changed(entry).await?;
        if expires && self.events.is_of('$') {
            self.events.add('g', "expire", entry.db, &entry.key);
        }
        Ok(())
    }

    /// Takes a key away; whether it had something.
    pub async fn remove(&self, entry: &mut KeyHandle) -> Result<bool, CommandStop> {
        let found = entry.found.is_some();
        self.erase(entry, None).await?;
        if found {
            self.marked(entry).await?;
            self.events.add('g', "del", entry.db, &entry.key);
        }
        Ok(found)
    }

    /// Takes a key away, whose rows another one may have from now on.
    pub async fn erase(
        &self,
        entry: &mut KeyHandle,
        heir: Option<&KeyHeader>,
    ) -> Result<(), CommandStop> {
        let Some(before) = entry.before().cloned() else { return Ok(()) };
        self.leave_rows(&before, heir).await?;
        self.count_keys(entry.generation, -1).await?;
        if let Some(at) = before.expires {
            self.delete(expiry_row(at, entry.generation, &entry.key)).await?;
        }
        (entry.found, entry.over) = (None, None);
        self.delete(entry.row.clone()).await
    }

    /// Rows that a key had are swept, unless another header has them.
    async fn leave_rows(
        &self,
        before: &KeyHeader,
        after: Option<&KeyHeader>,
    ) -> Result<(), CommandStop> {
        match before.value.id() {
            Some(id) if after.and_then(|it| it.value.id()) != Some(id) => {
                let row = RowKey::new(tag::UNUSED_CONTENT).number(id).done();
                self.put(row, SmallBytes::EMPTY).await
            }
            _ => Ok(()),
        }
    }

    /// A collection to be changed; made, if it is not there.
    pub async fn collection(
        &self,
        entry: &mut KeyHandle,
        kind: ValueKind,
    ) -> Result<Id, CommandStop> {
        if let Some(id) = entry.rows(kind)? {
            return Ok(id);
        }
        let id = self.new_id();
        self.set(entry, KeyHeader { value: KeyValue::Rows(kind, id), expires: None }).await?;
        Ok(id)
    }

    /// A key has changed: who watches it learns of that, and who listens.
    pub async fn changed(&self, entry: &KeyHandle) -> Result<(), CommandStop> {
        self.events.changed(entry.db, &entry.key);
        self.marked(entry).await
    }

    /// A key has changed: who watches it learns of that.
    async fn marked(&self, entry: &KeyHandle) -> Result<(), CommandStop> {
        self.changes.set(self.changes.get() + 1);
        let row = mark_row(entry.generation, &entry.key);
        let Some(mark) = self.get(row.clone()).await? else { return Ok(()) };
        match WatchMark::of_row(&mark) {
            Some(mark) if mark.until > self.now => {
                let next = WatchMark { version: self.new_id(), ..mark };
                self.put(row, next.to_row()).await
            }
            _ => self.delete(row).await,
        }
    }

    /// A list or sorted set has grown: who waits for it is served after the commit.
    pub fn is_ready(&self, entry: &KeyHandle) {
        if self.ready.borrow_mut().insert((entry.db, entry.key.clone())) {
            self.add_effect(entry.key.len());
        }
    }

    /// A collection that has lost its last member is taken away.
    pub async fn drop_if_empty(
        &self,
        entry: &mut KeyHandle,
        id: Id,
        part: ContentPart,
    ) -> Result<(), CommandStop> {
        let all = RowKey::content(id, part).done();
        if self.scan(Range::prefix(all.as_slice()).limit(1)).await?.is_empty() {
            self.vanish(entry).await?;
        }
        Ok(())
    }

    /// A collection that has lost its last member is taken away, with all its rows.
    pub async fn vanish(&self, entry: &mut KeyHandle) -> Result<(), CommandStop> {
        self.erase(entry, None).await?;
        self.events.add('g', "del", entry.db, &entry.key);
        Ok(())
    }

    async fn count_keys(&self, generation: Generation, change: i64) -> Result<(), CommandStop> {
        self.count(RowKey::new(tag::COUNT).number(u64::from(generation)), change).await
    }

    /// How many keys a database has, those included that have expired and were not swept.
    pub async fn keys(&self, db: u8) -> Result<i64, CommandStop> {
        let generation = u64::from(self.generation(db).await?);
        self.total(RowKey::new(tag::COUNT).number(generation)).await
    }

    /// Adds to a count, which is the sum of several rows: so two who add rarely meet.
    pub async fn count(&self, of: RowKey, change: i64) -> Result<(), CommandStop> {
        let stripes = self.stripes.clone();
        let stripe = if stripes.len() == 1 { stripes.start } else { fastrand::u8(stripes) };
        let row = of.byte(stripe).done();
        let before = self.number(row.clone()).await?.unwrap_or(0) as i64;
        self.put_number(row, (before + change) as u64).await
    }

    /// A count: the sum of all its rows, also of those that a server alone would not have made.
    pub async fn total(&self, of: RowKey) -> Result<i64, CommandStop> {
        let rows = self.scan(Range::prefix(of.done().as_slice())).await?;
        let numbers = rows.iter().filter_map(|(_, value)| value.as_slice().first_chunk());
        Ok(numbers.map(|it| i64::from_be_bytes(*it)).sum())
    }
}

fn database_row(db: u8) -> SmallBytes {
    RowKey::new(tag::DATABASE).byte(db).done()
}

/// The row of a key's header.
pub(crate) fn header_row(generation: Generation, key: &[u8]) -> SmallBytes {
    let row = RowKey::new(tag::HEADER).number(u64::from(generation));
    row.at_hash(hash(key)).bytes(key).done()
}

pub(crate) fn expiry_row(at: u64, generation: Generation, key: &[u8]) -> SmallBytes {
    RowKey::new(tag::EXPIRY).ordered(at).number(u64::from(generation)).bytes(key).done()
}

/// The row of the mark of who watches a key.
pub(crate) fn mark_row(generation: Generation, key: &[u8]) -> SmallBytes {
    RowKey::new(tag::MARK).number(u64::from(generation)).bytes(key).done()
}

/// Somebody watches a key: who changes it changes the version as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WatchMark {
    /// No two are the same.
    pub version: u64,
    /// Then nobody watches any more who has come before.
    pub until: u64,
}

impl WatchMark {
    pub fn to_row(self) -> SmallBytes {
        SmallBytes::new(&[self.version.to_be_bytes(), self.until.to_be_bytes()].concat())
    }

    pub fn of_row(row: &SmallBytes) -> Option<WatchMark> {
        let (version, rest) = row.as_slice().split_first_chunk()?;
        let until = u64::from_be_bytes(*rest.first_chunk()?);
        Some(WatchMark { version: u64::from_be_bytes(*version), until })
    }
}
