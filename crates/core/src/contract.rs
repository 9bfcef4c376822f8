//! The contract between protocols and drivers.
//!
//! A protocol is two state machines: a [`Coordinator`] that runs transactions for clients, and a
//! [`Participant`] per repository. Both are functions of their inputs: operations, messages,
//! timers. What they want done they append to the [`Context`](crate::effects::Context)'s effects.
//!
//! A coordinator reaches the participants of its own node directly, through [`Here`]: where a
//! transaction's whole footprint is there, its phases collapse into calls, and no message is made.
//! The book's page on the contract shows how each family of protocols is expressed in it.

use std::collections::VecDeque;
use std::fmt::Debug;
use std::sync::Arc;

use crate::actions::{Action, ActionFn};
use crate::bytes::SmallBytes;
use crate::catalog::Catalog;
use crate::checkpoint::{Cursor, Readiness};
use crate::delay::Delay;
use crate::effects::{Address, Context, Row};
use crate::ids::{NodeId, OpId, RepositoryId, SpaceId, Timestamp, Txn, TxnId};
use crate::judgement::{Rejection, Rejections, Sender, View};
use crate::lag::Lag;
use crate::options::{Nanos, Settings, TxnOptions};
use crate::outcome::{Committed, Doubt, Failure, Outcome};
use crate::post::Post;
use crate::procedure::{Call, Invoked, Procedure, ProcedureFn, ProcedureId};
use crate::recorder::Recorder;
use crate::wire::{Wire, WireError};

/// What a protocol promises of the histories that it lets happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// All committed transactions have a serial order that keeps the order within sessions.
    Serializable,
    /// The same, and the order keeps real time.
    StrictSerializable,
    /// Updates are serializable, and every reader sees a consistent snapshot of them.
    ExtendedUpdateSerializable,
    /// No dirty and no unrepeatable reads.
    RepeatableRead,
}

/// A transaction protocol: its messages, its records, and its two roles.
pub trait Protocol: Sized + Clone + Debug + 'static {
    /// As `--protocol` names it.
    const NAME: &'static str;
    /// What it promises.
    const ISOLATION: Isolation;
    /// What its roles say to each other.
    type Message: Wire + Clone + Debug + Send + 'static;
    /// What must survive a crash.
    type Record: Wire + Clone + Debug + Send + 'static;
    /// Switches of the protocol; the default is the protocol as it should be.
    type Rules: Clone + Debug + Default + Send + Sync + 'static;
    /// Runs transactions for clients.
    type Coordinator: Coordinator<Self>;
    /// Holds a part of the keys.
    type Participant: Participant<Self>;
    /// How long a step of the counters of timestamps is, where these follow the clocks of the
    /// repositories; `None`: they count something else. Where there is one, a client can know that
    /// the repositories will have come to a later timestamp soon, and keep it as a lease.
    const TIMESTAMP_STEP: Option<Nanos> = None;
    /// Whether replaced versions are kept for open transactions, which have leases on them.
    const KEEPS_OLD_VERSIONS: bool = true;
    /// The size of a message on the wire, in bytes, for bandwidth and cost models.
    fn wire_bytes(message: &Self::Message) -> usize;
    /// The size of a record on disk, in bytes.
    fn record_bytes(record: &Self::Record) -> usize;
    /// The short name of a message's kind, for traces.
    fn message_name(message: &Self::Message) -> &'static str;
    /// Whether everything that a message names is there: repositories, spaces, partitions. Drivers
    /// ask it of messages that came from another process, at the door; inside, names are trusted.
    fn is_about(message: &Self::Message, catalog: &Catalog) -> bool;
    /// Whether this sender may say this at all: who it is, and whether the numbers are ones that
    /// can be. Drivers do not ask it themselves: [`Node::receive`](crate::node::Node::receive)
    /// does, of every message from another process, before the role's own judgement.
    ///
    /// # Errors
    /// The message is to be left out, for this reason.
    fn judge(
        message: &Self::Message,
        from: Address,
        sender: Sender,
        view: View<'_>,
    ) -> Result<(), Rejection>;
    /// What a client on `node` would say instead, of a transaction of its own that writes nothing;
    /// `None`: clients say nothing of the kind. Simulators and fuzz targets have strangers say it.
    fn as_client(message: &Self::Message, node: NodeId) -> Option<Self::Message> {
        let _ = (message, node);
        None
    }
    /// Whether the order keeps real time for transactions that ask for it
    /// ([`TxnOptions::strict`]). Where it does not, they are what [`ISOLATION`](Self::ISOLATION)
    /// says.
    fn offers_strict(rules: &Self::Rules) -> bool;
    /// Whether it has masters, which the [catalog](Catalog::masters) may put on nodes of their own.
    fn has_masters(rules: &Self::Rules) -> bool {
        let _ = rules;
        false
    }
    /// Whether a message to a repository is for every node that keeps a copy of it, and not only
    /// for the one that answers. It must be one that nothing has to be said or logged about.
    fn is_for_all(message: &Self::Message) -> bool {
        let _ = message;
        false
    }
    /// Whether a message to a repository may be answered by any node that keeps a copy of it,
    /// though that be a little behind (see [`Participant::answer_behind`]).
    fn is_for_any(message: &Self::Message) -> bool {
        let _ = message;
        false
    }
}

