//! YCSB on home copies: each copy is a small table of records.
//!
//! A read-only transaction reads one record at home. An update touches every record of one copy:
//! a local one writes one of them without reading it, and reads the others; a remote one reads all
//! of them and writes its private key. Which copy a remote update uses, and whether it is remote,
//! come from one drawn number, by its remainders: with 160 copies and 5 % of remote updates these
//! are 40 of the copies. That is so in the port, and is kept, since it decides who meets whom.
//!
//! With `update=put` an update writes one record at home and reads nothing: nobody meets anybody,
//! as in the port's run that shows what the protocol itself costs.

use muesli::{Db, Error, Space, SpaceOptions, Tx};

use super::ledger::{Ledgers, WriterTag};
use super::rows::key;
use super::{HOMES, Homes, PRIVATE};
use crate::chance::Chance;
use crate::check::{Check, Complaints};
use crate::loading::write_missing;
use crate::nesting::{NestingPlan, PATIENCE};
use crate::parameters::{Parameter, ParameterKind, Values};
use crate::parted::{NESTING_BY_ROWS, PartsDb, PartsTx};
use crate::reading::read_many;
use crate::tally::Ended;
use crate::workload::{Seat, Workload, ended};

const SPACE: &str = "home-records";
/// The kind of the records.
const RECORD: u8 = b'r';

/// What YCSB on home copies takes.
pub const PARAMETERS: &[Parameter] = &[
    HOMES,
    Parameter::new(
        "keys",
        "16",
        ParameterKind::Count(1, 100_000),
        "Records of a copy, all of which an update reads.",
    ),
    Parameter::new(
        "reads",
        "50",
        ParameterKind::Percent,
        "Share of transactions that read one record.",
    ),
    Parameter::new(
        "remote",
        "5",
        ParameterKind::Percent,
        "Share of updates that read another copy.",
    ),
    Parameter::new(
        "update",
        "table",
        ParameterKind::Choice(&["table", "put"]),
        "Whether an update touches a whole copy, or puts one record at home.",
    ),
    Parameter::new("bytes", "200", ParameterKind::Count(12, 1_000_000), "Bytes of a record."),
    NESTING_BY_ROWS,
    PATIENCE,
];

/// YCSB on home copies.
#[derive(Debug)]
pub struct HomeRecords {
    homes: Homes,
    count: u32,
    reads: f64,
    remote: f64,
    puts: bool,
    bytes: usize,
    nesting: NestingPlan,
    ledgers: Ledgers,
}

/// What a client remembers.
#[derive(Debug)]
pub struct HomeRecordMemory {
    space: Space,
    writer: PartsDb,
    reader: PartsDb,
}

/// A transaction with its inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DrawnRecord {
    /// Reads this record at home.
    Read(u32),
    /// Writes this record at home and reads the others.
    Local(u32),
    /// Reads this copy.
    Remote(u32),
    /// Writes this record at home and reads nothing.
    Put(u32),
}

impl HomeRecords {
    /// With these parameters, for so many clients.
    pub fn new(values: &Values, clients: u32) -> HomeRecords {
        HomeRecords {
            homes: Homes::new(values),
            count: values.count("keys") as u32,
            reads: values.number("reads"),
            remote: values.number("remote"),
            puts: values.word("update") == "put",
            bytes: values.count("bytes") as usize,
            nesting: NestingPlan::seldom_open(values),
            ledgers: Ledgers::new(clients),
        }
    }

    fn draw(&self, chance: &mut Chance) -> DrawnRecord {
        let record = chance.below(self.count.into());
        if chance.percent(self.reads) {
            return DrawnRecord::Read(record as u32);
        }
        if self.puts {
            return DrawnRecord::Put(record as u32);
        }
        let random = chance.below(1 << 31);
        if ((random % 100) as f64) < self.remote {
            return DrawnRecord::Remote((random % u64::from(self.homes.0)) as u32);
        }
        DrawnRecord::Local((record * random % u64::from(self.count)) as u32)
    }

    async fn read_one(&self, seat: &Seat, memory: &HomeRecordMemory, record: u32) -> (Ended, u32) {
        let key = &key(self.homes.of(seat.client), RECORD, record);
        let body = async |tx: PartsTx<'_>| {
            let read = async |tx: &Tx| tx.get(memory.space, key.clone()).await;
            present(self.nesting.rest(tx, read).await?.as_ref())
        };
        let (answer, attempts) = memory.reader.transact(body).await;
        (ended(answer), attempts)
    }

    async fn update(
        &self,
        seat: &Seat,
        memory: &HomeRecordMemory,
        drawn: DrawnRecord,
    ) -> (Ended, u32) {
        let client = seat.client;
        let number = self.ledgers.of(client).next_number();
        let (answer, attempts) = memory
            .writer
            .transact(async |tx| {
                self.ledgers.of(client).begin_attempt();
                self.attempt(tx, memory.space, (client, number), drawn).await
            })
            .await;
        let ended = ended(answer);
        self.ledgers.of(client).settle(&ended);
        (ended, attempts)
    }

    async fn attempt(
        &self,
        tx: PartsTx<'_>,
        space: Space,
        (client, number): (u32, u64),
        drawn: DrawnRecord,
    ) -> Result<(), Error> {
        let own = self.homes.of(client);
        let (home, written, touched) = match drawn {
            DrawnRecord::Remote(home) => (home, None, 0..self.count),
            DrawnRecord::Local(record) => (own, Some(record), 0..self.count),
            DrawnRecord::Put(record) => (own, Some(record), record..record + 1),
            DrawnRecord::Read(_) => unreachable!("updates only"),
        };
        let value = WriterTag { writer: client + 1, number }.value(self.bytes);
        for record in touched {
            let key = key(home, RECORD, record);
            if Some(record) == written {
                self.ledgers.of(client).write(key.clone(), number);
                let write = async |tx: &Tx| tx.put(space, key.clone(), value.clone()).await;
                self.nesting.rest(tx, write).await?;
            } else {
                let read = async |tx: &Tx| present(tx.get(space, key.clone()).await?.as_ref());
                self.nesting.part(tx, read).await?;
            }
        }
        if written.is_none() {
            let key = key(home, PRIVATE, client);
            self.ledgers.of(client).write(key.clone(), number);
            let write = async |tx: &Tx| tx.put(space, key.clone(), value.clone()).await;
            self.nesting.rest(tx, write).await?;
        }
        Ok(())
    }
}

