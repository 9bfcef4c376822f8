//! Options of a database.

#[cfg(feature = "cluster")]
use std::path::PathBuf;
use std::time::Duration;

use muesli_core::catalog::{ShardSites, TreePlan};
use muesli_core::recorder::Sampling;
use muesli_core::{Actions, Batching, Limits, Procedures, SpaceOptions};

use crate::database::handle::TRANSACTION_TIMEOUT;
#[cfg(feature = "cluster")]
use crate::durable::Durable;
use crate::error::Error;
use crate::plans::{self, PlannedProcedure};
use crate::procedures::builtin;
use crate::procedures::registration;
use crate::procedures::stored::StoredProcedure;
use crate::retry::Retry;
use crate::site_delays::SiteDelays;

/// Open transactions may take so long to end when a database is closed, unless told otherwise.
pub(crate) const CLOSE_WITHIN: Duration = Duration::from_secs(1);

/// How a database is opened. The default is one repository on one loop, under SCORe.
#[derive(Clone, Debug)]
pub struct Options {
    /// How many repositories hold the keys.
    pub repositories: usize,
    /// How many repositories hold each key.
    pub replicas: usize,
    /// How many partitions there are for each repository. More than one, so that
    /// [moves](crate::Db::move_partition) can share the keys out anew.
    pub partitions_per_repository: usize,
    /// How many loops (threads) run them; repositories are dealt to loops in turn.
    pub loops: usize,
    /// How many loops there are besides, which hold no keys and decide for the others, under
    /// protocols that have masters: `sinfonia`, whose masters are the clients' own loops without.
    pub masters: usize,
    /// The tree that votes climb, above the loops, under protocols that go by one: a
    /// [shape](muesli_core::catalog::TreeShape) or what a [text](muesli_core::catalog::NamedTree)
    /// says, and how many validators each inner node has. `None`: a root above all.
    pub tree: Option<TreePlan>,
    /// How many loops there are besides, which hold no keys, and on which the tree's validators
    /// live in turn. 0: these live beside the keys.
    pub validator_loops: usize,
    /// How many messages from one loop to another leave together, and how long they wait for each
    /// other: by default they leave with the turn of the loop, and wait for nothing.
    pub batching: Batching,
    /// The sites that loops are at, in turn, by how long messages are under way between them: to
    /// try out in one process what servers at several places do. `None`: nobody is far away.
    pub sites: Option<SiteDelays>,
    /// Under sharded protocols, the [sites](Self::sites) of the members of each shard: as many
    /// repositories with as many replicas as there are. `None`: they are dealt to loops in turn.
    pub shards: Option<ShardSites>,
    /// The protocol, by name; `muesli::protocol_names` lists them.
    pub protocol: String,
    /// The files that the data last in; `None`: the database lives in memory.
    #[cfg(feature = "cluster")]
    pub durable: Option<Durable>,
    /// Spaces to be there from the start.
    pub spaces: Vec<(String, SpaceOptions)>,
    /// Size limits.
    pub limits: Limits,
    /// How conflicts are retried.
    pub retry: Retry,
    /// What [`Tx::defer`](crate::Tx::defer) can do; add your own with [`Actions::with`].
    pub actions: Actions,
    /// What [`Db::call`](crate::Db::call) can run; add your own with
    /// [`procedure`](Self::procedure).
    pub procedures: Procedures,
    /// How many threads of each loop run procedures that have nothing to do with each other, its
    /// own included, under protocols that can: `granola`, `granola-passing` and the certified ones.
    /// With 1, which is the default, they are run one after the other; more pay where procedures
    /// take long.
    pub procedure_threads: usize,
    /// Whether what transactions do is recorded, to be checked; see
    /// [`Db::close`](crate::Db::close).
    pub history: bool,
    /// Which transactions are recorded whole, where they are: [`Sampling::one_in`] a number of
    /// them, by their ids. Of the others it is recorded what they wrote, so that the history has
    /// whoever wrote what the sampled ones have read. The checker finds no violation in it that is
    /// false, and may miss some ([`Sampling`]).
    pub sampling: Sampling,
    /// When the database is closed, transactions that are open then may take so long to end; those
    /// that have not are aborted.
    pub close_within: Duration,
    /// For tests: whether the loops wait, when the database is closed, until everybody has
    /// applied what was decided. Off, they end at once, and drop decisions that clients were told
    /// of, to see it noticed.
    #[doc(hidden)]
    pub applies_at_close: bool,
    /// How long a transaction may be open, from its first attempt to its commit, unless its handle
    /// has a [timeout](crate::Db::timeout) of its own: then it is aborted, and its caller gets
    /// [`Error::TransactionTimeout`](crate::Error::TransactionTimeout).
    pub transaction_timeout: Duration,
    /// How long an idle loop looks for work before it sleeps. Zero sleeps at once: best where
    /// threads outnumber cores.
    pub spin: Duration,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            repositories: 1,
            replicas: 1,
            partitions_per_repository: 1,
            loops: 1,
            masters: 0,
            tree: None,
            validator_loops: 0,
            batching: Batching::default(),
            sites: None,
            shards: None,
            protocol: "score".to_owned(),
            #[cfg(feature = "cluster")]
            durable: None,
            spaces: Vec::new(),
            limits: Limits::default(),
            retry: Retry::default(),
            actions: Actions::default(),
            procedures: builtin::all(),
            procedure_threads: 1,
            history: false,
            sampling: Sampling::ALL,
            close_within: CLOSE_WITHIN,
            applies_at_close: true,
            transaction_timeout: TRANSACTION_TIMEOUT,
            spin: Duration::from_micros(20),
        }
    }
}

impl Options {
    /// Adds a space.
    pub fn space(mut self, name: &str, options: SpaceOptions) -> Options {
        self.spaces.push((name.to_owned(), options));
        self
    }

    /// Keeps the data in this folder, so that they last: a commit is answered once it is on the
    /// disk. [`Durable`] says more, and how to wait for less.
    #[cfg(feature = "cluster")]
    pub fn durable(self, path: impl Into<PathBuf>) -> Options {
        Options { durable: Some(Durable::at(path)), ..self }
    }

    /// Adds a procedure.
    pub fn procedure<P: StoredProcedure>(self) -> Options {
        Options { procedures: registration::with::<P>(self.procedures), ..self }
    }

    /// Adds a procedure that is a [plan](crate::plans).
    ///
    /// # Errors
    /// [`Error::Options`] where it cannot be in one round.
    pub fn plan<P: PlannedProcedure>(self) -> Result<Options, Error> {
        let procedures = plans::with::<P>(self.procedures);
        let procedures = procedures.map_err(|error| Error::Options(error.to_string()))?;
        Ok(Options { procedures, ..self })
    }
}
