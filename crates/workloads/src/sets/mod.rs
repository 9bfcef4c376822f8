//! Sets of numbers that many clients search and change: skip lists, linked lists, hash tables,
//! search trees, each of the library's transactional structures.
//!
//! A transaction looks whether keys are there (read-only), adds keys, or removes keys; how much it
//! reads, and so what is in its way, is up to the structure; with `nesting=closed` each key is a
//! child's. With `rule=pairs` a client adds a key and, with its next change, removes it again, so
//! that the size stays level; with `rule=random` it adds and removes at random.
//!
//! What makes runs checkable: adds and removes tell whether they had an effect, so a key's balance
//! of both is what must be there at the end; a key that a client added under `rule=pairs` is
//! removed by nobody else; and some transactions walk through a whole structure and must find it
//! sound. With `again` a transaction looks for what it has changed itself.

mod changing;
mod checks;
mod keys;
pub(crate) mod ledger;
mod object_list;
mod object_skip_list;
mod object_table;
mod object_tree;
mod open;
mod parameters;
mod structure;

use muesli::open_nesting::{NestingCounts, NestingSwitch, OpenNesting};
use muesli::{Db, Error, Index, Space, SpaceOptions, Tx};
use muesli_check::abstract_operations::AbstractOperation;

use crate::calls::{CallLength, check_objects};
use crate::check::Check;
use crate::loading::insist;
use crate::nesting::NestingPlan;
use crate::nesting::roots::{RecordsRoots, RootRecorder};
use crate::parameters::{ParameterError, Values};
use crate::tally::Ended;
use crate::workload::{Seat, Workload, ended, transact};
use changing::{KeyChanges, KeysChanged};
use keys::{SetPhases, distinct, initial};
use ledger::{Ledgers, SetLedger};
use structure::{Structure, value_of};

pub use parameters::{HASH_TABLE_PARAMETERS, LIST_PARAMETERS, PARAMETERS, SKIP_LIST_PARAMETERS};
pub use structure::StructureKind;

/// The space with the rows.
const SPACE: &str = "structures";

/// Sets of one kind.
#[derive(Debug)]
pub struct Sets {
    kind: StructureKind,
    count: usize,
    phases: SetPhases,
    /// The keys that are there at first, in the order in which they are added.
    initial: Vec<u64>,
    walks: f64,
    calls: usize,
    length: CallLength,
    pairs: bool,
    nesting: NestingPlan,
    /// Share of changes that are looked at by who made them.
    again: f64,
    /// Whether open children have open children.
    grouped: bool,
    /// Whether those that only look have open children.
    looks_open: bool,
    /// For tests: a rule of open nesting that is broken.
    broken: Option<NestingSwitch>,
    ledgers: Ledgers,
    roots: RootRecorder,
}

/// What a client remembers.
#[derive(Debug)]
pub struct SetMemory {
    structures: Vec<Structure>,
    reader: Db,
    /// Where operations are open children.
    open: Option<OpenNesting>,
    /// For transactions of these.
    looker: Db,
    changer: Db,
    /// What it added last, to be removed next: the structure and the keys.
    added: Option<(usize, Vec<u64>)>,
}

/// A transaction with its inputs.
struct DrawnSet {
    structure: usize,
    action: SetAction,
}

enum SetAction {
    Look(Vec<u64>),
    Walk,
    Add(Vec<u64>),
    Remove(Vec<u64>),
}

impl Sets {
    /// Sets of this kind with these parameters, for so many clients.
    ///
    /// # Errors
    /// Parameters that do not go together.
    pub fn new(kind: StructureKind, values: &Values, clients: u32) -> Result<Sets, ParameterError> {
        let (keys, calls) = (values.count("objects"), values.count("calls"));
        check_objects(("calls", calls), 1, keys)?;
        let phases = SetPhases::new(values, (keys, calls))?;
        let (nesting, length) = (NestingPlan::or_open(values), CallLength::new(values, calls));
        let grouped = values.word("open") == "nested";
        let calls_of_part = if grouped { open::GROUP as u32 } else { 1 };
        nesting.check_length(length.each() * calls_of_part)?;
        let incompatible = |text: &str| Err(ParameterError::Incompatible(text.to_owned()));
        if grouped && !nesting.may_be_open() {
            return incompatible("open=nested is of open children: give nesting=open or auto");
        }
        let looks_open = values.word("looks") == "children";
        if looks_open && !nesting.may_be_open() {
            return incompatible("looks=children is of open children: give nesting=open or auto");
        }
        let (pairs, again) = (values.word("rule") == "pairs", values.number("again"));
        if again > 0.0 && pairs {
            return incompatible(
                "again needs rule=random: with pairs a client keeps what it added",
            );
        }
        Ok(Sets {
            kind,
            count: values.count("structures") as usize,
            phases,
            initial: initial(kind, values.count("initial").min(keys / 2), keys),
            walks: values.number("walks"),
            calls: calls as usize,
            length,
            pairs,
            nesting,
            again,
            grouped,
            looks_open,
            broken: None,
            ledgers: Ledgers::new(clients, |_| SetLedger::default()),
            roots: RootRecorder::default(),
        })
    }

