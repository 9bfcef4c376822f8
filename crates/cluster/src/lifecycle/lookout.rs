//! A lookout, for the server that nobody lets know.
//!
//! A server dials those of smaller names, and whoever it dials tells it if it has left the cluster.
//! The smallest of those that are there has nobody to dial; and others do not dial one that has
//! left. So as long as it has met no other server, it visits them in turn, and takes the map that
//! it is shown.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use muesli_core::{NodeId, Secret};

use crate::lifecycle::visit::Visit;
use crate::mailbox::entry_point::{Command, EntryPoint};
use crate::spaces::map::Map;

/// How long it waits for others to come before it looks, and between two looks.
const PAUSE: Duration = Duration::from_millis(500);
/// How long one may take to answer.
const WITHIN: Duration = Duration::from_secs(1);

/// Looks out for the map of others, from a thread of its own, if this server has nobody to dial.
pub(crate) fn look_out(
    entry_point: Arc<EntryPoint>,
    map: &Map,
    me: NodeId,
    secret: Option<Secret>,
) {
    let server = |node: NodeId| node.0 / u32::from(map.loops.max(1));
    let others: Vec<_> = map.there().filter(|(node, _)| server(*node) != server(me)).collect();
    let is_smallest = others.iter().all(|(node, _)| *node > me);
    if map.group <= 1 || others.is_empty() || !is_smallest {
        return;
    }
    let addresses: Vec<_> = others.iter().map(|(_, address)| address.clone()).collect();
    let others: Vec<_> = others.iter().map(|(node, _)| *node).collect();
    let look = move || {
        for address in addresses.iter().cycle() {
            let met = entry_point
                .wait_until(PAUSE, |status| others.iter().any(|other| status.up.contains(other)));
            let is_over = others.iter().any(|other| met.up.contains(other));
            drop(met);
            if is_over || entry_point.is_stopping() {
                return;
            }
            let shown = Visit::begin_as_admin(address, WITHIN, secret.as_ref()).ok();
            if let Some(map) = shown.and_then(|visit| Map::try_from(visit.welcome.map).ok()) {
                entry_point.command(Command::Map(map));
            }
        }
    };
    // Without a thread the server waits for others to come, as it does anyway.
    let _ = thread::Builder::new().name("muesli-lookout".to_owned()).spawn(look);
}
