//! Databases on a cluster: the same handle, whose transactions are coordinated by a loop of this
//! process that speaks to the servers.

mod catch_up;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use muesli_cluster::spaces::limits;
use muesli_cluster::spaces::map::Map;
use muesli_cluster::spaces::parts::MapParts;
use muesli_cluster::spaces::register::{self, Register};
use muesli_cluster::{Client, ClientOptions, ClusterId, ConnectError, Network, SpaceError};
use muesli_core::limits::ENVELOPE_BYTES;
use muesli_core::options::GIVE_UP_MOST;
use muesli_core::recorder::Sampling;
use muesli_core::{
    Actions, Batching, Catalog, Limits, NodeId, Procedures, Secret, SmallBytes, SpaceOptions,
    Traffic,
};

use self::catch_up::CatchUp;
use crate::data::space::Origin;
use crate::database::handle::{Db, Job, LoopDriver, TRANSACTION_TIMEOUT, next_database};
use crate::dispatch::report::Report;
use crate::error::Error;
use crate::options::CLOSE_WITHIN;
use crate::plans::{self, PlannedProcedure};
use crate::procedures::{self, StoredProcedure, builtin};
use crate::retry::Retry;

/// A register of spaces that makes no sense is looked at again after such a pause, so often: by
/// then a server has written it again.
const MENDED_PAUSE: Duration = Duration::from_millis(100);
const MENDED_WITHIN: u32 = 50;

/// How a database on a cluster is connected to.
#[derive(Clone, Debug)]
pub struct Connect {
    /// Addresses of servers, `host:port`; one that answers is enough to learn of the others.
    pub addresses: Vec<String>,
    /// Servers, by their numbers, that this client reaches at other addresses than those that they
    /// name to each other, as behind a proxy.
    pub dial: Vec<(u32, String)>,
    /// The number of the cluster, if it matters; 0 takes whichever answers.
    pub cluster: u64,
    /// The protocol, by name.
    pub protocol: String,
    /// Size limits, checked before anything is sent. The servers judge by their own once more, and
    /// refuse with [`Error::OverServerLimit`] where theirs are smaller.
    pub limits: Limits,
    /// How conflicts are retried.
    pub retry: Retry,
    /// The procedures that this client calls, as the servers know them: what is declared of them
    /// here chooses the class of a call. Add your own with [`procedure`](Self::procedure).
    pub procedures: Procedures,
    /// The delayed actions that this client asks for, as the servers know them.
    pub actions: Actions,
    /// How many messages to a server leave together, and how long they wait for each other; what
    /// servers say to clients goes by their own setting. Of the class
    /// [`others`](Batching::others) for a client.
    pub batching: Batching,
    /// Whether this process keeps a copy of each repository that its
    /// [follower-reading](Db::follower_reads) readers ask for, and answers them from it without a
    /// message. A copy holds all keys of the repository in memory, some milliseconds behind (more,
    /// while the servers cannot be reached), and is dropped when nobody asks for a while. `granola`
    /// and its kin have such copies.
    pub caches: bool,
    /// The server that this client is nearest to, by its number: under protocols that move data
    /// (`tfa`) what a transaction writes moves there with its commit, and is then read and locked
    /// without asking any other server. `None`: what it writes stays where it is. Servers without
    /// data are refused.
    pub near: Option<u32>,
    /// Whether what transactions do is recorded, to be checked; see [`Db::close`].
    pub history: bool,
    /// Which transactions are recorded whole, where they are, as
    /// [`Options::sampling`](crate::Options::sampling); the same for all clients of which one
    /// history is made.
    pub sampling: Sampling,
    /// The cluster's secret: needed where the servers ask clients for it (`clients_need_secret`),
    /// and where this client is to make sure that they are the servers.
    pub secret: Option<Secret>,
    /// The file of a timestamp lease, made if it is not there: with it, what this client does lies
    /// after all that a client with this file has seen or done before, however that ended and
    /// whatever the servers' clocks say (Cowling's thesis on Granola, section 5.2.2). Without it a
    /// client that starts again has seen nothing. An answer is told once the file covers it, which
    /// costs a write and a sync for each [`timestamp_lease_ahead`](Self::timestamp_lease_ahead) of
    /// the servers' time. A file is for one client at a time. `granola` and its kin, and
    /// `sinfonia`, have such leases; `docs/inside/protocols/granola.md` tells more.
    pub timestamp_lease: Option<PathBuf>,
    /// How far a timestamp lease goes ahead of what was answered, from 1 ms to 10 minutes. A client
    /// that was killed waits for so long at most when it starts again, where clocks agree.
    pub timestamp_lease_ahead: Duration,
    /// How long to look for the servers; those that have not answered by then are looked for
    /// while transactions run already.
    pub connect_within: Duration,
    /// A request that was not answered for so long is sent again, from 1 ms to a minute: longer
    /// than servers that are far take to answer.
    pub retry_after: Duration,
    /// How long an operation may wait for its answer before it fails; two minutes at most, as
    /// servers forget clients that are silent for longer.
    pub give_up_after: Duration,
    /// As [`Options::transaction_timeout`](crate::Options::transaction_timeout).
    pub transaction_timeout: Duration,
    /// As [`Options::close_within`](crate::Options::close_within).
    pub close_within: Duration,
}

