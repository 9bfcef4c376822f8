//! Channels: who listens, and what is said.

use super::ServerCall;
use crate::commands::pattern::matches;
use crate::protocol::reply::RespReply;
use crate::server::channels::ChannelKind;
use crate::server::client::State;

fn kind(name: &str) -> ChannelKind {
    match name.as_bytes()[0] {
        b'p' if name != "publish" && name != "pubsub" => ChannelKind::Pattern,
        b's' if name.starts_with("ss") || name.starts_with("sun") || name == "spublish" => {
            ChannelKind::Shard
        }
        _ => ChannelKind::Channel,
    }
}

/// How many a client listens to, as it is told with each that it begins or ends to listen to.
fn count(state: &State, kind: ChannelKind) -> RespReply {
    RespReply::count(match kind {
        ChannelKind::Channel | ChannelKind::Pattern => state.subscriptions(),
        ChannelKind::Shard => state.shard_channels.len(),
    })
}

pub(super) fn subscribe(asked: ServerCall<'_>, name: &str) -> RespReply {
    let kind = kind(name);
    let mut reached = Vec::new();
    for channel in asked.command.iter().skip(1) {
        let state = &mut *asked.client.state.borrow_mut();
        let own = match kind {
            ChannelKind::Channel => &mut state.channels,
            ChannelKind::Pattern => &mut state.patterns,
            ChannelKind::Shard => &mut state.shard_channels,
        };
        own.insert(channel.to_vec());
        asked.shared.channels.add(kind, channel, asked.client);
        let count = count(state, kind);
        reached.push(RespReply::Push(vec![RespReply::bulk(name), RespReply::bulk(channel), count]));
    }
    RespReply::Several(reached)
}

pub(super) fn unsubscribe(asked: ServerCall<'_>, name: &str) -> RespReply {
    let kind = kind(name);
    let state = &mut *asked.client.state.borrow_mut();
    let own = match kind {
        ChannelKind::Channel => &state.channels,
        ChannelKind::Pattern => &state.patterns,
        ChannelKind::Shard => &state.shard_channels,
    };
    let named: Vec<_> = asked.command.iter().skip(1).map(<[u8]>::to_vec).collect();
    let named = if named.is_empty() { own.iter().cloned().collect() } else { named };
    if named.is_empty() {
        let count = count(state, kind);
        return RespReply::Push(vec![RespReply::bulk(name), RespReply::Null, count]);
    }
    let mut reached = Vec::new();
    for channel in named {
        match kind {
            ChannelKind::Channel => state.channels.remove(&channel),
            ChannelKind::Pattern => state.patterns.remove(&channel),
            ChannelKind::Shard => state.shard_channels.remove(&channel),
        };
        asked.shared.channels.remove(kind, &channel, asked.client);
        let count = count(state, kind);
        reached.push(RespReply::Push(vec![
            RespReply::bulk(name),
            RespReply::bulk(&channel),
            count,
        ]));
    }
    RespReply::Several(reached)
}

pub(super) fn publish(asked: ServerCall<'_>, name: &str) -> RespReply {
    let reached = asked.shared.channels.publish(kind(name), asked.arg(1), asked.arg(2));
    reached.iter().for_each(|client| asked.shared.list(client));
    RespReply::count(reached.len())
}

pub(super) fn pubsub(asked: ServerCall<'_>) -> RespReply {
    let channels = &asked.shared.channels;
    let named = |kind: ChannelKind| {
        let all = channels.names(kind).into_iter();
        RespReply::bulks(all.filter(|it| asked.len() < 3 || matches(asked.arg(2), it)))
    };
    let counts = |kind: ChannelKind| {
        let each =
            |name: &[u8]| [RespReply::bulk(name), RespReply::count(channels.count(kind, name))];
        RespReply::Array(asked.command.iter().skip(2).flat_map(each).collect())
    };
    match &*asked.text(1).to_ascii_lowercase() {
        "channels" if asked.len() <= 3 => named(ChannelKind::Channel),
        "shardchannels" if asked.len() <= 3 => named(ChannelKind::Shard),
        "numsub" => counts(ChannelKind::Channel),
        "shardnumsub" => counts(ChannelKind::Shard),
        "numpat" if asked.len() == 2 => {
            RespReply::count(channels.names(ChannelKind::Pattern).len())
        }
        "channels" | "shardchannels" | "numpat" => asked.wrong_number(),
        _ => asked.unknown(),
    }
}
