//! The libraries of functions, as rows.
//!
//! Every library is a row, by its name, and one more row has a hash of all of them. Who calls a
//! function reads that one row: where it is the hash of the libraries that the server has read
//! last, those are used. A server of the same data that changes libraries changes the hash in the
//! same transaction, so each call is of the libraries of its place in the order of all
//! transactions.

use std::rc::Rc;

use muesli::{Range, SmallBytes};

use crate::call::CommandCall;
use crate::engine::{Library, LibrarySet};
use crate::keyspace::rows::{RowKey, tag};
use crate::keyspace::stop::CommandStop;

fn row(name: &str) -> SmallBytes {
    RowKey::new(tag::LIBRARY).bytes(name.as_bytes()).done()
}

fn version_row() -> SmallBytes {
    RowKey::new(tag::LIBRARIES).done()
}

/// The libraries.
pub(super) async fn libraries(call: &CommandCall<'_>) -> Result<Rc<LibrarySet>, CommandStop> {
    let version = call.scope.number(version_row()).await?.unwrap_or(0);
    let engine = call.host.engine();
    let (known_version, known) = engine.libraries.borrow().clone();
    if known_version == version {
        return Ok(known);
    }
    let mut set = LibrarySet::default();
    let all = RowKey::new(tag::LIBRARY).done();
    for (_, value) in call.scope.scan(Range::prefix(all.as_slice())).await? {
        let added = Library::of_row(value.as_slice()).map(|library| set.add(library));
        if added.is_none_or(|it| it.is_err()) {
            return CommandStop::refused("ERR a library is damaged: FUNCTION FLUSH takes it away");
        }
    }
    let set = Rc::new(set);
    // A transaction that will not commit may have seen rows of different moments.
    if set.version() == version {
        *engine.libraries.borrow_mut() = (version, set.clone());
    }
    Ok(set)
}

/// Has the libraries be these, which were others before.
pub(super) async fn change(
    call: &CommandCall<'_>,
    before: &LibrarySet,
    after: &LibrarySet,
) -> Result<(), CommandStop> {
    for name in before.libraries.keys().filter(|name| !after.libraries.contains_key(*name)) {
        call.scope.delete(row(name)).await?;
    }
    for (name, library) in &after.libraries {
        if before.libraries.get(name) != Some(library) {
            call.scope.put(row(name), SmallBytes::from(library.to_row())).await?;
        }
    }
    call.scope.put_number(version_row(), after.version()).await?;
    call.scope.changes.set(call.scope.changes.get() + 1);
    Ok(())
}

/// Takes all libraries away, also such as cannot be read.
pub(super) async fn clear(call: &CommandCall<'_>) -> Result<(), CommandStop> {
    let all = RowKey::new(tag::LIBRARY).done();
    for (row, _) in call.scope.scan(Range::prefix(all.as_slice())).await? {
        call.scope.delete(row).await?;
    }
    call.scope.put_number(version_row(), 0).await?;
    call.scope.changes.set(call.scope.changes.get() + 1);
    Ok(())
}