impl Default for Connect {
    fn default() -> Connect {
        Connect {
            addresses: Vec::new(),
            dial: Vec::new(),
            cluster: 0,
            protocol: "score".to_owned(),
            limits: Limits::default(),
            retry: Retry::default(),
            procedures: builtin::all(),
            actions: Actions::default(),
            batching: Batching::default(),
            caches: false,
            near: None,
            history: false,
            sampling: Sampling::ALL,
            secret: None,
            timestamp_lease: None,
            timestamp_lease_ahead: Duration::from_secs(1),
            connect_within: Duration::from_secs(5),
            retry_after: Duration::from_millis(20),
            give_up_after: Duration::from_secs(10),
            transaction_timeout: TRANSACTION_TIMEOUT,
            close_within: CLOSE_WITHIN,
        }
    }
}

impl Connect {
    /// Adds a procedure.
    pub fn procedure<P: StoredProcedure>(self) -> Connect {
        Connect { procedures: procedures::with::<P>(self.procedures), ..self }
    }

    /// Adds a procedure that is a [plan](crate::plans).
    ///
    /// # Errors
    /// [`Error::Options`] where it cannot be in one round.
    pub fn plan<P: PlannedProcedure>(self) -> Result<Connect, Error> {
        let procedures = plans::with::<P>(self.procedures);
        let procedures = procedures.map_err(|error| Error::Options(error.to_string()))?;
        Ok(Connect { procedures, ..self })
    }
}

/// A client of a cluster, as a way into its loop.
struct Remote(Client);

impl Db {
    /// Connects to a cluster by the addresses of some of its servers, with default options.
    ///
    /// # Errors
    /// [`Error::Unreachable`].
    pub fn connect<A: Into<String>>(addresses: impl IntoIterator<Item = A>) -> Result<Db, Error> {
        let addresses = addresses.into_iter().map(Into::into).collect();
        Db::connect_with(Connect { addresses, ..Connect::default() })
    }

    /// Connects to a cluster.
    ///
    /// # Errors
    /// [`Error::Unreachable`] where nobody answers or the cluster refuses; [`Error::Options`] where
    /// the options cannot be; [`Error::Lease`] where the timestamp lease cannot be used, or no
    /// server has come to its end within `connect_within` and `timestamp_lease_ahead` together.
    pub fn connect_with(connect: Connect) -> Result<Db, Error> {
        let (waits, most) = (connect.give_up_after.as_millis(), GIVE_UP_MOST.as_millis());
        if waits > u128::from(most) {
            let text = format!("`give_up_after` is {waits} ms, and may be at most {most} ms");
            return Err(Error::Options(text));
        }
        let database = next_database();
        let mut network = Network::default();
        let largest = connect.limits.transaction_bytes.saturating_add(ENVELOPE_BYTES);
        // A frame must fit into what waits to be sent, too.
        for most in [
            &mut network.frame_bytes_max,
            &mut network.outgoing_bytes_max,
            &mut network.outgoing_bytes_total,
            &mut network.incoming_bytes_total,
        ] {
            *most = (*most).max(largest);
        }
        let options = ClientOptions {
            addresses: connect.addresses,
            dial: connect.dial.into_iter().map(|(server, at)| (NodeId(server), at)).collect(),
            cluster: ClusterId(connect.cluster),
            protocol: connect.protocol.clone(),
            database,
            limits: connect.limits,
            procedures: connect.procedures.clone(),
            actions: connect.actions,
            batching: connect.batching,
            caches: connect.caches,
            near: connect.near.map(NodeId),
            history: connect.history,
            sampling: connect.sampling,
            secret: connect.secret,
            timestamp_lease: connect.timestamp_lease.clone(),
            timestamp_lease_ahead: connect.timestamp_lease_ahead,
            connect_within: connect.connect_within,
            retry_after: connect.retry_after,
            give_up_after: connect.give_up_after,
            close_within: connect.close_within,
            space_within: connect.connect_within,
            network,
        };
        let client = Client::connect(options);
        let client = client.map_err(|error| match error {
            ConnectError::Lease(why) => Error::Lease(why),
            ConnectError::Invalid(broken) => Error::Options(broken.join("; ")),
            error => Error::Unreachable(error.to_string()),
        })?;
        let catch_up = connect.timestamp_lease.as_ref().map(|path| CatchUp {
            path: path.display().to_string(),
            end: client.lease_end().unwrap_or_default(),
            step: muesli_registry::timestamp_step(&connect.protocol).unwrap_or_default(),
            repositories: client.repositories(),
            within: connect.connect_within.saturating_add(connect.timestamp_lease_ahead),
        });
        let catalog = client.catalog();
        let db = Db::new(
            (database, Origin::cluster(client.cluster().0)),
            catalog,
            (connect.retry, connect.procedures),
            Some(Box::new(Remote(client))),
        );
        let db = db.timeout(connect.transaction_timeout);
        let Some(catch_up) = catch_up else { return Ok(db) };
        if let Err(error) = catch_up.wait(&db) {
            db.close();
            return Err(error);
        }
        Ok(db.having_seen(catch_up.end))
    }
}

