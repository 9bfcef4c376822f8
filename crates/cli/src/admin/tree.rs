//! The tree of a running cluster, with what each validator does; and another tree for it.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use muesli_cluster::lifecycle::visit::{self, Visited};
use muesli_cluster::spaces::map::Map;
use muesli_core::catalog::{Hierarchy, InnerNode, TreePlan};
use muesli_core::{NodeId, RepositoryId, Secret};
use muesli_group::layout;
use serde_json::{Value as Json, json};

use super::survey::Survey;
use crate::reach::{self, WITHIN};
use crate::table;

/// How long all servers may take to hear of another tree.
const PATIENCE: Duration = Duration::from_secs(20);
/// How often is looked whether they have.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// What a validator counts, by name; of the first ones the table has how many in a second.
const COUNTED: [&str; 6] = ["merged", "passed-up", "passed-down", "decided", "dropped", "waiting"];
const RATES: usize = 4;

/// The tree of a cluster, and where what is below it lives.
struct TreeMap {
    tree: Hierarchy,
    /// `None`: nothing was said of a tree, and there is a root above all.
    epoch: Option<u64>,
    /// Where each leaf lives, or is named by: a repository, or a group.
    homes: Vec<NodeId>,
    leaf: &'static str,
    servers: Vec<(NodeId, String)>,
}

/// What the validators did within a time.
struct ValidatorLoad {
    before: Vec<(NodeId, Option<Visited>)>,
    after: Vec<(NodeId, Option<Visited>)>,
}

/// A row of the drawing.
struct TreeRow {
    /// The lines of the drawing before its name.
    branch: String,
    name: String,
    node: NodeId,
    /// The number of the validator; none: it is a leaf.
    validator: Option<u16>,
}

/// Draws the tree of the cluster that one of these addresses belongs to, with what its validators
/// do in so many seconds.
///
/// # Errors
/// No server answers, or the cluster has no validators.
pub fn show(addresses: &[String], seconds: f64, as_json: bool) -> anyhow::Result<String> {
    if !(0.1..=3_600.0).contains(&seconds) {
        bail!("--seconds {seconds}: allowed are numbers from 0.1 to 3600");
    }
    let map = Map::try_from(reach::first(addresses)?.welcome.map)?;
    let tree = TreeMap::of(&map)?;
    let before = tree.ask();
    std::thread::sleep(Duration::from_secs_f64(seconds));
    let load = ValidatorLoad { before, after: tree.ask() };
    if tree.epoch.is_none() && load.of(tree.tree.homes(0)[0], 0).is_none() {
        bail!(
            "the cluster has no tree, and no validators: `hierarchy` and `hierarchy-locking` go \
             by one"
        );
    }
    match as_json {
        true => Ok(serde_json::to_string_pretty(&tree.json(&load))?),
        false => Ok(tree.draw(&load)),
    }
}

