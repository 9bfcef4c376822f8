//! What drivers say to each other beside the protocol's messages.

use muesli_core::wire::{Reader, Wire, WireError};

use muesli_core::{Lag, ReplicaRole, RepositoryId};

use crate::spaces::parts::{MapParts, SpaceParts};

/// A message between drivers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Control {
    /// From a client to the server that keeps the map: there is to be this space. From a probe or
    /// an administrator it ends the connection, as [`SpacesMade`](Control::SpacesMade) does.
    CreateSpace {
        /// The sender's number for the answer.
        request: u64,
        /// The space.
        space: SpaceParts,
    },
    /// That server's answer: done, or why not. The map was sent before it.
    SpaceCreated {
        /// The number of the request.
        request: u64,
        /// Why it could not be done.
        refused: Option<String>,
    },
    /// The map as it is now; older ones are out of date.
    Map(MapParts),
    /// From a probe: how do you do?
    AskStatus,
    /// The answer, as lines of `name value`.
    Status(Vec<(String, u64)>),
    /// From a probe: which repositories live there, and which part do they take?
    AskMembers,
    /// The answer.
    Members {
        /// The epoch of the placement that the server goes by.
        placement: u64,
        /// The repositories.
        members: Vec<(RepositoryId, ReplicaRole)>,
        /// By how much each is behind in its group.
        lags: Vec<(RepositoryId, Lag)>,
    },
    /// From an administrator that has read or written the row of the placement: this is what it
    /// says. The answer is [`Members`](Control::Members), under the placement that the server goes
    /// by then. From anybody else it ends the connection.
    Place(MapParts),
    /// From a client of a database of groups that has made a space: the spaces are of this epoch by
    /// now. The server reads them itself ([`register`](crate::spaces::register)).
    SpacesMade(u64),
}

impl Control {
    /// What it is, for reports.
    pub fn kind(&self) -> &'static str {
        match self {
            Control::CreateSpace { .. } => "create-space",
            Control::SpaceCreated { .. } => "space-created",
            Control::Map(_) => "map",
            Control::AskStatus => "ask-status",
            Control::Status(_) => "status",
            Control::AskMembers => "ask-members",
            Control::Members { .. } => "members",
            Control::Place(_) => "place",
            Control::SpacesMade(_) => "spaces-made",
        }
    }
}

impl Wire for Control {
    const LEAST_BYTES: usize = 1;

    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Control::CreateSpace { request, space } => {
                out.push(0);
                request.encode(out);
                space.encode(out);
            }
            Control::SpaceCreated { request, refused } => {
                out.push(1);
                request.encode(out);
                refused.encode(out);
            }
            Control::Map(map) => {
                out.push(2);
                map.encode(out);
            }
            Control::AskStatus => out.push(3),
            Control::Status(lines) => {
                out.push(4);
                lines.encode(out);
            }
            Control::AskMembers => out.push(5),
            Control::Members { placement, members, lags } => {
                out.push(6);
                placement.encode(out);
                members.encode(out);
                lags.encode(out);
            }
            Control::Place(map) => {
                out.push(7);
                map.encode(out);
            }
            Control::SpacesMade(epoch) => {
                out.push(8);
                epoch.encode(out);
            }
        }
    }

    fn decode(input: &mut Reader<'_>) -> Result<Control, WireError> {
        let at = input.position();
        Ok(match u8::decode(input)? {
            0 => {
                Control::CreateSpace { request: Wire::decode(input)?, space: Wire::decode(input)? }
            }
            1 => Control::SpaceCreated {
                request: Wire::decode(input)?,
                refused: Wire::decode(input)?,
            },
            2 => Control::Map(Wire::decode(input)?),
            3 => Control::AskStatus,
            4 => Control::Status(Wire::decode(input)?),
            5 => Control::AskMembers,
            6 => Control::Members {
                placement: Wire::decode(input)?,
                members: Wire::decode(input)?,
                lags: Wire::decode(input)?,
            },
            7 => Control::Place(Wire::decode(input)?),
            8 => Control::SpacesMade(Wire::decode(input)?),
            other => return Err(WireError::no_variant("message between drivers", at, other)),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn controls_come_back(
            request: u64, name: String, refused: Option<String>, lines: Vec<(String, u64)>,
            placement: u64,
        ) {
            let space = SpaceParts { name, ..SpaceParts::default() };
            for control in [
                Control::CreateSpace { request, space },
                Control::SpaceCreated { request, refused },
                Control::Map(MapParts::default()),
                Control::AskStatus,
                Control::Status(lines),
                Control::AskMembers,
                Control::Members {
                    placement,
                    members: vec![(RepositoryId(3), ReplicaRole::Joins)],
                    lags: vec![(RepositoryId(3), Lag::default())],
                },
                Control::Place(MapParts::default()),
                Control::SpacesMade(request),
            ] {
                let mut bytes = Vec::new();
                control.encode(&mut bytes);
                prop_assert_eq!(Control::decode_all(&bytes), Ok(control));
            }
        }

        #[test]
        fn any_bytes_are_a_control_or_refused(bytes: Vec<u8>) {
            let _ = Control::decode_all(&bytes);
        }
    }
}