    /// For tests: breaks a rule of open nesting.
    #[doc(hidden)]
    pub fn without(self, switch: NestingSwitch) -> Sets {
        Sets { broken: Some(switch), ..self }
    }

    fn structures(&self, space: Space) -> Vec<Structure> {
        let one = |number| Structure::new(self.kind, space, number);
        (0..self.count as u32).map(one).collect()
    }

    fn draw(&self, seat: &mut Seat, added: &mut Option<(usize, Vec<u64>)>) -> DrawnSet {
        let (keys, reads) = self.phases.at((seat.clock)());
        let chance = &mut seat.chance;
        let (kind, structure) = (chance.fraction() * 100.0, chance.below(self.count as u64));
        let structure = structure as usize;
        let keys = distinct(self.calls, keys, chance);
        if kind < self.walks {
            return DrawnSet { structure, action: SetAction::Walk };
        }
        if kind < self.walks + reads {
            return DrawnSet { structure, action: SetAction::Look(keys) };
        }
        if let Some((structure, keys)) = added.take() {
            return DrawnSet { structure, action: SetAction::Remove(keys) };
        }
        let adds = self.pairs || chance.percent(50.0);
        let action = if adds { SetAction::Add(keys) } else { SetAction::Remove(keys) };
        DrawnSet { structure, action }
    }

    async fn look(&self, seat: &Seat, memory: &SetMemory, at: usize, keys: &[u64]) -> (Ended, u32) {
        let (structure, root) = (&memory.structures[at], self.roots.begin());
        let (answer, attempts) = match &memory.open {
            Some(layer) => {
                let (looker, length) = (root.handle(&memory.looker), self.length);
                let open = open::OpenCalls { layer, db: &looker, length, structure };
                open.look(&root, at, keys).await
            }
            None => {
                transact(&root.handle(&memory.looker), async |tx| {
                    root.begin_attempt();
                    let mut wrong = None;
                    for &key in keys {
                        let look = async |tx: &Tx| {
                            let found = structure.contains(tx, key).await?;
                            self.length.wait(&seat.db).await?;
                            Ok(found)
                        };
                        let (found, strange) = self.nesting.run(tx, look).await?;
                        root.did(AbstractOperation::Contains { set: at as u64, key, found });
                        wrong = wrong.or(strange);
                    }
                    Ok(wrong)
                })
                .await
            }
        };
        if let Ok(Some(value)) = &answer {
            let complain = || format!("a search found the value {value}");
            self.ledgers.of(seat.client).wrong_answers.add(complain);
        }
        let ended = ended(answer);
        root.end(&ended);
        (ended, attempts)
    }

    async fn walk(&self, seat: &Seat, memory: &SetMemory, at: usize) -> (Ended, u32) {
        let structure = &memory.structures[at];
        let (answer, attempts) =
            transact(&memory.reader, async |tx| structure.entries(tx).await).await;
        if let Ok(entries) = &answer {
            let mut ledger = self.ledgers.of(seat.client);
            ledger.walks += 1;
            let sorted = !structure.is_ordered() || entries.is_sorted_by(|a, b| a.0 < b.0);
            let whole = entries.iter().all(|(key, value)| *value == value_of(*key));
            if !sorted || !whole {
                ledger.wrong_walks.add(|| format!("structure {at} holds {entries:?}"));
            }
        }
        (ended(answer), attempts)
    }

    /// Adds or removes keys; what that has changed.
    async fn change(
        &self,
        seat: &Seat,
        memory: &SetMemory,
        what: KeyChanges<'_>,
    ) -> (Ended, u32, KeysChanged) {
        let (structure, client) = (&memory.structures[what.at], seat.client);
        let root = self.roots.begin();
        let handle = root.handle(&memory.changer);
        let set_out = |changed: &KeysChanged| {
            let mut ledger = self.ledgers.of(client);
            ledger.set_out(what.changes(changed));
            ledger.set_out_tally(what.at, changed.grouped);
        };
        let (answer, attempts) = match &memory.open {
            Some(layer) => {
                let open = open::OpenCalls { layer, db: &handle, length: self.length, structure };
                open.change((what, self.grouped), &root, set_out).await
            }
            None => {
                transact(&handle, async |tx| {
                    let call = async |key, call| {
                        let part = async |tx: &Tx| {
                            let answer = structure.call(tx, key, call).await?;
                            self.length.wait(&seat.db).await?;
                            Ok(answer)
                        };
                        self.nesting.run(tx, part).await
                    };
                    root.begin_attempt();
                    let changed = what.run(&root, call).await?;
                    set_out(&changed);
                    Ok(changed)
                })
                .await
            }
        };
        let changed = answer.as_ref().cloned().unwrap_or_default();
        let ended = ended(answer);
        root.end(&ended);
        let mut ledger = self.ledgers.of(client);
        ledger.settle(&ended);
        if let Some(wrong) = &changed.wrong {
            ledger.wrong_answers.add(|| wrong.clone());
        }
        (ended, attempts, changed)
    }