/// Gives a running cluster another tree, or none, and waits until all servers that answer go by it.
///
/// # Errors
/// The tree does not fit the cluster, somebody was faster, or a server does not take it.
pub fn set(
    addresses: &[String],
    secret: Option<&Secret>,
    tree: Option<&TreePlan>,
    apart: &[NodeId],
) -> anyhow::Result<String> {
    let survey = Survey::of(addresses, secret)?;
    survey.prove()?;
    let map = Map::try_from(survey.map.clone())?;
    let next = map.with_next_tree(tree, apart)?;
    let (epoch, text) = (next.catalog.tree_epoch, next.tree_text());
    survey.tell_map(&(&next).into())?;
    let deadline = Instant::now() + PATIENCE;
    for server in survey.servers.iter().filter(|server| server.answer.is_some()) {
        loop {
            let visited = visit::status(&server.address, WITHIN);
            let known = visited.as_ref().ok().and_then(|it| it.status_of("tree"));
            if known.is_some_and(|known| known >= epoch) {
                break;
            }
            if Instant::now() > deadline {
                bail!("node {} has not heard of the tree of epoch {epoch}", server.node.0);
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }
    let now = Map::try_from(reach::first(addresses)?.welcome.map)?;
    if now.catalog.tree_epoch != epoch || now.catalog.hierarchy != next.catalog.hierarchy {
        bail!("somebody else has set a tree meanwhile: {}", now.tree_text());
    }
    Ok(format!("the tree of epoch {epoch} is {text}"))
}

impl TreeMap {
    fn of(map: &Map) -> anyhow::Result<TreeMap> {
        let (homes, leaf) = match map.group > 1 {
            true => (layout::inner(&map.catalog).homes.to_vec(), "group"),
            false => (map.catalog.homes.to_vec(), "repository"),
        };
        let tree = match &map.catalog.hierarchy {
            Some(tree) => (**tree).clone(),
            None => Hierarchy::new(vec![InnerNode::new(homes[0], None)], vec![0; homes.len()])?,
        };
        let epoch = Some(map.catalog.tree_epoch).filter(|epoch| *epoch > 0);
        let servers = map.there().cloned().collect();
        Ok(TreeMap { tree, epoch, homes, leaf, servers })
    }

    /// What each node says on which validators live; none: it does not answer.
    fn ask(&self) -> Vec<(NodeId, Option<Visited>)> {
        let visit = |node: NodeId| {
            let (_, address) = self.servers.iter().find(|(server, _)| *server == node)?;
            visit::status(address, WITHIN).ok()
        };
        self.tree.nodes().into_iter().map(|node| (node, visit(node))).collect()
    }

    fn leaves(&self, inner: u16) -> impl Iterator<Item = u16> + '_ {
        (0..self.homes.len() as u16).filter(move |it| self.tree.above(RepositoryId(*it)) == inner)
    }

    fn children(&self, inner: Option<u16>) -> Vec<u16> {
        (0..self.tree.inner_nodes()).filter(|it| self.tree.parent(*it) == inner).collect()
    }

    /// A table with a row for each validator and each leaf.
    fn draw(&self, load: &ValidatorLoad) -> String {
        let counted =
            ["merged/s", "passed up/s", "passed down/s", "decided/s", "dropped", "waiting"];
        let header = [&["tree", "node"], &counted[..]].concat();
        let mut table = table::new(header.into_iter().map(str::to_owned).collect());
        let mut rows = Vec::new();
        for root in self.children(None) {
            self.rows(root, "", "", &mut rows);
        }
        for TreeRow { branch, name, node, validator } in rows {
            let numbers = match validator.map(|number| load.of(node, number)) {
                Some(Some((rates, numbers))) => {
                    let rates = rates.map(|rate| table::grouped(rate.round() as u64)).to_vec();
                    [&rates[..], &numbers.map(table::grouped)[RATES..]].concat()
                }
                Some(None) => vec!["-".to_owned(); COUNTED.len()],
                None => vec![String::new(); COUNTED.len()],
            };
            let start = [format!("{branch}{name}"), node.0.to_string()];
            table.add_row(start.into_iter().chain(numbers));
        }
        let mut text = match self.epoch {
            Some(epoch) => format!("tree of epoch {epoch}"),
            None => "no tree was set: a root above all".to_owned(),
        };
        let (inner, validators) = (self.tree.inner_nodes(), self.tree.validators());
        // Writing to a string cannot fail.
        let _ = write!(text, "; inner nodes: {inner}, validators: {validators}\n{table}");
        text
    }

    /// The rows of an inner node and of all below it; `first` is drawn before its first row, and
    /// `further` before the others.
    fn rows(&self, inner: u16, first: &str, further: &str, rows: &mut Vec<TreeRow>) {
        let (homes, children) = (self.tree.homes(inner), self.children(Some(inner)));
        for (share, node) in (0..).zip(homes) {
            let (branch, name) = match share {
                0 => (first.to_owned(), format!("inner node {inner}")),
                _ => (format!("{further}│ "), format!("share {} of {}", share + 1, homes.len())),
            };
            let validator = Some(self.tree.validator(inner, share));
            rows.push(TreeRow { branch, name, node: *node, validator });
        }
        let leaves: Vec<_> = self.leaves(inner).collect();
        let below = children.len() + leaves.len();
        let lines = |at: usize| match at + 1 == below {
            true => (format!("{further}└─ "), format!("{further}   ")),
            false => (format!("{further}├─ "), format!("{further}│  ")),
        };
        for (at, child) in children.iter().enumerate() {
            let (first, further) = lines(at);
            self.rows(*child, &first, &further, rows);
        }
        for (at, leaf) in leaves.iter().enumerate() {
            let (branch, _) = lines(children.len() + at);
            let (name, node) = (format!("{} {leaf}", self.leaf), self.homes[usize::from(*leaf)]);
            rows.push(TreeRow { branch, name, node, validator: None });
        }
    }

    fn json(&self, load: &ValidatorLoad) -> Json {
        let validator = |inner: u16, share: u16, node: NodeId| {
            let number = self.tree.validator(inner, share);
            let mut printed = json!({ "validator": number, "node": node.0 });
            if let Some((rates, numbers)) = load.of(node, number) {
                let rates = COUNTED.iter().zip(rates);
                let rates = rates.map(|(name, rate)| (format!("{name}-per-second"), json!(rate)));
                let numbers = COUNTED.iter().zip(numbers);
                let numbers = numbers.map(|(name, count)| ((*name).to_owned(), json!(count)));
                printed.as_object_mut().expect("it is one").extend(rates.chain(numbers));
            }
            printed
        };
        let leaf = |it: u16| json!({ self.leaf: it, "node": self.homes[usize::from(it)].0 });
        let inner = |inner: u16| {
            let homes = (0..).zip(self.tree.homes(inner));
            json!({
                "inner": inner,
                "parent": self.tree.parent(inner),
                "validators":
                    homes.map(|(share, node)| validator(inner, share, *node)).collect::<Vec<_>>(),
                "leaves": self.leaves(inner).map(leaf).collect::<Vec<_>>(),
            })
        };
        let inner: Vec<_> = (0..self.tree.inner_nodes()).map(inner).collect();
        json!({ "epoch": self.epoch, "seconds": load.seconds(), "inner": inner })
    }
}

impl ValidatorLoad {
    /// What a validator did each second, and what it has counted in all; none if its node does not
    /// answer, or has no such validator.
    fn of(&self, node: NodeId, validator: u16) -> Option<([f64; RATES], [u64; COUNTED.len()])> {
        let count_of = |all: &[(NodeId, Option<Visited>)], what: &str| {
            let (_, visited) = all.iter().find(|(it, _)| *it == node)?;
            visited.as_ref()?.status_of(what)
        };
        let name = |what: &str| format!("validator-{validator}-{what}");
        let passed = |what: &str| {
            let (before, after) = (count_of(&self.before, what)?, count_of(&self.after, what)?);
            Some(after.saturating_sub(before))
        };
        let seconds = passed("time-ms").filter(|ms| *ms > 0)? as f64 / 1e3;
        let mut rates = [0.0; RATES];
        for (rate, what) in rates.iter_mut().zip(COUNTED) {
            *rate = passed(&name(what))? as f64 / seconds;
        }
        let mut numbers = [0; COUNTED.len()];
        for (number, what) in numbers.iter_mut().zip(COUNTED) {
            *number = count_of(&self.after, &name(what))?;
        }
        Some((rates, numbers))
    }

    /// How long the first node that answers was looked at.
    fn seconds(&self) -> Option<f64> {
        let count_of = |all: &[(NodeId, Option<Visited>)]| {
            all.iter().find_map(|(_, it)| it.as_ref()?.status_of("time-ms"))
        };
        Some(count_of(&self.after)?.checked_sub(count_of(&self.before)?)? as f64 / 1e3)
    }
}

/// The tree that the text of a command names; `none` is none.
///
/// # Errors
/// It names none.
pub fn plan(text: &str, validators: u16) -> anyhow::Result<Option<TreePlan>> {
    if text == "none" {
        return Ok(None);
    }
    let form = crate::config::tree_form::form(text).map_err(anyhow::Error::msg);
    let form = form.with_context(|| format!("`{text}` is no tree, nor `none`"))?;
    Ok(Some(TreePlan { form, validators }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_is_drawn_with_a_row_for_each_validator_and_leaf() {
        let inner = |homes: &[u32], parent| InnerNode {
            homes: homes.iter().copied().map(NodeId).collect(),
            parent,
        };
        let all = vec![inner(&[0], None), inner(&[0, 1], Some(0)), inner(&[2], Some(0))];
        let map = TreeMap {
            tree: Hierarchy::new(all, vec![1, 1, 2]).unwrap(),
            epoch: Some(3),
            homes: (0..3).map(NodeId).collect(),
            leaf: "repository",
            servers: Vec::new(),
        };
        let load = ValidatorLoad { before: map.ask(), after: map.ask() };
        let drawn = map.draw(&load);
        // Behind the title, the header and the lines around it.
        let rows =
            drawn.lines().skip(4).map(|row| row.chars().skip(1).take(20).collect::<String>());
        let names: Vec<_> = rows.take(7).map(|name| name.trim_end().to_owned()).collect();
        let expected = [
            "inner node 0",
            "├─ inner node 1",
            "│  │ share 2 of 2",
            "│  ├─ repository 0",
            "│  └─ repository 1",
            "└─ inner node 2",
            "   └─ repository 2",
        ];
        assert_eq!(names, expected, "{drawn}");
        assert!(drawn.starts_with("tree of epoch 3; inner nodes: 3, validators: 4"), "{drawn}");
        let json = map.json(&load);
        assert_eq!(
            (&json["epoch"], &json["inner"][1]["validators"][1]["node"]),
            (&3.into(), &1.into())
        );
        assert_eq!(json["inner"][2]["leaves"][0]["repository"], 2);
        assert_eq!(json["inner"][2]["validators"][0].get("merged-per-second"), None);
    }
}
