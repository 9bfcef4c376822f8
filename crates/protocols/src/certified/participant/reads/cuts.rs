//! Reads of transactions that may be stale: at the newest cut that is fresh enough.
//!
//! Whoever comes where there is none waits, and has the site propose one; and where half of the
//! time is over for which the newest one serves, there is another one under way before anybody
//! waits for it. A site of which nobody asks proposes none, and keeps nothing.
//!
//! A session goes from site to site, and takes along where what it has read lies in the order of
//! commits (*seen*): that of the cut, or of all commits that its site had applied. A cut as far
//! back has all of that.

use muesli_broadcast::CommandId;
use muesli_broadcast::epochs::RequestId;
use muesli_core::{Address, NodeId, RepositoryId, Timestamp};

use crate::certified::Context;
use crate::certified::message::moment::{CutBound, ReadMoment};
use crate::certified::message::{Message, ReaderNumber, Record};
use crate::certified::participant::CertifiedSite;
use crate::certified::state::cuts::ReaderArrival;
use crate::certified::switches::{CertifiedSwitch, LocalReads};

/// So many reads wait at a site for a cut; further ones are asked for again.
const WAITING_MOST: usize = 4096;

/// A read that waits for a cut.
#[derive(Clone, Debug)]
pub(in crate::certified::participant) struct ReadForCut {
    reader: ReaderNumber,
    bound: CutBound,
    /// When it was heard of first.
    came: ReaderArrival,
    asked: Message,
}

impl CertifiedSite {
    /// Whether a read can be answered at once; else a cut is on its way.
    pub(in crate::certified) fn has_moment(
        &mut self,
        reader: (NodeId, ReaderNumber),
        moment: &ReadMoment,
        cx: &mut Context<'_>,
    ) -> bool {
        let ReadMoment::Cut(bound) = moment else { return true };
        let is_known = self.readers.snapshot(reader.0, reader.1, cx.now()).is_some();
        is_known || self.has_cut(&self.allowed(bound, cx), cx)
    }

    /// What a reader may use, and what is kept of its session.
    fn allowed(&self, bound: &CutBound, cx: &Context<'_>) -> CutBound {
        let most = bound.most.min(cx.settings.snapshot_age_max);
        let follows = self.switches.keeps(CertifiedSwitch::CutsFollowSessions);
        let seen = if follows { bound.seen } else { Timestamp::ZERO };
        CutBound { most, seen, ..*bound }
    }

    /// Whether somebody who comes now can use the newest cut.
    fn has_cut(&mut self, bound: &CutBound, cx: &mut Context<'_>) -> bool {
        let came = self.cuts.arrival(cx.now());
        self.cuts.ask(bound.most);
        if !self.cuts.serves(bound, came) || self.cuts.is_due(bound.most, cx.now()) {
            self.propose_cut(cx);
        }
        self.cuts.serves(bound, came)
    }

    /// A coordinator asks for keys or a page, perhaps once more.
    pub(in crate::certified::participant) fn on_read(
        &mut self,
        from: Address,
        asked: Message,
        cx: &mut Context<'_>,
    ) {
        let Some((request, reader, moment)) = asked.read() else { unreachable!("not a read") };
        if self.waiting_reads.contains_key(&(from, request)) {
            cx.send(from, Message::Waits { request });
            return;
        }
        let came = self.cuts.arrival(cx.now());
        match moment {
            ReadMoment::Cut(bound) if !self.has_moment((from.node, reader), &moment, cx) => {
                let bound = self.allowed(&bound, cx);
                if !bound.waits {
                    cx.send(from, Message::NotFresh { request });
                } else if self.waiting_reads.len() < WAITING_MOST {
                    let waiting = ReadForCut { reader, bound, came, asked };
                    self.waiting_reads.insert((from, request), waiting);
                } else {
                    cx.send(from, Message::Waits { request }); // It is asked for again.
                }
            }
            ReadMoment::Cut(_) | ReadMoment::Present | ReadMoment::Known(_) => {
                self.answer_read(from, asked, cx);
            }
        }
    }

