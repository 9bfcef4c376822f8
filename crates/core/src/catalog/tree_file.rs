//! Trees as a text says them, inner node by inner node.
//!
//! ```text
//! # NAME  under PARENT  on NODE …  above NODE …
//! root            on 0
//! here   under root  on 1 2  above 0 1 2
//! there  under root          above 3 4
//! ```
//!
//! Each inner node has a line: the inner node that it is under, unless it is the root; the nodes on
//! which its validators live, unless that is left to whoever makes the tree; and the nodes with
//! data right below it. What follows a `#` is a remark. Subtrees may be racks or sites: their names
//! are free.

use std::collections::BTreeMap;
use std::fmt;

use thiserror::Error;

use super::hierarchy::INNER_NODES_MAX;
use super::tree_nodes::{TreeError, TreeNodes};
use super::tree_shape::LEVELS_MAX;
use super::{Hierarchy, InnerNode};
use crate::ids::NodeId;

/// The most bytes of a text.
pub const TREE_BYTES_MAX: usize = 1 << 20;

/// A tree with a name for each inner node.
///
/// Invariants: as of [`Hierarchy`]; each inner node has something below it, no node is a leaf twice
/// or has two validators of one inner node, and there are [`LEVELS_MAX`] levels at most.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedTree {
    file: String,
    nodes: Vec<NamedNode>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct NamedNode {
    name: String,
    parent: Option<u16>,
    homes: Vec<NodeId>,
    leaves: Vec<NodeId>,
}

/// A text that says no tree.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{file}, line {line}: {fault}")]
pub struct TreeFileError {
    /// The text's name.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub fault: TreeFault,
}

/// What is wrong with a line of a tree, or with all of them.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TreeFault {
    /// A word that stands for nothing.
    #[error("`{0}`: expected NAME [under PARENT] [on NODE …] [above NODE …]")]
    Word(String),
    /// Something that is no node.
    #[error("`{0}` is no node: expected a number, as servers have them")]
    Number(String),
    /// A word that lacks what belongs to it.
    #[error("nothing follows `{0}`")]
    Nothing(&'static str),
    /// Two lines for one inner node.
    #[error("`{name}` has line {line} already: an inner node has one line, and one parent")]
    Twice {
        /// The inner node.
        name: String,
        /// Its first line.
        line: usize,
    },
    /// A parent that there is not.
    #[error("there is no inner node `{0}`")]
    Parent(String),
    /// Inner nodes above each other.
    #[error("`{0}` is under itself")]
    Circle(String),
    /// A second root.
    #[error("`{name}` is under nobody, as is `{first}`: a tree has one root")]
    Roots {
        /// The second one.
        name: String,
        /// The first one.
        first: String,
    },
    /// No root.
    #[error("no inner node is the root: each is under another one, or there is none")]
    NoRoot,
    /// A leaf of two inner nodes, or twice of one.
    #[error("node {node} is below `{name}` already")]
    Leaf {
        /// The node.
        node: u32,
        /// Where it is already.
        name: String,
    },
    /// Two validators of an inner node on one node.
    #[error("node {0} has one validator of this inner node already")]
    Home(u32),
    /// Nothing below.
    #[error("nothing is below `{0}`")]
    Empty(String),
    /// Too deep.
    #[error("`{0}` is on level {levels}: there can be {LEVELS_MAX}", levels = LEVELS_MAX + 1)]
    Levels(String),
    /// Too many.
    #[error("there are more than {INNER_NODES_MAX} inner nodes")]
    InnerNodes,
    /// Too long a text.
    #[error("the text has {0} bytes: there can be {TREE_BYTES_MAX}")]
    Long(usize),
}

/// What the words of a line say.
struct TreeLine<'a> {
    number: usize,
    name: &'a str,
    parent: Option<&'a str>,
    homes: Vec<NodeId>,
    leaves: Vec<NodeId>,
}

impl NamedTree {
    /// The tree that a text says; errors name the text as `file`.
    ///
    /// # Errors
    /// It says none.
    pub fn read(file: &str, text: &str) -> Result<NamedTree, TreeFileError> {
        let fail = |(line, fault)| TreeFileError { file: file.to_owned(), line, fault };
        if text.len() > TREE_BYTES_MAX {
            return Err(fail((1, TreeFault::Long(text.len()))));
        }
        let mut lines = Vec::new();
        for (number, text) in (1..).zip(text.lines()) {
            let text = text.split('#').next().unwrap_or_default();
            lines.extend(line(number, text).map_err(|fault| fail((number, fault)))?);
        }
        let nodes = tree(&lines).map_err(fail)?;
        Ok(NamedTree { file: file.to_owned(), nodes })
    }

