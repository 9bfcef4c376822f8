//! The last frame of a connection: why it is closed, for programs and for people.

use std::fmt;
use std::mem::discriminant;

use muesli_core::wire::{Reader, Wire, WireError};
use muesli_core::{NodeId, Tag, wire_struct};

/// Why a connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// What came is no frame, or not what belongs there.
    Misunderstood,
    /// Another cluster.
    Cluster,
    /// Another protocol.
    Protocol,
    /// Somebody else of that name is here.
    Taken,
    /// The data of an earlier life are lost.
    Lost,
    /// So many connections are open already.
    Full,
    /// The node is still looking for the others; try again.
    NotReady,
    /// The node is stopping.
    Stopping,
    /// The server was taken off the cluster's list.
    Left,
    /// It did not prove the cluster's secret, which it must for what it wants.
    Unproven,
    /// Its data are an older copy of what it had. Where others have followed them: when those
    /// began, in milliseconds since 1970.
    Older(Option<u64>),
}

/// The last frame of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionRefusal {
    /// Why, for programs.
    pub reason: Reason,
    /// Why, for people.
    pub text: String,
    /// That the server knows the cluster's secret, for who said that it knows it too.
    pub proof: Option<Tag>,
}

impl fmt::Display for ConnectionRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// All reasons, by their numbers.
pub(crate) const REASONS: [Reason; 11] = [
    Reason::Misunderstood,
    Reason::Cluster,
    Reason::Protocol,
    Reason::Taken,
    Reason::Lost,
    Reason::Full,
    Reason::NotReady,
    Reason::Stopping,
    Reason::Left,
    Reason::Unproven,
    Reason::Older(None),
];

impl Wire for Reason {
    const LEAST_BYTES: usize = 1;

    fn encode(&self, out: &mut Vec<u8>) {
        let is_same = |it: &Reason| discriminant(it) == discriminant(self);
        let place = REASONS.iter().position(is_same).expect("all are listed");
        out.push(place as u8);
        if let Reason::Older(begun) = self {
            begun.encode(out);
        }
    }

    fn decode(input: &mut Reader<'_>) -> Result<Reason, WireError> {
        let found = input.variant("reason of a refusal", REASONS.len() as u8)?;
        match REASONS[usize::from(found)] {
            Reason::Older(_) => Wire::decode(input).map(Reason::Older),
            other => Ok(other),
        }
    }
}

wire_struct!(ConnectionRefusal { reason: Reason, text: String, proof: Option<Tag> });

/// What can be done where a server's data are gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LossRemedy {
    /// Other servers have the same data.
    OthersGiveBack,
    /// What it held is gone; others hold keys that it only knew the place of.
    StartsEmpty,
    /// Its data are parts of transactions of others.
    StartAnew,
}

/// What a server or client is told whose data, or another server's data, are gone.
pub(crate) fn lost(node: NodeId, remedy: LossRemedy) -> String {
    let remedy = match remedy {
        LossRemedy::OthersGiveBack => {
            "empty its folder and start it with `accept_loss = true`, and the others give it their \
             data"
        }
        LossRemedy::StartsEmpty => {
            "empty its folder and start it with `accept_loss = true`: what it held is gone then, \
             and keys that others own are found again"
        }
        LossRemedy::StartAnew => "start the whole cluster anew, or use a durable log",
    };
    let node = node.0;
    format!("node {node} has lost its data: it was started anew without what it held; {remedy}")
}

/// What a server is told that was taken off the list.
pub(crate) fn left(node: NodeId) -> String {
    format!(
        "node {} was taken off its cluster's list for good (`muesli admin leave`), and its number \
         is not used again; to come back, a server needs an empty folder and a new number from \
         `muesli admin join`",
        node.0
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_comes_back() {
        for reason in REASONS {
            let mut out = Vec::new();
            let refusal = ConnectionRefusal { reason, text: format!("{reason:?}"), proof: None };
            refusal.encode(&mut out);
            assert_eq!(ConnectionRefusal::decode_all(&out), Ok(refusal));
        }
        assert!(Reason::decode_all(&[REASONS.len() as u8]).is_err());
    }
}