/// The answer to an operation, or the name under which the answer will come as an
/// [`Effect::Complete`](crate::effects::Effect::Complete).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step<T> {
    /// Answered at once.
    Done(Result<T, Failure>),
    /// The answer comes later.
    Wait(OpId),
}

/// A range scan: the keys of `[lo, hi)` in ascending order (or descending), at most `limit`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scan {
    /// The space.
    pub space: SpaceId,
    /// First key of the range.
    pub lo: SmallBytes,
    /// First key after the range; `None` is open.
    pub hi: Option<SmallBytes>,
    /// From the end of the range backwards.
    pub reverse: bool,
    /// Most rows wanted.
    pub limit: usize,
}

/// What becomes of a delayed action.
#[derive(Clone, Copy, Debug)]
pub enum Later {
    /// It is done when the transaction commits. Where its answer was asked for, it is the one of
    /// this number, from 0.
    Deferred(u32),
    /// The caller is to read the key, run this, and write what it gives.
    Now(ActionFn),
    /// The caller is to run this procedure, on what the transaction reads and writes.
    Run(ProcedureFn),
}

/// The participants that live on the coordinator's own node.
pub struct Here<'a, P: Protocol> {
    participants: &'a mut [(RepositoryId, P::Participant)],
}

impl<'a, P: Protocol> Here<'a, P> {
    /// A view of a node's participants.
    #[inline]
    pub fn new(participants: &'a mut [(RepositoryId, P::Participant)]) -> Here<'a, P> {
        Here { participants }
    }

    /// The participant of `repository`, if it lives here.
    #[inline]
    pub fn repository(&mut self, repository: RepositoryId) -> Option<&mut P::Participant> {
        self.participants.iter_mut().find(|(id, _)| *id == repository).map(|(_, found)| found)
    }

    /// A repository here that holds `key`, the first in the order of its replicas.
    #[inline]
    pub fn replica(
        &mut self,
        catalog: &Catalog,
        space: SpaceId,
        key: &SmallBytes,
    ) -> Option<(RepositoryId, &mut P::Participant)> {
        if catalog.repositories() == 1 {
            return self.participants.first_mut().map(|(id, participant)| (*id, participant));
        }
        let partition = catalog.partition(space, key);
        let replica = catalog.replicas_of(partition).find(|&replica| self.holds(replica))?;
        self.repository(replica).map(|participant| (replica, participant))
    }

    /// Whether `repository` lives here.
    #[inline]
    pub fn holds(&self, repository: RepositoryId) -> bool {
        self.participants.iter().any(|(id, _)| *id == repository)
    }

    /// All participants here, to be changed.
    pub fn all_mut(&mut self) -> impl Iterator<Item = (RepositoryId, &mut P::Participant)> {
        self.participants.iter_mut().map(|(id, participant)| (*id, participant))
    }

    /// The same view, for a while.
    #[inline]
    pub fn reborrow(&mut self) -> Here<'_, P> {
        Here { participants: self.participants }
    }

    /// All participants here.
    pub fn all(&self) -> impl Iterator<Item = &P::Participant> {
        self.participants.iter().map(|(_, participant)| participant)
    }
}