    /// What errors name it by: where it was read from.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// How many nodes with data it is over.
    pub fn leaves(&self) -> usize {
        self.nodes.iter().map(|it| it.leaves.len()).sum()
    }

    /// The tree above the repositories of these nodes.
    ///
    /// # Errors
    /// It is not over those nodes that have data, or its validators live elsewhere.
    pub(super) fn over(&self, nodes: &mut TreeNodes<'_>) -> Result<Hierarchy, TreeError> {
        let file = || self.file.clone();
        let mut parents = BTreeMap::new();
        for (number, NamedNode { name, leaves, .. }) in (0..).zip(&self.nodes) {
            let without_data = |leaf: &&NodeId| nodes.with_data.binary_search(leaf).is_err();
            if let Some(node) = leaves.iter().find(without_data) {
                return Err(TreeError::NoData { file: file(), node: node.0, name: name.clone() });
            }
            parents.extend(leaves.iter().map(|leaf| (*leaf, number)));
        }
        if let Some(node) = nodes.with_data.iter().find(|node| !parents.contains_key(node)) {
            return Err(TreeError::Missing { file: file(), node: node.0 });
        }
        let mut inner = Vec::new();
        for (number, NamedNode { name, parent, homes, .. }) in (0..).zip(&self.nodes) {
            if let Some(node) = homes.iter().find(|home| !nodes.all.contains(home)) {
                return Err(TreeError::NoNode { file: file(), node: node.0, name: name.clone() });
            }
            let homes = match homes[..] {
                [] => nodes.of_validators(nodes.place(self.first_below(number)))?,
                _ => homes.clone(),
            };
            inner.push(InnerNode { homes, parent: *parent });
        }
        let above = nodes.homes.iter().map(|home| parents[home]);
        Ok(Hierarchy::new(inner, above.collect())?)
    }

    /// The first node with data below an inner node.
    fn first_below(&self, inner: u16) -> NodeId {
        let below = |at: &u16| path(&self.nodes, *at).any(|it| it == inner);
        let all = (0..self.nodes.len() as u16).filter(below);
        let leaves = all.flat_map(|at| &self.nodes[usize::from(at)].leaves);
        *leaves.min().expect("an inner node has something below it")
    }
}

/// The text, which says the same tree when it is read.
impl fmt::Display for NamedTree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for NamedNode { name, parent, homes, leaves } in &self.nodes {
            f.write_str(name)?;
            if let Some(parent) = parent {
                write!(f, " under {}", self.nodes[usize::from(*parent)].name)?;
            }
            for (word, nodes) in [("on", homes), ("above", leaves)] {
                let numbers: Vec<_> = nodes.iter().map(|node| node.0.to_string()).collect();
                if !nodes.is_empty() {
                    write!(f, " {word} {}", numbers.join(" "))?;
                }
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

/// An inner node and those above it.
fn path(nodes: &[NamedNode], start: u16) -> impl Iterator<Item = u16> + '_ {
    std::iter::successors(Some(start), |at| nodes[usize::from(*at)].parent)
}

/// What a line says; `None`: nothing.
fn line(number: usize, text: &str) -> Result<Option<TreeLine<'_>>, TreeFault> {
    let mut words = text.split_whitespace().peekable();
    let Some(name) = words.next() else { return Ok(None) };
    if KEYWORDS.contains(&name) {
        return Err(TreeFault::Word(name.to_owned()));
    }
    let mut line = TreeLine { number, name, parent: None, homes: Vec::new(), leaves: Vec::new() };
    while let Some(word) = words.next() {
        match word {
            "under" if line.parent.is_none() => {
                let parent = words.next().filter(|it| !KEYWORDS.contains(it));
                line.parent = Some(parent.ok_or(TreeFault::Nothing("under"))?);
            }
            "on" | "above" => {
                let (all, word) = match word {
                    "on" => (&mut line.homes, "on"),
                    _ => (&mut line.leaves, "above"),
                };
                let before = all.len();
                while let Some(text) = words.next_if(|it| !KEYWORDS.contains(it)) {
                    let node = text.parse().map_err(|_| TreeFault::Number(text.to_owned()));
                    all.push(NodeId(node?));
                }
                if all.len() == before {
                    return Err(TreeFault::Nothing(word));
                }
            }
            _ => return Err(TreeFault::Word(word.to_owned())),
        }
    }
    Ok(Some(line))
}

