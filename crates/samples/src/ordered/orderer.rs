//! The service that runs a broadcast beside a site.

use std::marker::PhantomData;

use muesli_core::{
    Address, Context, LoggedRole, NodeId, RepositoryId, Role, Service, ServiceId, Settings,
    StateMachine, timers,
};

use super::broadcast::{Broadcast, Out};
use super::certify::Certify;
use super::names::orderer;
use super::{Message, Ordered, Record};

/// So many commands are given to a site at a time.
const DELIVERED_MAX: usize = 64;

/// An orderer.
#[derive(Clone, Debug)]
pub struct Orderer<B, C> {
    site: u16,
    /// Known once the catalog is.
    broadcast: Option<B>,
    /// Records of the life before, until then.
    given: u64,
    applied: u64,
    certification: PhantomData<C>,
}

timers! {
    /// The timers of an orderer.
    pub enum OrdererTimer {
        /// Says again what may be lost.
        Repeat = 0,
    }
}

impl<B: Broadcast, C: Certify> Orderer<B, C> {
    fn run(&mut self, cx: &mut Context<'_, Ordered<B, C>>, run: impl FnOnce(&mut B, &mut Out<B>)) {
        let mut out = Out::default();
        run(self.broadcast(cx), &mut out);
        for record in out.records {
            cx.log(|| Record::Broadcast { record });
        }
        for (site, message) in out.messages {
            let home = cx.catalog.home(RepositoryId(site));
            cx.send(Address::service(home, orderer(site)), Message::Broadcast { message });
        }
        self.deliver(cx);
    }

    fn broadcast(&mut self, cx: &Context<'_, Ordered<B, C>>) -> &mut B {
        let (site, sites) = (self.site, cx.catalog.repositories() as u16);
        self.broadcast.get_or_insert_with(|| B::new(site, sites))
    }

    /// Gives the site what is ordered and was not given.
    fn deliver(&mut self, cx: &mut Context<'_, Ordered<B, C>>) {
        let Some(broadcast) = &self.broadcast else { return };
        let site = RepositoryId(self.site);
        for (position, command) in broadcast.ordered_from(self.given + 1).take(DELIVERED_MAX) {
            let command = command.clone();
            cx.send_to_repository(site, Message::Deliver { position, command });
            self.given = position;
        }
    }
}

impl<B: Broadcast, C: Certify> StateMachine<Ordered<B, C>> for Orderer<B, C> {
    type Timer = OrdererTimer;

    muesli_core::role_without_links!(Ordered<B, C>);
    muesli_core::role_without_judgement!(Ordered<B, C>);

    fn unfinished(&self) -> usize {
        self.broadcast.as_ref().map_or(0, Broadcast::unfinished)
    }

    fn assert_invariants(&self) {
        assert!(self.applied <= self.given, "what is applied was given");
        self.broadcast.iter().for_each(Broadcast::assert_invariants);
    }
}

impl<B: Broadcast, C: Certify> LoggedRole<Ordered<B, C>> for Orderer<B, C> {
    muesli_core::role_without_checkpoints!(Ordered<B, C>);

    fn start(&mut self, cx: &mut Context<'_, Ordered<B, C>>) {
        cx.set_timer(OrdererTimer::Repeat, cx.settings.retry_after);
    }

    fn placed(&mut self, _: &mut Context<'_, Ordered<B, C>>) {}

    fn receive(
        &mut self,
        from: Address,
        message: Message<B::Message>,
        cx: &mut Context<'_, Ordered<B, C>>,
    ) {
        match message {
            Message::Submit { command } => {
                self.run(cx, |broadcast, out| broadcast.submit(command, out));
            }
            Message::Applied { upto } => {
                self.applied = self.applied.max(upto);
                self.given = self.given.max(upto);
                self.run(cx, |broadcast, out| broadcast.applied(upto, out));
            }
            Message::Broadcast { message } => {
                let Role::Service(other) = from.role else { return };
                self.run(cx, |it, out| it.receive(other.number(), message, out));
            }
            Message::Ask { .. } | Message::Tell { .. } | Message::Deliver { .. } => {} // For sites.
        }
    }

    fn timer(&mut self, timer: OrdererTimer, cx: &mut Context<'_, Ordered<B, C>>) {
        match timer {
            OrdererTimer::Repeat => {
                // The site may have lost what was given to it and is not applied.
                self.given = self.applied;
                self.run(cx, B::repeat);
                cx.set_timer(OrdererTimer::Repeat, cx.settings.retry_after);
            }
        }
    }

    fn replay(&mut self, record: Record<B::Record>, cx: &mut Context<'_, Ordered<B, C>>) {
        let Record::Broadcast { record } = record else {
            unreachable!("an orderer logs what the broadcast says")
        };
        self.broadcast(cx).replay(record);
    }
}

impl<B: Broadcast, C: Certify> Service<Ordered<B, C>> for Orderer<B, C> {
    fn new(id: ServiceId, _: NodeId, _: u32, _: &Settings, (): &()) -> Orderer<B, C> {
        let certification = PhantomData;
        Orderer { site: id.number(), broadcast: None, given: 0, applied: 0, certification }
    }
}
