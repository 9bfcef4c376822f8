//! The coordinator's reads: directly where a replica lives on the same node, else by requests.
//!
//! An operation is what the client waits for; it has one request per repository that is asked.
//! The first read of a transaction fixes its snapshot, so while one is under way elsewhere all
//! other requests of the transaction are held.

use std::collections::BTreeMap;

use muesli_core::parts::locks::KeyRange;
use muesli_core::parts::transaction::{ReadEntry, check_size};
use muesli_core::parts::versions::Handle;
use muesli_core::recorder::{Operation as Noted, value_hash};
use muesli_core::{
    Abort, Failure, Here, Index, Nanos, OpId, OpResult, RepositoryId, Role, Row, Scan, SmallBytes,
    SpaceId, Step, Timestamp, Txn,
};

use super::Score;
use super::coordinator::{Context, Coordinator, Slot};
use super::message::{Found, Message, ReadReply, ReadRequest, ScanReply, ScanRequest};
use super::reads::NotServed;

/// Something the client waits for.
#[derive(Clone, Debug)]
pub(super) struct Operation {
    pub txn: Txn,
    /// Requests not yet answered.
    missing: usize,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    Get(Option<SmallBytes>),
    Many(Vec<Option<SmallBytes>>),
    Scan(Gathered),
}

/// The rows of a scan as they come in from the repositories.
#[derive(Clone, Debug)]
struct Gathered {
    scan: Scan,
    rows: BTreeMap<SmallBytes, Found>,
    /// The nearest place at which some repository stopped: what lies beyond was not seen.
    edge: Option<SmallBytes>,
}

/// A key asked for, with its place among those of its operation.
type AskedKey = (usize, SpaceId, SmallBytes);

/// Something asked of one repository.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub op: OpId,
    to: RepositoryId,
    asked: Asked,
    /// Held until the snapshot is known.
    held: bool,
    sent: Nanos,
    since: Nanos,
}

#[derive(Clone, Debug)]
enum Asked {
    /// Keys, each with its place among those of the operation.
    Keys(Vec<AskedKey>),
    /// Partitions of the operation's scan, and most rows wanted.
    Partitions(Vec<u16>, usize),
}

impl Slot {
    /// Takes a version into the read set; an update that reads a stale one cannot commit.
    #[inline]
    fn note(
        &mut self,
        space: SpaceId,
        repository: RepositoryId,
        handle: Handle,
        key: SmallBytes,
        version: Timestamp,
        newest: bool,
    ) -> Result<(), Abort> {
        if !newest && !self.sets.writes.is_empty() {
            return Err(Abort::StaleRead);
        }
        if !self.options.read_only || self.options.strict {
            self.sets.reads.push(ReadEntry { space, repository, handle, key, version });
        }
        Ok(())
    }

    fn may_read_now(&self) -> bool {
        self.snapshot.is_some() || !self.fixing
    }
}

/// How a key was read on the coordinator's own node.
enum Local {
    Value(Option<SmallBytes>),
    /// It lives elsewhere, or must wait: ask by a request.
    Ask,
    Failed(Abort),
}

impl Coordinator {
    #[inline(always)]
    pub(super) fn on_get(
        &mut self,
        txn: Txn,
        space: SpaceId,
        key: &SmallBytes,
        mut here: Here<'_, Score>,
        cx: &mut Context<'_>,
    ) -> Step<Option<SmallBytes>> {
        match self.read_locally(txn, space, key, &mut here, cx) {
            Ok(Local::Value(value)) => Step::Done(Ok(value)),
            Ok(Local::Failed(reason)) => {
                self.abort(txn, &Failure::Aborted(reason), cx);
                Step::Done(Err(Failure::Aborted(reason)))
            }
            Ok(Local::Ask) => {
                let keys = vec![(0, space, key.clone())];
                Step::Wait(self.ask_keys(txn, Kind::Get(None), keys, &here, cx))
            }
            Err(failure) => Step::Done(Err(failure)),
        }
    }