    fn answer_read(&mut self, from: Address, asked: Message, cx: &mut Context<'_>) {
        let reply = match asked {
            Message::Keys(request) => Message::KeysReply(self.read_keys(from.node, request, cx)),
            Message::Page(request) => Message::PageReply(self.read_page(from.node, request, cx)),
            other => unreachable!("not a read: {}", other.name()),
        };
        cx.send(from, reply);
    }

    /// A cut is delivered: of this site, or of another one.
    pub(in crate::certified::participant) fn on_cut(
        &mut self,
        request: RequestId,
        id: CommandId,
        cx: &mut Context<'_>,
    ) {
        self.order_cut(id, cx);
        // What is read at it is read at a place in the order that this member must not forget.
        cx.wait_for_log();
        let (clock, now) = (self.clock, cx.now());
        let from_proposal = self.switches.keeps(CertifiedSwitch::CountsCutsFromProposal);
        self.cuts.deliver(request, clock, |proposed| if from_proposal { proposed } else { now });
        self.answer_waiting(cx);
    }

    /// Its place in the order of commits is known from now on.
    pub(in crate::certified::participant) fn order_cut(
        &mut self,
        id: CommandId,
        cx: &mut Context<'_>,
    ) {
        let counter = self.cuts.order.cut();
        cx.log_lazily(|| Record::Cut { id, counter });
    }

    /// Reads that can be answered are; for the others another cut is proposed, once all is done
    /// that the broadcast wants.
    fn answer_waiting(&mut self, cx: &mut Context<'_>) {
        let cuts = self.cuts;
        let served = |waiting: &ReadForCut| cuts.serves(&waiting.bound, waiting.came);
        let served = self.waiting_reads.extract_if(.., |_, waiting| served(waiting));
        for ((from, _), waiting) in served.collect::<Vec<_>>() {
            self.answer_read(from, waiting.asked, cx);
        }
    }

    /// Who waits gets another cut, unless one is under way.
    pub(in crate::certified::participant) fn propose_for_waiting(&mut self, cx: &mut Context<'_>) {
        if !self.waiting_reads.is_empty() {
            self.propose_cut(cx);
        }
    }

    /// A transaction reads no more.
    pub(in crate::certified::participant) fn stop_waiting(
        &mut self,
        node: NodeId,
        reader: ReaderNumber,
    ) {
        let is_its = |from: &Address, it: &ReadForCut| from.node == node && it.reader == reader;
        self.waiting_reads.retain(|(from, _), waiting| !is_its(from, waiting));
    }

    /// Forgets what nobody waits for or reads at any more, and what is lost is proposed again.
    pub(in crate::certified::participant) fn tend_cuts(&mut self, cx: &mut Context<'_>) {
        let (now, patience) = (cx.now(), cx.settings.give_up_after);
        self.waiting_reads.retain(|_, waiting| waiting.came.at + patience > now);
        self.cuts.forget_old(now);
        self.propose_for_waiting(cx);
    }

    /// The moment that somebody reads at who has none yet: where it is read, and where that lies in
    /// the order of commits. `None`: there is no cut any more.
    pub(in crate::certified::participant) fn cut_to_read(&self) -> Option<(u64, Timestamp)> {
        let cut = Timestamp::new(self.cuts.order.last(), RepositoryId(0));
        match self.reads_at_cuts() {
            true => Some((self.cuts.clock()?, cut)),
            false => Some((self.clock, cut)),
        }
    }

    /// Where the present of the site lies in the order of commits, for sessions of those that read
    /// it and are not certified.
    pub(in crate::certified::participant) fn present(&self) -> Timestamp {
        match self.switches.local_reads {
            LocalReads::None => Timestamp::ZERO,
            LocalReads::InOneOrder | LocalReads::InAnyOrder => {
                Timestamp::new(self.cuts.order.decided(), RepositoryId(0))
            }
        }
    }

    fn reads_at_cuts(&self) -> bool {
        self.switches.keeps(CertifiedSwitch::ReadsAtCuts)
    }

    /// The clock of the cut whose versions are kept.
    pub(in crate::certified::participant) fn kept_cut(&self) -> Option<u64> {
        self.cuts.clock().filter(|_| self.reads_at_cuts())
    }
}