/// A record must be there.
fn present(value: Option<&muesli::SmallBytes>) -> Result<(), Error> {
    let missing = || Error::Codec("a record is missing".to_owned());
    WriterTag::of(value.ok_or_else(missing)?).map(|_| ())
}

impl Workload for HomeRecords {
    type Memory = HomeRecordMemory;

    fn spaces(&self, repositories: usize) -> Vec<(&'static str, SpaceOptions)> {
        vec![(SPACE, self.homes.space(repositories))]
    }

    async fn load(&self, db: &Db) -> Result<(), Error> {
        let space = db.space(SPACE)?;
        for home in self.homes.all() {
            let row = |record| (key(home, RECORD, record), WriterTag::LOADED.value(self.bytes));
            write_missing(db, space, (0..self.count).map(row)).await?;
        }
        Ok(())
    }

    fn begin(&self, seat: &mut Seat) -> Result<HomeRecordMemory, Error> {
        self.ledgers.of(seat.client).begin_incarnation();
        let writer = self.nesting.parts_handle(seat.node, &seat.db, "updates")?;
        let reader = self.nesting.whole_handle(&seat.db.read_only())?;
        Ok(HomeRecordMemory { space: seat.db.space(SPACE)?, writer, reader })
    }

    async fn transact(&self, seat: &mut Seat, memory: &mut HomeRecordMemory) -> (Ended, u32) {
        match self.draw(&mut seat.chance) {
            DrawnRecord::Read(record) => self.read_one(seat, memory, record).await,
            update => self.update(seat, memory, update).await,
        }
    }

    async fn check(&self, db: &Db) -> Result<Vec<Check>, Error> {
        let space = db.space(SPACE)?;
        self.ledgers.close();
        let all = self.homes.all().flat_map(|home| (0..self.count).map(move |it| (home, it)));
        let keys: Vec<_> = all.map(|(home, record)| key(home, RECORD, record)).collect();
        let mut wrong = Complaints::default();
        for (key, value) in keys.iter().zip(read_many(db, space, &keys).await?) {
            if value.as_ref().is_none_or(|value| value.len() != self.bytes) {
                wrong.add(|| format!("{key:?} is {value:?}"));
            }
        }
        let whole = format!("{} records", keys.len());
        let records = Check::none_wrong("records are there and whole", &wrong, whole);
        Ok(vec![records, self.ledgers.check_writes(db, space).await?])
    }

    fn parted(&self) -> Option<&NestingPlan> {
        Some(&self.nesting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remote_updates_use_as_many_copies_as_in_the_port() {
        let given = ["homes=160".to_owned(), "keys=8".to_owned()];
        let values = Values::read("home-records", PARAMETERS, &given).unwrap();
        let (workload, mut chance) = (HomeRecords::new(&values, 1), Chance::new(1, 0, 1));
        let (mut reads, mut local, mut copies) = (0, 0, std::collections::BTreeMap::new());
        for _ in 0..200_000 {
            match workload.draw(&mut chance) {
                DrawnRecord::Read(record) => reads += u32::from(record < 8),
                DrawnRecord::Local(record) => local += u32::from(record < 8),
                DrawnRecord::Remote(home) => *copies.entry(home).or_insert(0) += 1,
                DrawnRecord::Put(_) => panic!("not asked for"),
            }
        }
        let remote: u32 = copies.values().sum();
        assert!((98_000..102_000).contains(&reads) && reads + local + remote == 200_000);
        assert!((4_500..5_500).contains(&remote), "{remote}");
        assert_eq!(copies.len(), 40);
        assert!(copies.keys().all(|home| home % 20 < 5));
    }

    #[test]
    fn puts_are_of_all_records_at_home() {
        let given = ["keys=8".to_owned(), "update=put".to_owned()];
        let values = Values::read("home-ycsb", PARAMETERS, &given).unwrap();
        let (workload, mut chance) = (HomeRecords::new(&values, 1), Chance::new(1, 0, 1));
        let drawn: Vec<_> = (0..1_000).map(|_| workload.draw(&mut chance)).collect();
        let reads = drawn.iter().filter(|it| matches!(it, DrawnRecord::Read(_))).count();
        assert!((400..600).contains(&reads), "{reads}");
        let mut put = [0; 8];
        for drawn in drawn.into_iter().filter(|it| !matches!(it, DrawnRecord::Read(_))) {
            let DrawnRecord::Put(record) = drawn else { panic!("{drawn:?}") };
            put[record as usize] += 1;
        }
        assert!(put.iter().all(|times| *times > 30), "{put:?}");
    }
}