    /// Reads a replica on this node, where nothing is in the way and no history is recorded.
    #[inline]
    pub(super) fn on_peek(
        &mut self,
        txn: Txn,
        space: SpaceId,
        keys: &[SmallBytes],
        mut here: Here<'_, Score>,
        cx: &mut Context<'_>,
        out: &mut [Option<SmallBytes>],
    ) -> bool {
        let Ok(slot) = self.open(txn) else { return false };
        let plain = slot.sets.writes.is_empty() && cx.effects.recorder.is_none();
        let one_repository = cx.catalog.repositories() == 1 || keys.len() == 1;
        if !plain || !one_repository || !slot.may_read_now() {
            return false;
        }
        let Some(key) = keys.first() else { return true };
        let Some((replica, participant)) = here.replica(cx.catalog, space, key) else {
            return false;
        };
        let (snapshot, first) = (slot.snapshot.unwrap_or(slot.base), slot.snapshot.is_none());
        let mut at = cx.at(Role::Repository(replica));
        let noting = !slot.options.read_only || slot.options.strict;
        let reads = &mut slot.sets.reads;
        let before = reads.len();
        let read =
            participant.read_all_here(space, keys, snapshot, first, &mut at, |place, read| {
                out[place] = read.version.value.cloned();
                if noting {
                    let (handle, version) = (read.handle, read.version.at);
                    let key = keys[place].clone();
                    reads.push(ReadEntry { space, repository: replica, handle, key, version });
                }
            });
        let Ok(snapshot) = read else {
            slot.sets.reads.truncate(before);
            return false;
        };
        slot.snapshot = Some(snapshot);
        if cx.settings.logging {
            slot.gate = cx.effects.gate;
        }
        true
    }

    /// Reads the transaction's own write, or a replica on this node.
    #[inline(always)]
    fn read_locally(
        &mut self,
        txn: Txn,
        space: SpaceId,
        key: &SmallBytes,
        here: &mut Here<'_, Score>,
        cx: &mut Context<'_>,
    ) -> Result<Local, Failure> {
        check_size("a key", key.len(), cx.settings.limits.key_bytes)?;
        let slot = self.open(txn)?;
        if let Some(own) = slot.sets.own(space, key) {
            let own = own.clone();
            if cx.effects.recorder.is_some() {
                slot.sets.note_read_own(space, key, own.as_ref());
            }
            return Ok(Local::Value(own));
        }
        if !slot.may_read_now() {
            return Ok(Local::Ask);
        }
        let Some((replica, participant)) = here.replica(cx.catalog, space, key) else {
            return Ok(Local::Ask);
        };
        let (snapshot, first) = (slot.snapshot.unwrap_or(slot.base), slot.snapshot.is_none());
        let mut at = cx.at(Role::Repository(replica));
        match participant.read_here(space, key, snapshot, first, &mut at) {
            Ok(read) => {
                slot.snapshot = Some(read.snapshot);
                let (version, value) = (read.version, read.version.value.cloned());
                if cx.settings.logging {
                    slot.gate = cx.effects.gate;
                }
                if cx.effects.recorder.is_some() {
                    slot.sets.note_read(space, key, version.at, value.as_ref());
                }
                let key = key.clone();
                let noted = slot.note(space, replica, read.handle, key, version.at, version.newest);
                Ok(noted.map_or_else(Local::Failed, |()| Local::Value(value)))
            }
            Err(NotServed::Blocked | NotServed::TooLarge) => Ok(Local::Ask),
            Err(NotServed::TooOld) => Ok(Local::Failed(Abort::SnapshotTooOld)),
        }
    }

    pub(super) fn on_get_many(
        &mut self,
        txn: Txn,
        space: SpaceId,
        keys: Vec<SmallBytes>,
        mut here: Here<'_, Score>,
        cx: &mut Context<'_>,
    ) -> Step<Vec<Option<SmallBytes>>> {
        let mut values = vec![None; keys.len()];
        let mut asked = Vec::new();
        if let Err(failure) = self.open(txn) {
            return Step::Done(Err(failure));
        }
        for (place, key) in keys.into_iter().enumerate() {
            match self.read_locally(txn, space, &key, &mut here, cx) {
                Ok(Local::Value(value)) => values[place] = value,
                Ok(Local::Ask) => asked.push((place, space, key)),
                Ok(Local::Failed(reason)) => {
                    self.abort(txn, &Failure::Aborted(reason), cx);
                    return Step::Done(Err(Failure::Aborted(reason)));
                }
                Err(failure) => return Step::Done(Err(failure)),
            }
        }
        if asked.is_empty() {
            return Step::Done(Ok(values));
        }
        Step::Wait(self.ask_keys(txn, Kind::Many(values), asked, &here, cx))
    }