const KEYWORDS: [&str; 3] = ["under", "on", "above"];

/// The tree of these lines; else which line is wrong, and how.
fn tree(lines: &[TreeLine<'_>]) -> Result<Vec<NamedNode>, (usize, TreeFault)> {
    if lines.len() > INNER_NODES_MAX {
        return Err((lines[INNER_NODES_MAX].number, TreeFault::InnerNodes));
    }
    let mut numbers = BTreeMap::new();
    for (at, line) in lines.iter().enumerate() {
        if let Some(first) = numbers.insert(line.name, at) {
            let twice = TreeFault::Twice { name: line.name.to_owned(), line: lines[first].number };
            return Err((line.number, twice));
        }
    }
    let mut nodes = Vec::new();
    for line in lines {
        let parent = line.parent.map(|parent| {
            let unknown = || (line.number, TreeFault::Parent(parent.to_owned()));
            numbers.get(parent).map(|at| *at as u16).ok_or_else(unknown)
        });
        let (homes, leaves) = (line.homes.clone(), line.leaves.clone());
        let name = line.name.to_owned();
        nodes.push(NamedNode { name, parent: parent.transpose()?, homes, leaves });
    }
    check_paths(lines, &nodes)?;
    check_leaves(lines, &nodes)?;
    assert_eq!(nodes.iter().filter(|it| it.parent.is_none()).count(), 1, "a tree has one root");
    assert_eq!(nodes.len(), lines.len(), "each line is of an inner node");
    Ok(nodes)
}

/// Looks whether there is one root, from which all are reached, in few steps.
fn check_paths(lines: &[TreeLine<'_>], nodes: &[NamedNode]) -> Result<(), (usize, TreeFault)> {
    for (at, (line, node)) in (0..).zip(lines.iter().zip(nodes)) {
        let name = || node.name.clone();
        if path(nodes, at).skip(1).take(nodes.len()).any(|it| it == at) {
            return Err((line.number, TreeFault::Circle(name())));
        }
    }
    let mut roots = lines.iter().filter(|line| line.parent.is_none());
    let Some(first) = roots.next() else { return Err((1, TreeFault::NoRoot)) };
    if let Some(second) = roots.next() {
        let (name, first) = (second.name.to_owned(), first.name.to_owned());
        return Err((second.number, TreeFault::Roots { name, first }));
    }
    for (at, (line, node)) in (0..).zip(lines.iter().zip(nodes)) {
        if path(nodes, at).count() > LEVELS_MAX {
            return Err((line.number, TreeFault::Levels(node.name.clone())));
        }
    }
    Ok(())
}

/// Looks whether all have something below them, and whether nodes are said once.
fn check_leaves(lines: &[TreeLine<'_>], nodes: &[NamedNode]) -> Result<(), (usize, TreeFault)> {
    let mut known: BTreeMap<NodeId, &str> = BTreeMap::new();
    for (at, (line, node)) in (0..).zip(lines.iter().zip(nodes)) {
        if node.leaves.is_empty() && nodes.iter().all(|it| it.parent != Some(at)) {
            return Err((line.number, TreeFault::Empty(node.name.clone())));
        }
        for leaf in &node.leaves {
            if let Some(name) = known.insert(*leaf, line.name) {
                let leaf = TreeFault::Leaf { node: leaf.0, name: name.to_owned() };
                return Err((line.number, leaf));
            }
        }
        let mut homes = node.homes.iter().enumerate();
        if let Some((_, twice)) = homes.find(|(at, home)| node.homes[..*at].contains(home)) {
            return Err((line.number, TreeFault::Home(twice.0)));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::TreePlan;

    const TEXT: &str = "\
        # Two sites, of which one is larger.\n\
        root                     on 0\n\n\
        here   under root   on 1 2  above 0 1 2\n\
        there  above 3 4  under root  # and nowhere in particular\n";

    fn read(text: &str) -> Result<NamedTree, String> {
        NamedTree::read("trees/two", text).map_err(|error| error.to_string())
    }

    fn nodes(count: u32) -> Vec<NodeId> {
        (0..count).map(NodeId).collect()
    }

    #[test]
    fn a_text_is_read_and_written_and_read() {
        let tree = read(TEXT).unwrap();
        let written = "root on 0\nhere under root on 1 2 above 0 1 2\n\
                       there under root above 3 4\n";
        assert_eq!((tree.to_string(), tree.leaves()), (written.to_owned(), 5));
        assert_eq!(read(written), Ok(tree.clone()));
        let plan = TreePlan { validators: 2, ..TreePlan::from(tree) };
        assert_eq!((plan.to_string(), plan.leaves()), ("trees/two".to_owned(), 5));
        let over = plan.over(&nodes(5), &[], &nodes(5)).unwrap();
        assert_eq!(over.to_string(), "0(1+2(r0 r1 r2) 3+4(r3 r4))");
        let apart = [NodeId(8), NodeId(9)];
        let over = plan.over(&nodes(5), &apart, &nodes(10)).unwrap();
        assert_eq!(over.to_string(), "0(1+2(r0 r1 r2) 8+9(r3 r4))");
    }

    #[test]
    fn what_is_wrong_with_a_line_is_said() {
        for (text, line, fault) in [
            ("a below b", 1, "`below`: expected NAME [under PARENT]"),
            ("a above 0\n\n under a above 1", 3, "`under`: expected NAME"),
            ("a above x", 1, "`x` is no node"),
            ("a above 0 -1", 1, "`-1` is no node"),
            ("a above", 1, "nothing follows `above`"),
            ("a on above 0", 1, "nothing follows `on`"),
            ("a under on 1", 1, "nothing follows `under`"),
            ("r above 0\na under r under b", 2, "`under`: expected"),
            ("r above 0\na under r above 1\n a under b above 2", 3, "`a` has line 2 already"),
            ("r above 0\na under s above 1", 2, "there is no inner node `s`"),
            ("a under a above 0", 1, "`a` is under itself"),
            ("r above 0\na under b\nb under c\nc under a above 1", 2, "`a` is under itself"),
            ("r above 0\ns above 1", 2, "`s` is under nobody, as is `r`"),
            ("# nothing", 1, "no inner node is the root"),
            ("r above 0\na under r above 1 0", 2, "node 0 is below `r` already"),
            ("r above 1 1", 1, "node 1 is below `r` already"),
            ("r on 2 3 2 above 0", 1, "node 2 has one validator of this"),
            ("r above 0\na under r", 2, "nothing is below `a`"),
        ] {
            let error = read(text).unwrap_err();
            let start = format!("trees/two, line {line}: {fault}");
            assert!(error.starts_with(&start), "{text}: {error}");
        }
        let chain = |levels: usize| {
            let inner = (1..levels).map(|at| format!("n{at} under n{}", at - 1));
            let lines: Vec<_> = std::iter::once("n0".to_owned()).chain(inner).collect();
            lines.join("\n") + " above 0"
        };
        assert!(read(&chain(LEVELS_MAX)).is_ok());
        let error = read(&chain(LEVELS_MAX + 1)).unwrap_err();
        assert_eq!(error, "trees/two, line 9: `n8` is on level 9: there can be 8");
        let wide: String = (0..INNER_NODES_MAX).map(|at| format!("a{at} under r\n")).collect();
        let error = read(&format!("r above 0\n{wide}")).unwrap_err();
        assert_eq!(error, "trees/two, line 1025: there are more than 1024 inner nodes");
        let error = read(&"#".repeat(TREE_BYTES_MAX + 1)).unwrap_err();
        assert!(error.contains("the text has 1048577 bytes"), "{error}");
    }

    #[test]
    fn a_tree_over_other_nodes_is_refused() {
        let plan = TreePlan::from(read(TEXT).unwrap());
        let over = |count| plan.over(&nodes(count), &[], &nodes(count)).unwrap_err().to_string();
        assert_eq!(over(6), "trees/two: node 5 holds data, and is below no inner node");
        assert!(over(4).starts_with("trees/two: node 4, ") && over(4).contains("`there`"));
        let error = plan.over(&nodes(5), &[], &nodes(1)).unwrap_err().to_string();
        let expected = "validators of `here` are to live on node 1, which there is not";
        assert_eq!(error, format!("trees/two: {expected}"));
    }
}