/// The state machine that runs transactions on behalf of clients.
///
/// Operations of one transaction may overlap (several gets in flight); commit and rollback come
/// last. An operation on a transaction that has ended answers [`Failure::Ended`].
pub trait Coordinator<P: Protocol>: Clone + Debug {
    /// A coordinator at `node`, in its life number `incarnation`.
    fn new(node: NodeId, incarnation: u32, rules: &P::Rules) -> Self;
    /// Begins a transaction. Nothing is sent.
    fn begin(
        &mut self,
        options: TxnOptions,
        here: Here<'_, P>,
        cx: &mut Context<'_, P>,
    ) -> Result<Txn, Failure>;
    /// Reads a key.
    fn get(
        &mut self,
        txn: Txn,
        space: SpaceId,
        key: &SmallBytes,
        here: Here<'_, P>,
        cx: &mut Context<'_, P>,
    ) -> Step<Option<SmallBytes>>;
    /// Reads keys if that can be done at once and simply, straight into `out`, which is as long;
    /// false leaves everything to [`get`](Self::get) or [`get_many`](Self::get_many). A protocol
    /// need not offer it: it saves the hot path the copies of an answer that is handed from call
    /// to call.
    #[inline]
    fn peek(
        &mut self,
        txn: Txn,
        space: SpaceId,
        keys: &[SmallBytes],
        here: Here<'_, P>,
        cx: &mut Context<'_, P>,
        out: &mut [Option<SmallBytes>],
    ) -> bool {
        let _ = (txn, space, keys, here, cx, out);
        false
    }
    /// Reads several keys, in parallel where they live elsewhere.
    fn get_many(
        &mut self,
        txn: Txn,
        space: SpaceId,
        keys: Vec<SmallBytes>,
        here: Here<'_, P>,
        cx: &mut Context<'_, P>,
    ) -> Step<Vec<Option<SmallBytes>>>;
    /// Buffers a write; `None` deletes.
    fn put(
        &mut self,
        txn: Txn,
        space: SpaceId,
        key: SmallBytes,
        value: Option<SmallBytes>,
        cx: &mut Context<'_, P>,
    ) -> Result<(), Failure>;
    /// What the client waits for before the write that it just [put](Self::put) counts as made;
    /// `None`: nothing. A protocol that locks keys as they are written has something.
    #[inline]
    fn lock_written(&mut self, txn: Txn, cx: &mut Context<'_, P>) -> Option<OpId> {
        let _ = (txn, cx);
        None
    }
    /// Something that need not be done before the commit; whether what it gives is to be told with
    /// the commit's outcome. A protocol that has no better way gives it back, to be done at once.
    fn later(
        &mut self,
        txn: Txn,
        delay: &Delay,
        answered: bool,
        cx: &mut Context<'_, P>,
    ) -> Result<Later, Failure> {
        let _ = (txn, answered);
        at_once(delay, cx.settings)
    }
    /// Runs a one-round transaction: begun and ended in one. A protocol that has none says so.
    fn invoke(
        &mut self,
        options: TxnOptions,
        call: Call,
        here: Here<'_, P>,
        cx: &mut Context<'_, P>,
    ) -> Step<Invoked> {
        let _ = (options, call, here, cx);
        Step::Done(Err(Failure::Procedure(format!(
            "protocol `{}` runs no procedures; \
             allowed are `granola`, `granola-locking`, `sinfonia`",
            P::NAME
        ))))
    }
    /// Reads a range.
    fn scan(
        &mut self,
        txn: Txn,
        scan: Scan,
        here: Here<'_, P>,
        cx: &mut Context<'_, P>,
    ) -> Step<Vec<Row>>;
    /// Ends the transaction: all of its writes take effect, or none.
    fn commit(&mut self, txn: Txn, here: Here<'_, P>, cx: &mut Context<'_, P>) -> Step<Committed>;
    /// Ends the transaction without effect. Harmless where it has ended or its commit is under
    /// way, which then goes on without anybody waiting.
    fn rollback(&mut self, txn: Txn, here: Here<'_, P>, cx: &mut Context<'_, P>);
    /// Whether a message agrees with what is known here.
    ///
    /// # Errors
    /// It does not, and is to be left out.
    fn judge(
        &self,
        from: Address,
        sender: Sender,
        message: &P::Message,
        view: View<'_>,
    ) -> Result<(), Rejection> {
        let _ = (from, sender, message, view);
        Ok(())
    }
    /// The largest timestamp that members are known here to have issued.
    fn issued(&self) -> Timestamp {
        Timestamp::ZERO
    }
    /// Ends the transaction without effect; operations that wait, and later ones, are told `why`.
    /// Harmless where it has ended or its commit is under way.
    fn abort(&mut self, txn: Txn, why: &Failure, here: Here<'_, P>, cx: &mut Context<'_, P>);
    /// The transactions that take operations: begun, and neither committing nor over.
    fn open_transactions(&self) -> Vec<Txn>;
    /// A message for this coordinator.
    fn receive(
        &mut self,
        from: Address,
        message: P::Message,
        here: Here<'_, P>,
        cx: &mut Context<'_, P>,
    );
    /// A timer that this coordinator set.
    fn timer(&mut self, timer: u32, here: Here<'_, P>, cx: &mut Context<'_, P>);
    /// Writes the transactions that have not ended into the history, when the node stops.
    fn record_running(&self, recorder: &mut Recorder);
    /// How many transactions have not ended: running, or committed and not yet known to be so
    /// everywhere.
    fn unfinished(&self) -> usize;
    /// Who is known to hold old versions back, and since when, as far as that is known.
    fn oldest_snapshot(&self) -> Option<(NodeId, Option<Nanos>)> {
        None
    }
    /// A link to another node is there from now on: whatever was sent to it before may be lost.
    fn linked(&mut self, node: NodeId, cx: &mut Context<'_, P>) {
        let _ = (node, cx);
    }
    /// The link to another node is gone.
    fn unlinked(&mut self, node: NodeId) {
        let _ = node;
    }
    /// The node ends in an orderly way, and nothing is open: says to repositories elsewhere what
    /// they need not keep for it any more.
    fn leave(&mut self, cx: &mut Context<'_, P>) {
        let _ = cx;
    }
    /// The placement has changed, as this coordinator was told: once, the catalog to go by.
    fn newer_catalog(&mut self) -> Option<Arc<Catalog>> {
        None
    }
    /// What sessions of this coordinator may have seen, for another one to [adopt](Self::adopt).
    /// `None`: the timestamp that a session carries says as much.
    fn past(&self) -> Option<SmallBytes> {
        None
    }
    /// A session that comes here has seen this elsewhere: what begins here from now on sees at
    /// least as much. Bytes that are no past are of no concern.
    fn adopt(&mut self, past: &SmallBytes) {
        let _ = past;
    }
    /// What has become of a transaction whose client was told [`Failure::Unknown`]. A protocol
    /// that never says so need not offer it.
    fn outcome(&self, txn: TxnId) -> Outcome {
        let _ = txn;
        Outcome::NotKnown(Doubt::Forgotten)
    }
}

