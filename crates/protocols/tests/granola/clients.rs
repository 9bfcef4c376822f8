//! The worlds' clients: each calls procedures and runs interactive transactions, one after the
//! other, as a session that carries what it has seen.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

use muesli_core::client::{self, AnswerFuture};
use muesli_core::moving::MoveOrder;
use muesli_core::procedure::{Call, Class, Fragment, Invoked, Place, ProcedureId};
use muesli_core::{
    Answer, Catalog, Failure, Nanos, Operation, Put, RepositoryId, Scan, SmallBytes, SpaceId,
    Timestamp, Txn, TxnOptions,
};
use muesli_sim::random::Random;
use muesli_sim::world::ClientStart;

use super::procedures::key;

/// Which transactions the clients run, each so often in all of them together.
#[derive(Clone, Copy, Debug)]
pub struct Mix {
    /// `bump` of keys of one repository.
    pub single: u64,
    /// `bump` or `chase` of keys anywhere.
    pub independent: u64,
    /// `perhaps` of keys anywhere.
    pub coordinated: u64,
    /// `share` of keys anywhere: participants tell each other.
    pub sharing: u64,
    /// `look` at keys anywhere.
    pub look: u64,
    /// Reads, scans, writes, a commit.
    pub interactive: u64,
    /// A partition moves anywhere.
    pub moving: u64,
    /// How many keys there are.
    pub keys: u64,
}

/// What the clients counted.
#[derive(Debug, Default)]
pub struct Tally {
    pub done: Cell<u64>,
    pub refused: Cell<u64>,
    pub aborted: Cell<u64>,
    pub other: Cell<u64>,
    pub moved: Cell<u64>,
}

const SPACE: SpaceId = SpaceId(0);

/// Transactions until told to stop.
pub async fn client(
    database: u64,
    catalog: Rc<Catalog>,
    (mix, follower_read): (Mix, bool),
    start: ClientStart,
    tally: Rc<Tally>,
) {
    let random = start.seed.stream();
    let session = (u64::from(start.number) + 1) << 32 | u64::from(start.incarnation);
    let lower_bound = Timestamp::ZERO;
    let mut client = Client { database, catalog, mix, follower_read, random, session, lower_bound };
    while !start.stop.is_raised() {
        let moves = client.mix.moving > 0 && client.random.below(100) < client.mix.moving;
        let ended = if moves { client.relocate().await } else { client.once().await };
        let counter = match ended {
            Ok(_) if moves => &tally.moved,
            Ok(at) => {
                client.lower_bound = client.lower_bound.max(at);
                &tally.done
            }
            Err(Failure::Refused(_)) => &tally.refused,
            Err(Failure::Aborted(_)) => &tally.aborted,
            Err(_) => &tally.other,
        };
        counter.set(counter.get() + 1);
    }
}

struct Client {
    database: u64,
    catalog: Rc<Catalog>,
    mix: Mix,
    follower_read: bool,
    random: Random,
    session: u64,
    lower_bound: Timestamp,
}

/// Has a one-round transaction done.
pub async fn invoke(database: u64, options: TxnOptions, call: Call) -> Result<Invoked, Failure> {
    client::operate(database, Operation::Invoke(options, call)).await.map(Answer::invoked)
}

/// What a procedure is given at the repository of some of the transaction's keys.
pub fn arguments(name: &str, own: &[u8], all: &BTreeMap<u16, Vec<u8>>) -> SmallBytes {
    if name != "share" {
        return SmallBytes::new(own);
    }
    let others = all.values().filter(|keys| keys[..] != *own).flatten();
    let mut bytes = vec![own.len() as u8];
    bytes.extend(own.iter().chain(others));
    SmallBytes::new(&bytes)
}

/// Does nothing for a while.
pub async fn sleep(database: u64, how_long: Nanos) {
    let op = client::with(database, |engine| engine.sleep(how_long)).expect("a client's node");
    let answer = AnswerFuture::new(database, op).await;
    assert_eq!(answer, Ok(Answer::Awake), "sleeping never fails");
}

/// The time of the client's node.
pub fn now(database: u64) -> Nanos {
    client::with(database, |engine| engine.now()).expect("a client's node")
}

/// A client with an interactive transaction.
struct Leaves {
    database: u64,
    txn: Txn,
}

impl Drop for Leaves {
    fn drop(&mut self) {
        client::with(self.database, |engine| engine.operate(Operation::rollback(self.txn)));
    }
}