    /// Asks for keys: one request per repository. The first key of a transaction without a
    /// snapshot goes alone, so that the others follow as soon as the snapshot is known.
    fn ask_keys(
        &mut self,
        txn: Txn,
        kind: Kind,
        keys: Vec<AskedKey>,
        here: &Here<'_, Score>,
        cx: &mut Context<'_>,
    ) -> OpId {
        let alone = self.slot(txn).is_some_and(|slot| slot.snapshot.is_none());
        let mut groups: Vec<(RepositoryId, Vec<AskedKey>)> = Vec::new();
        for (count, key) in keys.into_iter().enumerate() {
            let to = self.choose(cx.catalog.partition(key.1, &key.2), here, cx);
            let group = groups.iter_mut().skip(usize::from(alone)).find(|(known, _)| *known == to);
            match group {
                Some((_, group)) if count > 0 => group.push(key),
                _ => groups.push((to, vec![key])),
            }
        }
        let groups = groups.into_iter().map(|(to, keys)| (to, Asked::Keys(keys))).collect();
        self.ask(txn, kind, groups, cx)
    }

    fn ask(
        &mut self,
        txn: Txn,
        kind: Kind,
        groups: Vec<(RepositoryId, Asked)>,
        cx: &mut Context<'_>,
    ) -> OpId {
        let op = self.next_op();
        self.operations.insert(op, Operation { txn, missing: groups.len(), kind });
        let now = cx.now();
        for (to, asked) in groups {
            self.next_request += 1;
            let id = self.next_request;
            let request = Request { op, to, asked, held: true, sent: now, since: now };
            self.requests.insert(id, request);
            let slot = self.slot(txn).expect("an open transaction");
            if slot.may_read_now() {
                slot.fixing = slot.snapshot.is_none();
                self.send_request(id, cx);
            } else {
                slot.held.push(id);
            }
        }
        self.set_sweep_timer(cx);
        op
    }

    /// The replica of a partition to ask: one on this node, else in turn.
    fn choose(&self, partition: u16, here: &Here<'_, Score>, cx: &Context<'_>) -> RepositoryId {
        let nth = (self.next_request % u64::from(cx.catalog.replicas)) as usize;
        let local = cx.catalog.replicas_of(partition).find(|&replica| here.holds(replica));
        let chosen = local.or_else(|| cx.catalog.replicas_of(partition).nth(nth));
        chosen.expect("every partition has its replicas")
    }

    fn send_request(&mut self, id: u64, cx: &mut Context<'_>) {
        let Some(request) = self.requests.get_mut(&id) else { return };
        request.held = false;
        request.sent = cx.now();
        let (to, operation) = (request.to, &self.operations[&request.op]);
        let txn = operation.txn;
        let asked = match (&request.asked, &operation.kind) {
            (Asked::Keys(keys), _) => {
                let keys = keys.iter().map(|(_, space, key)| (*space, key.clone())).collect();
                let (snapshot, first) = (Timestamp::ZERO, false);
                Message::Read(ReadRequest { request: id, snapshot, first, keys })
            }
            (Asked::Partitions(partitions, limit), Kind::Scan(gathered)) => {
                let Scan { space, lo, hi, reverse, .. } = gathered.scan.clone();
                Message::Scan(ScanRequest {
                    request: id,
                    snapshot: Timestamp::ZERO,
                    first: false,
                    range: KeyRange { space, lo, hi },
                    partitions: partitions.clone(),
                    reverse,
                    limit: *limit,
                })
            }
            (Asked::Partitions(..), Kind::Get(_) | Kind::Many(_)) => {
                unreachable!("partitions are asked by scans only")
            }
        };
        let Some(slot) = self.slot(txn) else { return };
        let message = at_snapshot(asked, slot);
        cx.send_to_repository(to, message);
    }

    /// A request was answered at `snapshot`: the transaction reads there from now on.
    fn fix_snapshot(&mut self, txn: Txn, snapshot: Timestamp, cx: &mut Context<'_>) {
        self.heard = self.heard.max(snapshot);
        let Some(slot) = self.slot(txn) else { return };
        if slot.snapshot.is_some() {
            return;
        }
        slot.snapshot = Some(snapshot);
        slot.fixing = false;
        for id in std::mem::take(&mut slot.held) {
            self.send_request(id, cx);
        }
    }