    /// Adds keys; they are to be removed next.
    async fn add(
        &self,
        seat: &mut Seat,
        memory: &mut SetMemory,
        at: usize,
        keys: &[u64],
    ) -> (Ended, u32) {
        let again = self.again > 0.0 && seat.chance.percent(self.again);
        let what = KeyChanges { at, keys, adds: true, again };
        let (ended, attempts, added) = self.change(seat, memory, what).await;
        if self.pairs && !added.keys.is_empty() {
            memory.added = Some((at, added.keys));
        }
        (ended, attempts)
    }

    /// Removes keys, which must be there if this client has added them.
    async fn remove(
        &self,
        seat: &mut Seat,
        memory: &mut SetMemory,
        at: usize,
        keys: &[u64],
    ) -> (Ended, u32) {
        let again = self.again > 0.0 && seat.chance.percent(self.again);
        let what = KeyChanges { at, keys, adds: false, again };
        let (ended, attempts, removed) = self.change(seat, memory, what).await;
        match &ended {
            Ended::Committed if self.pairs && removed.keys != keys => {
                let removed = &removed.keys;
                let complain = || format!("of its own {keys:?} a client could remove {removed:?}");
                self.ledgers.of(seat.client).wrong_answers.add(complain);
            }
            // Still there: next time.
            Ended::Failed(_) if self.pairs => memory.added = Some((at, keys.to_vec())),
            _ => {}
        }
        (ended, attempts)
    }
}

/// So many keys are added in one transaction of the loader.
const BATCH: usize = 32;

impl Workload for Sets {
    type Memory = SetMemory;

    fn spaces(&self, _repositories: usize) -> Vec<(&'static str, SpaceOptions)> {
        // The check reads all rows.
        let rows = (SPACE, SpaceOptions { index: Index::Ordered, ..SpaceOptions::default() });
        let tallies =
            (open::TALLIES, SpaceOptions { index: Index::Hash, ..SpaceOptions::default() });
        let tallies = self.grouped.then_some(tallies);
        std::iter::once(rows).chain(self.nesting.space()).chain(tallies).collect()
    }

    async fn load(&self, db: &Db) -> Result<(), Error> {
        for structure in self.structures(db.space(SPACE)?) {
            for keys in self.initial.chunks(BATCH) {
                let add = async |tx: &Tx| {
                    for key in keys {
                        structure.add(tx, *key).await?;
                    }
                    Ok(())
                };
                insist(async || db.transact_here(&add).await).await?;
            }
        }
        Ok(())
    }

    fn begin(&self, seat: &mut Seat) -> Result<SetMemory, Error> {
        self.ledgers.of(seat.client).begin_incarnation();
        let structures = self.structures(seat.db.space(SPACE)?);
        let open = match self.nesting.may_be_open() {
            true => Some(open::layer(self, &seat.db)?),
            false => None,
        };
        // Searches wait for the locks of open children: how long they take counts for the choice.
        let (changes, searches) = match self.nesting.may_be_open() {
            true => ("calls", "calls"),
            false => ("changes", "searches"),
        };
        let (reader, changer) =
            (seat.db.read_only(), self.nesting.handle(seat.node, &seat.db, changes));
        let looker = if self.looks_open { &seat.db } else { &reader };
        let looker = self.nesting.handle(seat.node, looker, searches);
        Ok(SetMemory { structures, reader, open, looker, changer, added: None })
    }

    async fn transact(&self, seat: &mut Seat, memory: &mut SetMemory) -> (Ended, u32) {
        let DrawnSet { structure, action } = self.draw(seat, &mut memory.added);
        match action {
            SetAction::Look(keys) => self.look(seat, memory, structure, &keys).await,
            SetAction::Walk => self.walk(seat, memory, structure).await,
            SetAction::Add(keys) => self.add(seat, memory, structure, &keys).await,
            SetAction::Remove(keys) => self.remove(seat, memory, structure, &keys).await,
        }
    }

    async fn check(&self, db: &Db) -> Result<Vec<Check>, Error> {
        checks::check(self, db).await
    }

    fn notes(&self) -> Vec<String> {
        self.nesting.notes()
    }

    fn roots(&self) -> Option<&dyn RecordsRoots> {
        Some(self)
    }

    fn open_children(&self) -> Option<NestingCounts> {
        self.nesting.counts()
    }
}

impl RecordsRoots for Sets {
    fn recorder(&self) -> &RootRecorder {
        &self.roots
    }

    fn start(&self) -> Vec<AbstractOperation> {
        let of_set = |set| {
            let keys = self.initial.iter();
            keys.map(move |key| AbstractOperation::Add { set, key: *key, was_new: true })
        };
        (0..self.count as u64).flat_map(of_set).collect()
    }

    fn object(&self, number: u64) -> String {
        format!("set {number}")
    }
}