impl Client {
    async fn once(&mut self) -> Result<Timestamp, Failure> {
        let Mix { single, independent, coordinated, look, interactive, sharing, .. } = self.mix;
        let all = single + independent + coordinated + look + interactive + sharing;
        let draw = self.random.below(all);
        let bounds = [single, single + independent, single + independent + coordinated];
        match draw {
            draw if draw < bounds[0] => self.call("bump", Class::Single, true).await,
            draw if draw < bounds[1] => {
                let name = if self.random.below(2) == 0 { "bump" } else { "chase" };
                self.call(name, Class::Auto, false).await
            }
            draw if draw < bounds[2] => self.call("perhaps", Class::Auto, false).await,
            draw if draw >= all - sharing => self.call("share", Class::Auto, false).await,
            draw if draw < bounds[2] + look => self.call("look", Class::Auto, false).await,
            _ => self.interactive().await,
        }
    }

    fn options(&self) -> TxnOptions {
        let Client { lower_bound, session, follower_read, .. } = *self;
        TxnOptions { lower_bound, session, follower_reads: follower_read, ..TxnOptions::default() }
    }

    /// Some keys, by the partition that holds them.
    fn keys(&mut self, one_partition: bool) -> BTreeMap<u16, Vec<u8>> {
        let mut keys: BTreeMap<u16, Vec<u8>> = BTreeMap::new();
        for _ in 0..1 + self.random.below(3) {
            let number = self.random.below(self.mix.keys) as u8;
            let of = keys.entry(self.catalog.partition(SPACE, &key(number))).or_default();
            if !of.contains(&number) {
                of.push(number);
            }
        }
        while one_partition && keys.len() > 1 {
            keys.pop_last();
        }
        keys
    }

    async fn call(
        &mut self,
        name: &str,
        class: Class,
        one_partition: bool,
    ) -> Result<Timestamp, Failure> {
        let divided = self.keys(one_partition);
        let fragment = |(_, keys): (&u16, &Vec<u8>)| Fragment {
            procedure: ProcedureId { name: name.into(), version: 1 },
            place: Place::Key(SPACE, key(keys[0])),
            arguments: arguments(name, keys, &divided),
        };
        let fragments: Vec<_> = divided.iter().map(fragment).collect();
        let (options, wanted) = (self.options(), fragments.len());
        let call = Call { class, fragments };
        let Invoked { at, results } = invoke(self.database, options, call).await?;
        assert_eq!(results.len(), wanted, "a result for each fragment");
        Ok(at)
    }

    /// Moves a partition anywhere, and tells where it is.
    async fn relocate(&mut self) -> Result<Timestamp, Failure> {
        let partition = self.random.below(self.catalog.partitions() as u64) as u16;
        let to = RepositoryId(self.random.below(self.catalog.repositories() as u64) as u16);
        let order = MoveOrder { partition, from: None, to };
        let Invoked { at, .. } = invoke(self.database, self.options(), order.call()).await?;
        Ok(at)
    }

    async fn interactive(&mut self) -> Result<Timestamp, Failure> {
        let database = self.database;
        let options = self.options();
        let begun = client::operate(database, Operation::Begin(options)).await;
        let txn = begun?.begun();
        // Harmless once it has ended; a client that vanishes leaves it running otherwise.
        let _leaves = Leaves { database, txn };
        self.operations(txn).await?;
        let committed = client::operate(database, Operation::Commit(txn)).await?.committed();
        Ok(committed.at)
    }

    async fn operations(&mut self, txn: Txn) -> Result<(), Failure> {
        let database = self.database;
        for _ in 0..1 + self.random.below(3) {
            let number = self.random.below(self.mix.keys) as u8;
            let operation = match self.random.below(5) {
                0 => {
                    let (lo, hi) = (key(number), Some(key(number + 3)));
                    let (reverse, limit) = (self.random.below(2) == 0, 1 + self.random.below(3));
                    let scan = Scan { space: SPACE, lo, hi, reverse, limit: limit as usize };
                    Operation::Scan(txn, scan)
                }
                1 | 2 => Operation::Get(txn, SPACE, key(number)),
                what => {
                    let bits = self.random.bits();
                    let value = (what == 3).then(|| SmallBytes::new(&bits.to_be_bytes()));
                    let put = Put { space: SPACE, key: key(number), value, may_wait: false };
                    Operation::Put(txn, put)
                }
            };
            client::operate(database, operation).await?;
        }
        Ok(())
    }
}