    pub(super) fn on_read_reply(
        &mut self,
        reply: ReadReply,
        _here: Here<'_, Score>,
        cx: &mut Context<'_>,
    ) {
        let Some(request) = self.requests.remove(&reply.request) else { return };
        let Some(operation) = self.operations.get(&request.op) else { return };
        let txn = operation.txn;
        self.heard = self.heard.max(reply.committed);
        let Some(snapshot) = reply.snapshot else {
            self.abort(txn, &Failure::Aborted(Abort::SnapshotTooOld), cx);
            return;
        };
        self.fix_snapshot(txn, snapshot, cx);
        let Asked::Keys(keys) = request.asked else { return };
        for ((place, space, key), found) in keys.into_iter().zip(reply.found) {
            let recording = cx.effects.recorder.is_some();
            let Some(slot) = self.slot(txn) else { return };
            if recording {
                slot.sets.note_read(space, &key, found.version, found.value.as_ref());
            }
            let noted =
                slot.note(space, request.to, Handle::NONE, key, found.version, found.newest);
            if let Err(reason) = noted {
                self.abort(txn, &Failure::Aborted(reason), cx);
                return;
            }
            match self.operations.get_mut(&request.op).map(|operation| &mut operation.kind) {
                Some(Kind::Get(value)) => *value = found.value,
                Some(Kind::Many(values)) => values[place] = found.value,
                Some(Kind::Scan(_)) | None => unreachable!("keys are asked by gets only"),
            }
        }
        self.count_answer(request.op, cx);
    }

    fn count_answer(&mut self, op: OpId, cx: &mut Context<'_>) {
        let Some(operation) = self.operations.get_mut(&op) else { return };
        operation.missing -= 1;
        if operation.missing > 0 {
            return;
        }
        let operation = self.operations.remove(&op).expect("found above");
        let result = match operation.kind {
            Kind::Get(value) => OpResult::Value(value),
            Kind::Many(values) => OpResult::Values(values),
            Kind::Scan(gathered) => OpResult::Rows(self.finish_scan(operation.txn, gathered, cx)),
        };
        cx.complete(op, result);
    }

    pub(super) fn on_client_scan(
        &mut self,
        txn: Txn,
        scan: Scan,
        here: Here<'_, Score>,
        cx: &mut Context<'_>,
    ) -> Step<Vec<Row>> {
        if let Err(failure) = self.check_scan(txn, &scan, cx) {
            return Step::Done(Err(failure));
        }
        let range = KeyRange { space: scan.space, lo: scan.lo.clone(), hi: scan.hi.clone() };
        let empty = scan.limit == 0 || scan.hi.as_ref().is_some_and(|hi| *hi <= scan.lo);
        if empty {
            return Step::Done(Ok(Vec::new()));
        }
        let deletes = self.open(txn).map_or(0, |slot| slot.sets.deletes_in(&range));
        let limit = scan.limit.saturating_add(deletes);
        let mut groups: BTreeMap<RepositoryId, Vec<u16>> = BTreeMap::new();
        for partition in cx.catalog.partitions_of_range(scan.space, &scan.lo, scan.hi.as_ref()) {
            groups.entry(self.choose(partition, &here, cx)).or_default().push(partition);
        }
        let groups =
            groups.into_iter().map(|(to, some)| (to, Asked::Partitions(some, limit))).collect();
        let gathered = Gathered { scan, rows: BTreeMap::new(), edge: None };
        Step::Wait(self.ask(txn, Kind::Scan(gathered), groups, cx))
    }

    fn check_scan(&mut self, txn: Txn, scan: &Scan, cx: &Context<'_>) -> Result<(), Failure> {
        self.open(txn)?;
        let limit = cx.settings.limits.key_bytes;
        check_size("a key", scan.lo.len().max(scan.hi.as_ref().map_or(0, SmallBytes::len)), limit)?;
        match cx.catalog.space(scan.space) {
            Some(space) if space.options.index == Index::Hash => Err(Failure::Space(format!(
                "space `{}` has a hash index and cannot be scanned; an ordered index can",
                space.name
            ))),
            Some(_) => Ok(()),
            None => Err(Failure::Space(format!("there is no space {}", scan.space.0))),
        }
    }

    pub(super) fn on_scan_reply(
        &mut self,
        reply: ScanReply,
        _here: Here<'_, Score>,
        cx: &mut Context<'_>,
    ) {
        let Some(request) = self.requests.remove(&reply.request) else { return };
        let Some(operation) = self.operations.get(&request.op) else { return };
        let txn = operation.txn;
        self.heard = self.heard.max(reply.committed);
        let Some(snapshot) = reply.snapshot else {
            self.abort(txn, &Failure::Aborted(Abort::SnapshotTooOld), cx);
            return;
        };
        self.fix_snapshot(txn, snapshot, cx);
        let updates = self.slot(txn).is_some_and(|slot| !slot.sets.writes.is_empty());
        if updates && reply.rows.iter().any(|(_, found)| !found.newest) {
            self.abort(txn, &Failure::Aborted(Abort::StaleRead), cx);
            return;
        }
        let operation = self.operations.get_mut(&request.op).expect("found above");
        let Kind::Scan(gathered) = &mut operation.kind else { return };
        if !reply.complete {
            let last = reply.rows.last().map(|(key, _)| key.clone());
            gathered.limit_to(last);
        }
        gathered.rows.extend(reply.rows);
        self.count_answer(request.op, cx);
    }

