//! Channels, and who listens to them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use super::client::RespClient;
use crate::commands::pattern::matches;
use crate::protocol::reply::RespReply;

/// The clients of each channel, by their numbers.
type Listeners = BTreeMap<Vec<u8>, BTreeMap<u64, Rc<RespClient>>>;

/// What a client can listen to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChannelKind {
    Channel,
    Pattern,
    /// Of Redis's clusters, apart from the others.
    Shard,
}

/// Who listens to what.
#[derive(Default)]
pub(super) struct Channels {
    channels: RefCell<Listeners>,
    patterns: RefCell<Listeners>,
    shards: RefCell<Listeners>,
}

impl Channels {
    fn of(&self, kind: ChannelKind) -> &RefCell<Listeners> {
        match kind {
            ChannelKind::Channel => &self.channels,
            ChannelKind::Pattern => &self.patterns,
            ChannelKind::Shard => &self.shards,
        }
    }

    pub fn add(&self, kind: ChannelKind, name: &[u8], client: &Rc<RespClient>) {
        let mut listeners = self.of(kind).borrow_mut();
        listeners.entry(name.to_vec()).or_default().insert(client.id, client.clone());
    }

    pub fn remove(&self, kind: ChannelKind, name: &[u8], client: &RespClient) {
        let mut listeners = self.of(kind).borrow_mut();
        if let Some(all) = listeners.get_mut(name) {
            all.remove(&client.id);
            if all.is_empty() {
                listeners.remove(name);
            }
        }
    }

    /// A client is gone.
    pub fn remove_all(&self, client: &RespClient) {
        let state = client.state.borrow();
        state.channels.iter().for_each(|name| self.remove(ChannelKind::Channel, name, client));
        state.patterns.iter().for_each(|name| self.remove(ChannelKind::Pattern, name, client));
        state.shard_channels.iter().for_each(|name| self.remove(ChannelKind::Shard, name, client));
    }

    /// Tells everyone who listens; who was told.
    pub fn publish(
        &self,
        kind: ChannelKind,
        channel: &[u8],
        message: &[u8],
    ) -> Vec<Rc<RespClient>> {
        let mut reached = Vec::new();
        let word = if kind == ChannelKind::Shard { "smessage" } else { "message" };
        if let Some(listeners) = self.of(kind).borrow().get(channel) {
            let parts = [word.as_bytes(), channel, message].map(RespReply::bulk);
            let push = RespReply::Push(parts.into());
            for client in listeners.values() {
                client.tell(&push);
                reached.push(client.clone());
            }
        }
        if kind == ChannelKind::Shard {
            return reached;
        }
        for (pattern, listeners) in &*self.patterns.borrow() {
            if matches(pattern, channel) {
                let parts = [b"pmessage", &pattern[..], channel, message].map(RespReply::bulk);
                let push = RespReply::Push(parts.into());
                for client in listeners.values() {
                    client.tell(&push);
                    reached.push(client.clone());
                }
            }
        }
        reached
    }

    /// How many clients a message of this channel would reach.
    #[cfg(feature = "scripts")]
    pub fn listeners(&self, kind: ChannelKind, channel: &[u8]) -> usize {
        let own = self.count(kind, channel);
        if kind == ChannelKind::Shard {
            return own;
        }
        let patterns = self.patterns.borrow();
        let matching = patterns.iter().filter(|(pattern, _)| matches(pattern, channel));
        own + matching.map(|(_, listeners)| listeners.len()).sum::<usize>()
    }

    /// The channels that somebody listens to.
    pub fn names(&self, kind: ChannelKind) -> Vec<Vec<u8>> {
        self.of(kind).borrow().keys().cloned().collect()
    }

    /// How many listen to a channel.
    pub fn count(&self, kind: ChannelKind, name: &[u8]) -> usize {
        self.of(kind).borrow().get(name).map_or(0, BTreeMap::len)
    }
}