fn library_error(error: SpaceError) -> Error {
    match error {
        SpaceError::Refused(why) => Error::Options(why),
        SpaceError::Timeout(after_ms) => Error::Timeout { after_ms },
        SpaceError::Closed => Error::Closed,
    }
}

impl Remote {
    /// Makes a space where the database itself keeps them: one transaction on the row of the
    /// [`register`], and then a word to the servers. Where the row makes no sense, they write it
    /// again first.
    fn register_space(&self, db: &Db, name: &str, options: &SpaceOptions) -> Result<(), Error> {
        let map = self.0.map().ok_or(Error::Closed)?;
        options.judge_everywhere(name, self.0.keeps_everywhere()).map_err(Error::Options)?;
        if map.catalog.with_space(name, options.clone())?.epoch == map.catalog.epoch {
            return Ok(());
        }
        let mut attempts = 0;
        loop {
            let map = self.0.map().ok_or(Error::Closed)?;
            match self.write_register(db, name, options, map)? {
                Ok(row) => return self.0.register(row).map_err(library_error),
                Err(Unwritten::Space(why)) => return Err(Error::Options(why)),
                Err(Unwritten::Row(why)) if attempts == MENDED_WITHIN => {
                    return Err(Error::Options(why));
                }
                Err(Unwritten::Row(_)) => self.0.doubt_register(),
            }
            attempts += 1;
            std::thread::sleep(MENDED_PAUSE);
        }
    }

    /// The row with one more space, as it was written; or why it was not.
    fn write_register(
        &self,
        db: &Db,
        name: &str,
        options: &SpaceOptions,
        map: Map,
    ) -> Result<Result<Register, Unwritten>, Error> {
        let directory = db.space(register::SPACE)?;
        let (name, options, most) = (name.to_owned(), options.clone(), self.0.frame_bytes_max());
        db.session().strict().blocking().transact(async move |tx| {
            let key = SmallBytes::new(register::KEY);
            let found = tx.get(directory, key.clone()).await?;
            let next = match next_row(found.as_ref(), &name, &options, &map, most) {
                Ok(next) => next,
                Err(why) => return Ok(Err(why)),
            };
            let row = next.to_row();
            if Some(&row) != found.as_ref() {
                tx.put(directory, key, row).await?;
            }
            Ok(Ok(next))
        })
    }
}

/// Why a space was not written into the register.
enum Unwritten {
    /// What is there makes no sense.
    Row(String),
    /// The space cannot be.
    Space(String),
}

/// What the register says with one more space, if that can be, and goes in a frame of `most` bytes.
fn next_row(
    found: Option<&SmallBytes>,
    name: &str,
    options: &SpaceOptions,
    map: &Map,
    most: usize,
) -> Result<Register, Unwritten> {
    let row = found.map_or_else(|| Ok(Register::of(map)), Register::of_row);
    let row = row.map_err(Unwritten::Row)?;
    row.grown_from(map).map_err(|error| Unwritten::Row(error.to_string()))?;
    let cannot = |error: String| Unwritten::Space(error);
    let next = row.with_space(name, options, map).map_err(|error| cannot(error.to_string()))?;
    let grown = next.grown_from(map).map_err(|error| cannot(error.to_string()))?;
    limits::judge_frame(&MapParts::from(&grown), most)
        .map_err(|error| cannot(error.to_string()))?;
    Ok(next)
}

impl LoopDriver for Remote {
    fn loops(&self) -> usize {
        1
    }

    fn has_several_coordinators(&self) -> bool {
        true
    }

    fn submit(&self, _: usize, job: Job) -> Result<(), Job> {
        self.0.submit(job)
    }

    fn reconfigure(&self, _: &Arc<Catalog>) {}

    fn catalog(&self) -> Option<Arc<Catalog>> {
        Some(self.0.catalog())
    }

    fn catalog_of_keys(&self) -> Option<Arc<Catalog>> {
        Some(self.0.catalog_of_keys())
    }

    fn make_space(&self, db: &Db, name: &str, options: &SpaceOptions) -> Option<Result<(), Error>> {
        Some(match self.0.map().filter(|map| map.group > 1) {
            Some(_) => self.register_space(db, name, options),
            None => self.0.create_space(name, options).map_err(library_error),
        })
    }

    fn failure(&self) -> Option<Error> {
        self.0.lost_lease().map(Error::Lease)
    }

    fn messages(&self) -> u64 {
        self.0.traffic().messages
    }

    fn packets(&self) -> u64 {
        self.0.traffic().writes
    }

    fn traffic(&self) -> Traffic {
        self.0.traffic()
    }

    fn close(&self) -> Vec<Report> {
        let messages = self.0.traffic().messages;
        let recorder = self.0.close();
        let report = recorder.map(|recorder| Report { recorder, messages, ..Report::default() });
        report.into_iter().collect()
    }
}