/// How something is done at once that might have been delayed.
///
/// # Errors
/// There is no action or procedure of that name.
pub fn at_once(delay: &Delay, settings: &Settings) -> Result<Later, Failure> {
    match delay {
        Delay::Action(_, _, action) => known_action(action, settings).map(Later::Now),
        Delay::Call(id, ..) => known_procedure(id, settings).map(|it| Later::Run(it.run)),
    }
}

/// The procedure of that name and version.
///
/// # Errors
/// There is none.
pub fn known_procedure<'a>(
    id: &ProcedureId,
    settings: &'a Settings,
) -> Result<&'a Procedure, Failure> {
    settings.procedures.get(id).ok_or_else(|| {
        let known: Vec<_> = settings.procedures.ids().map(ToString::to_string).collect();
        Failure::Procedure(format!("there is no procedure {id}; there are: {}", known.join(", ")))
    })
}

/// The function of an action.
///
/// # Errors
/// There is none of that name.
pub fn known_action(action: &Action, settings: &Settings) -> Result<ActionFn, Failure> {
    settings.actions.get(&action.name).ok_or_else(|| {
        let text = |name: &SmallBytes| String::from_utf8_lossy(name.as_slice()).into_owned();
        let known: Vec<_> = settings.actions.names().map(text).collect();
        let name = text(&action.name);
        Failure::Space(format!("there is no action `{name}`; there are: {}", known.join(", ")))
    })
}

