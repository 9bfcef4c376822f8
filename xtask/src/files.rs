//! The files of the project.

use std::fs;
use std::path::{Path, PathBuf};

/// Folders that are not the project's own: what is built, and what programs write.
const LEFT_OUT: [&str; 5] = ["target", "muesli-data", "muesli-cluster", "reproduced", "traces"];
/// Hidden folders that are.
const HIDDEN: [&str; 2] = [".ci", ".cargo"];

/// The project's folder.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("it is in the project").to_owned()
}

/// All files with one of these extensions, by their paths from the project's folder, in order.
pub fn with_extension(extensions: &[&str]) -> Vec<PathBuf> {
    let root = root();
    let mut found = Vec::new();
    walk(&root, &mut |path| {
        if path.extension().is_some_and(|it| extensions.iter().any(|one| it == *one)) {
            found.push(path.strip_prefix(&root).expect("it is below").to_owned());
        }
    });
    found.sort();
    found
}

/// The text of a file of the project.
///
/// # Panics
/// It cannot be read.
pub fn text(path: &Path) -> String {
    let all = root().join(path);
    fs::read_to_string(&all).unwrap_or_else(|error| panic!("{}: {error}", all.display()))
}

fn walk(folder: &Path, see: &mut impl FnMut(&Path)) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        if !path.is_dir() {
            see(&path);
        } else if HIDDEN.contains(&&*name) || !name.starts_with('.') && !LEFT_OUT.contains(&&*name)
        {
            walk(&path, see);
        }
    }
}
