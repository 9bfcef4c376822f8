//! Trees that votes climb, as options and keys name them: a shape, or a file.

use clap::Args;
use muesli_core::NodeId;
use muesli_core::catalog::{TreeForm, TreePlan};

use crate::config::tree_form::form;

/// The tree, of commands that start nodes.
#[derive(Args, Clone, Debug, Default)]
pub struct TreeOptions {
    /// The tree that votes climb, above the nodes with data (hierarchy, hierarchy-locking): how
    /// many children the inner nodes of each level have, from the root down, as in 8 or 4x4; or a
    /// file with a line for each inner node [default: a root above all nodes; in searches, drawn
    /// from the seed]
    #[arg(long, value_name = "SHAPE|FILE", value_parser = form)]
    pub tree: Option<TreeForm>,
    /// So many validators for each inner node, on different nodes, each of which works for a share
    /// of the transactions [default: 1]
    #[arg(long, value_name = "N", requires = "tree",
        value_parser = clap::value_parser!(u16).range(1..=64))]
    pub validators: Option<u16>,
    /// So many nodes more, without data, on which the validators live in turn; 0: they live beside
    /// the data
    #[arg(long, value_name = "K", requires = "tree", default_value_t = 0,
        value_parser = clap::value_parser!(u16).range(0..=100))]
    pub validator_nodes: u16,
}

impl TreeOptions {
    /// The tree that was asked for.
    pub fn plan(&self) -> Option<TreePlan> {
        let validators = self.validators.unwrap_or(1);
        self.tree.clone().map(|form| TreePlan { form, validators })
    }

    /// The options once more, each behind a space.
    pub fn again(&self) -> String {
        let tree = self.plan().map(|tree| format!(" --tree {tree}"));
        let validators = self.validators.map(|count| format!(" --validators {count}"));
        let apart = Some(self.validator_nodes).filter(|count| *count > 0);
        let apart = apart.map(|count| format!(" --validator-nodes {count}"));
        [tree, validators, apart].into_iter().flatten().collect()
    }
}

/// Keys of a server's file for this tree, whose validators live on so many servers behind the
/// first ones.
///
/// # Errors
/// The system does not say where the file is.
pub fn keys(tree: &TreePlan, servers: usize, apart: usize) -> std::io::Result<Vec<String>> {
    let form = match &tree.form {
        TreeForm::Shape(shape) => shape.to_string(),
        TreeForm::Named(named) => std::path::absolute(named.file())?.display().to_string(),
    };
    Ok(vec![
        format!("tree = {form:?}"),
        format!("validators = {}", tree.validators),
        format!("validator_servers = {:?}", (servers..servers + apart).collect::<Vec<_>>()),
    ])
}

/// Nodes by their numbers, with commas between.
///
/// # Errors
/// One is no number of a server.
pub fn node(text: &str) -> Result<NodeId, String> {
    match text.parse() {
        Ok(node @ 0..=4095) => Ok(NodeId(node)),
        _ => Err(format!("`{text}` is no node: a number from 0 to 4095 is wanted")),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_tree_is_a_shape_or_a_file() {
        assert!(matches!(form("2x2"), Ok(TreeForm::Shape(_))));
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"root above 0 1\n").unwrap();
        let path = file.path().display().to_string();
        let named = form(&path).unwrap();
        let options = TreeOptions { tree: Some(named), validators: Some(2), validator_nodes: 3 };
        let again = format!(" --tree {path} --validators 2 --validator-nodes 3");
        assert_eq!(options.again(), again);
        let lines = keys(&options.plan().unwrap(), 2, 3).unwrap();
        let expected = ["validators = 2", "validator_servers = [2, 3, 4]"];
        assert_eq!(lines, [&*format!("tree = {path:?}"), expected[0], expected[1]]);
        file.write_all(b"a over 2\n").unwrap();
        let error = form(&path).unwrap_err();
        assert!(error.starts_with(&format!("{path}, line 2: `over`: expected NAME")), "{error}");
        let error = form("2x").unwrap_err();
        assert!(
            error.contains("`2x` is no shape") && error.contains("nor is it a file"),
            "{error}"
        );
    }
}