/// The state machine of a repository.
pub trait Participant<P: Protocol>: Debug {
    /// An empty repository.
    fn new(id: RepositoryId, settings: &Settings, rules: &P::Rules) -> Self;
    /// Called once, before anything else, and again after the last [`replay`](Self::replay): sets
    /// the timers that the role lives by.
    fn start(&mut self, cx: &mut Context<'_, P>);
    /// Repositories have moved; this one has come, is gone, or stays, as the catalog says.
    fn placed(&mut self, cx: &mut Context<'_, P>) {
        let _ = cx;
    }
    /// Whether a message agrees with what is known here, as its sender's word.
    ///
    /// # Errors
    /// It does not, and is to be left out.
    fn judge(
        &self,
        from: Address,
        sender: Sender,
        message: &P::Message,
        view: View<'_>,
    ) -> Result<(), Rejection> {
        let _ = (from, sender, message, view);
        Ok(())
    }
    /// The largest timestamp that was issued here, or that members have told of.
    fn issued(&self) -> Timestamp {
        Timestamp::ZERO
    }
    /// A message for this repository.
    fn receive(&mut self, from: Address, message: P::Message, cx: &mut Context<'_, P>);
    /// A timer that this participant set.
    fn timer(&mut self, timer: u32, cx: &mut Context<'_, P>);
    /// Whether a record can come next, as somebody else says who wrote the log so far: as this role
    /// and the record alone say, so that all who replay one log judge alike. Whatever this role
    /// may log is taken; what is taken can be [replayed](Self::replay). A role's own log is not
    /// judged: a contradiction in it is a fault, and loud.
    ///
    /// # Errors
    /// It contradicts what came before it, and is to be left out.
    fn judge_record(&self, record: &P::Record, catalog: &Catalog) -> Result<(), Rejection>;
    /// Records of others that were left out, if any are judged here.
    fn rejections(&self) -> Option<&Rejections> {
        None
    }
    /// Applies a record of an earlier life, in log order. Nothing is sent.
    fn replay(&mut self, record: P::Record, cx: &mut Context<'_, P>);
    /// Begins a [checkpoint](crate::checkpoint) of the state after everything logged so far:
    /// takes what must be of this very moment. `None`: the protocol has no checkpoints, and a node
    /// keeps its whole log.
    fn begin_checkpoint(&self) -> Option<Cursor> {
        None
    }
    /// Appends the next piece to `out`, of about `bytes` bytes, or longer by one version of a key
    /// or one transaction; false, and nothing is appended: there was no more. The repository may
    /// have changed since the last call.
    fn checkpoint_piece(&self, cursor: &mut Cursor, bytes: usize, out: &mut Vec<u8>) -> bool {
        let _ = (cursor, bytes, out);
        false
    }
    /// Whether a checkpoint whose last piece was taken may be published.
    fn checkpoint_readiness(&self, cursor: &Cursor) -> Readiness {
        let _ = cursor;
        Readiness::Ready
    }
    /// Takes a piece of a checkpoint into an empty repository, or after the pieces before it. All
    /// records after the checkpoint's position are [replayed](Self::replay) next; effects that the
    /// pieces have already are left as they are.
    ///
    /// # Errors
    /// The piece is of no checkpoint. Any bytes may be given; a repository that refused some is of
    /// no more use.
    fn restore(&mut self, piece: &[u8], cx: &mut Context<'_, P>) -> Result<(), WireError> {
        let _ = (piece, cx);
        Err(WireError::Variant { what: "piece: the protocol has none", at: 0, found: 0 })
    }
    /// Marks this moment, as one to which [`go_back`](Self::go_back) may be asked to return: gives
    /// all of the state but the keys, and notes from now on what becomes of these. `None`: nothing
    /// is marked, now or in this protocol.
    fn mark(&mut self) -> Option<VecDeque<Vec<u8>>> {
        None
    }
    /// Nobody returns to the oldest mark any more.
    fn forget_mark(&mut self) {}
    /// Makes this empty repository what `other` was at its oldest mark, of which `marked` was
    /// given. What is logged since is [replayed](Self::replay) next, as far as it stands. False:
    /// that cannot be done, and neither of the two is of any more use.
    fn go_back(
        &mut self,
        other: &mut Self,
        marked: VecDeque<Vec<u8>>,
        cx: &mut Context<'_, P>,
    ) -> bool {
        let _ = (other, marked, cx);
        false
    }
    /// Answers a message of a reader from what was [replayed](Self::replay): a beginning of a log
    /// that somebody else goes on writing. Says everything in this call, and logs nothing. False,
    /// and nothing is done: what was replayed is not enough, and whoever writes must be asked.
    fn answer_behind(&mut self, message: &P::Message, cx: &mut Context<'_, P>) -> bool {
        let _ = (message, cx);
        false
    }
    /// This state machine is dropped, and another one takes its place in the same process: takes
    /// back what it has reported of the process's memory.
    fn end(&mut self, settings: &Settings) {
        let _ = settings;
    }
    /// How many transactions are prepared and undecided here.
    fn in_doubt(&self) -> usize;
    /// By how much it is behind where several nodes keep it, as far as it knows; `None`: it knows
    /// nothing of that.
    fn lag(&self) -> Option<Lag> {
        None
    }
    /// Which part it takes where several nodes keep it.
    fn post(&self) -> Post {
        Post::Alone
    }
    /// The versions of every key that lives here, oldest first, as (space, key, versions), for
    /// histories.
    fn chains(&self, catalog: &Catalog) -> Vec<(SpaceId, SmallBytes, Vec<Timestamp>)>;
}
