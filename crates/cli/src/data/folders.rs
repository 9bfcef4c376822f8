//! Databases in folders that nobody has open.

use std::path::Path;

use muesli::{Durable, Options};
use muesli_workloads::available;

/// The options of the database in a folder, as it is.
///
/// # Errors
/// There is none, or somebody has it open.
pub fn stored(folder: &Path, read_only: bool) -> anyhow::Result<Options> {
    let options = Options::stored(folder)?;
    let durable = Durable { read_only, notice: |_| {}, ..Durable::at(folder) };
    Ok(Options { durable: Some(durable), procedures: available::procedures(), ..options })
}

/// Whether this is there when a database was begun, and the first start was cut short.
fn is_of_a_start(entry: &std::fs::DirEntry) -> bool {
    let name = entry.file_name();
    name == "lock" || name.to_string_lossy().starts_with("identity")
}

/// The options of the database in a folder, as it is; those of a new one where nothing is there but
/// what is made first, unless it is only read.
///
/// # Errors
/// Somebody has it open, or it is no database.
pub fn stored_or_new(folder: &Path, new: Options, read_only: bool) -> anyhow::Result<Options> {
    let is_new = match std::fs::read_dir(folder) {
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
        Ok(mut entries) => entries.all(|entry| entry.is_ok_and(|it| is_of_a_start(&it))),
    };
    if is_new && !read_only { Ok(new.durable(folder)) } else { stored(folder, read_only) }
}