    /// All repositories answered: what was seen for sure, with the transaction's own writes.
    fn finish_scan(&mut self, txn: Txn, gathered: Gathered, cx: &mut Context<'_>) -> Vec<Row> {
        let Some(slot) = self.slot(txn) else { return Vec::new() };
        let Gathered { scan, mut rows, edge } = gathered;
        let range = KeyRange { space: scan.space, lo: scan.lo, hi: scan.hi };
        let mut seen = range.clone();
        if let Some(edge) = &edge {
            if scan.reverse {
                seen.lo = edge.clone();
            } else {
                seen.hi = Some(edge.successor());
            }
        }
        rows.retain(|key, _| seen.contains(scan.space, key));
        let live = rows.iter().filter_map(|(key, found)| Some((key.clone(), found.value.clone()?)));
        let live: Vec<Row> = live.collect();
        let complete = edge.is_none();
        let answer = slot.sets.overlay(&range, live, scan.reverse, scan.limit, complete);
        if let Some((last, _)) = answer.last().filter(|_| answer.len() == scan.limit) {
            if scan.reverse {
                seen.lo = last.clone().max(seen.lo);
            } else {
                seen.hi = Some(last.successor());
            }
        }
        if cx.effects.recorder.is_some() {
            let inside = rows.into_iter().filter(|(key, _)| seen.contains(scan.space, key));
            let row = |(key, found): (_, Found)| {
                (key, found.version, found.value.as_ref().map(value_hash))
            };
            let rows = inside.map(row).collect();
            let (space, lo, hi) = (seen.space, seen.lo.clone(), seen.hi.clone());
            slot.sets.operations.push(Noted::Scan { space, lo, hi, rows });
        }
        if !slot.options.read_only || slot.options.strict {
            slot.sets.scans.push(seen);
        }
        answer
    }

    /// Requests that were not answered go out again, to another replica; those that never are
    /// end their transaction.
    pub(super) fn retry_requests(&mut self, cx: &mut Context<'_>) {
        let (now, settings) = (cx.now(), cx.settings);
        let late: Vec<u64> = self
            .requests
            .iter()
            .filter(|(_, request)| !request.held && request.sent + settings.retry_after <= now)
            .map(|(id, _)| *id)
            .collect();
        for id in late {
            let Some(request) = self.requests.get_mut(&id) else { continue };
            let op = request.op;
            if request.since + settings.give_up_after <= now {
                let after_ms = settings.give_up_after.as_millis();
                let Some(operation) = self.operations.get(&op) else { continue };
                self.abort(operation.txn, &Failure::Timeout { after_ms }, cx);
                continue;
            }
            let partition = match &request.asked {
                Asked::Keys(keys) => cx.catalog.partition(keys[0].1, &keys[0].2),
                Asked::Partitions(partitions, _) => partitions[0],
            };
            let alone = match &request.asked {
                Asked::Keys(keys) => keys.len() == 1,
                Asked::Partitions(partitions, _) => partitions.len() == 1,
            };
            if alone {
                let replicas: Vec<_> = cx.catalog.replicas_of(partition).collect();
                let place = replicas.iter().position(|&replica| replica == request.to);
                request.to = replicas[place.map_or(0, |place| place + 1) % replicas.len()];
            }
            self.send_request(id, cx);
        }
    }
}

impl Gathered {
    /// Some repository saw nothing beyond `last`.
    fn limit_to(&mut self, last: Option<SmallBytes>) {
        let Some(last) = last else { return };
        self.edge = Some(match self.edge.take() {
            Some(edge) if self.scan.reverse => edge.max(last),
            Some(edge) => edge.min(last),
            None => last,
        });
    }
}

/// Fills in where a request reads.
fn at_snapshot(mut message: Message, slot: &Slot) -> Message {
    let (at, is_first) = (slot.snapshot.unwrap_or(slot.base), slot.snapshot.is_none());
    if let Message::Read(ReadRequest { snapshot, first, .. })
    | Message::Scan(ScanRequest { snapshot, first, .. }) = &mut message
    {
        (*snapshot, *first) = (at, is_first);
    }
    message
}
