//! What drivers say to each other beside the protocol's messages.

use muesli_core::recorder::accesses::{AccessPage, LoadPage};
use muesli_core::recorder::partition_sizes::{SizeCursor, SizePage};
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
    /// From a probe: which partitions have sampled transactions touched? The samples from this
    /// number on.
    AskAccesses(u64),
    /// The answer, a page.
    Accesses(AccessPage),
    /// From a probe: how much was done at each partition? Those from this number on.
    AskLoads(u16),
    /// The answer, a page.
    Loads(LoadPage),
    /// From a probe: how much do the partitions hold? A step of counting goes on from here.
    AskSizes(SizeCursor),
    /// The answer, of one step.
    Sizes(SizePage),
    /// From an administrator: one transaction in so many is to be sampled from now on; 0: none. The
    /// answer is the first page of [`Loads`](Control::Loads). From anybody else it ends the
    /// connection.
    SampleAccesses(u32),
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
            Control::AskAccesses(_) => "ask-accesses",
            Control::Accesses(_) => "accesses",
            Control::AskLoads(_) => "ask-loads",
            Control::Loads(_) => "loads",
            Control::AskSizes(_) => "ask-sizes",
            Control::Sizes(_) => "sizes",
            Control::SampleAccesses(_) => "sample-accesses",
        }
    }
}

fn encoded(kind: u8, body: &impl Wire, out: &mut Vec<u8>) {
    out.push(kind);
    body.encode(out);
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
            Control::Map(map) => encoded(2, map, out),
            Control::AskStatus => out.push(3),
            Control::Status(lines) => encoded(4, lines, out),
            Control::AskMembers => out.push(5),
            Control::Members { placement, members, lags } => {
                out.push(6);
                placement.encode(out);
                members.encode(out);
                lags.encode(out);
            }
            Control::Place(map) => encoded(7, map, out),
            Control::SpacesMade(epoch) => encoded(8, epoch, out),
            Control::AskAccesses(from) => encoded(9, from, out),
            Control::Accesses(page) => encoded(10, page, out),
            Control::AskLoads(from) => encoded(11, from, out),
            Control::Loads(page) => encoded(12, page, out),
            Control::AskSizes(from) => encoded(13, from, out),
            Control::Sizes(page) => encoded(14, page, out),
            Control::SampleAccesses(one_in) => encoded(15, one_in, out),
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
            9 => Control::AskAccesses(Wire::decode(input)?),
            10 => Control::Accesses(Wire::decode(input)?),
            11 => Control::AskLoads(Wire::decode(input)?),
            12 => Control::Loads(Wire::decode(input)?),
            13 => Control::AskSizes(Wire::decode(input)?),
            14 => Control::Sizes(Wire::decode(input)?),
            15 => Control::SampleAccesses(Wire::decode(input)?),
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
                Control::AskAccesses(request),
                Control::Accesses(AccessPage { next: request, ..AccessPage::default() }),
                Control::AskLoads(request as u16),
                Control::Loads(LoadPage { loads: vec![(1, request)], ..LoadPage::default() }),
                Control::AskSizes(SizeCursor { slot: request as u32, ..SizeCursor::default() }),
                Control::Sizes(SizePage { next: Some(SizeCursor::default()), sizes: Vec::new() }),
                Control::SampleAccesses(request as u32),
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
