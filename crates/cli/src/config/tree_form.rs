//! Trees as keys and options name them: a shape, or a file.

use std::path::Path;

use muesli_core::catalog::{NamedTree, TREE_BYTES_MAX, TreeForm, TreeShape};

/// A tree by its text: a shape, or the path of a file.
///
/// # Errors
/// It is neither, or the file says no tree.
pub fn form(text: &str) -> Result<TreeForm, String> {
    let no_shape = match text.parse::<TreeShape>() {
        Ok(shape) => return Ok(TreeForm::Shape(shape)),
        Err(error) => error,
    };
    let path = Path::new(text);
    let is_long = path.metadata().is_ok_and(|it| it.len() > TREE_BYTES_MAX as u64);
    if is_long {
        return Err(format!("{text} has more than {TREE_BYTES_MAX} bytes, and is no tree"));
    }
    match std::fs::read_to_string(path) {
        Ok(read) => {
            let named = NamedTree::read(text, &read).map_err(|error| error.to_string())?;
            Ok(TreeForm::Named(named))
        }
        Err(error) => Err(format!("{no_shape}; nor is it a file: {error}")),
    }
}
