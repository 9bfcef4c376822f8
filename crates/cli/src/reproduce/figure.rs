//! What a figure is made of: what was run, what was claimed, what we aim at.

use muesli_core::Batching;
use muesli_core::catalog::TreePlan;
use muesli_workloads::machines::MachineModel;

use super::point::{Point, Quantity};

/// A figure of a paper, or a result that it tells in words.
#[derive(Clone, Copy)]
pub struct Figure {
    /// What it is called here.
    pub name: &'static str,
    /// What it shows.
    pub about: &'static str,
    /// The workload, and its parameters; `{nodes}` and `{clients}` in one stand for how many there
    /// are.
    pub workload: &'static str,
    pub parameters: &'static [&'static str],
    /// What is not printed in the paper and chosen here.
    pub chosen: &'static str,
    pub machine: fn() -> MachineModel,
    /// How many nodes there are, where the axis does not say.
    pub nodes: usize,
    /// How many instead with `--quick`, where that is something else; 0: as many.
    pub quick_nodes: usize,
    /// How many replicas a key has.
    pub replicas: usize,
    /// How many clients there are for each node, where the axis does not say.
    pub clients_a_node: u32,
    /// Settings of other figures, where this one sums them up: its axis numbers them, from 1.
    pub cases: &'static [SummedSetting],
    /// What changes from left to right, and its values; the second with `--quick`.
    pub axis: Axis,
    pub xs: &'static [f64],
    pub quick_xs: &'static [f64],
    /// What is drawn: what is compared, and what a theory says of one of these.
    pub lines: &'static [PlottedLine],
    pub models: &'static [Model],
    /// Committed transactions a second as a theory has them, to compare ratios of lines by it.
    pub theory: Option<fn(&Setting) -> f64>,
    /// Lines of which the best is set beside all others, place by place.
    pub baselines: &'static [&'static str],
    /// What is drawn upwards; and to the right, if it is something measured.
    pub shows: Quantity,
    pub against: Option<Quantity>,
    /// Whether equal steps upwards are equal factors.
    pub logarithmic: bool,
    /// What the paper prints of its lines, in numbers.
    pub printed: &'static [Printed],
    /// Share of transactions that update, for the share of *their* attempts that abort.
    pub updates: f64,
    /// How long clients run at each point, in virtual seconds; and with `--quick`. Each case of a
    /// summary has that of its figure.
    pub seconds: (f64, f64),
    /// How long they run before that without being measured; and with `--quick`.
    pub warm_up: (f64, f64),
    pub claims: &'static [PaperClaim],
}

/// What most figures have in common.
pub const NOTHING: Figure = Figure {
    name: "",
    about: "",
    workload: "",
    parameters: &[],
    chosen: "",
    machine: MachineModel::measured,
    nodes: 1,
    quick_nodes: 0,
    replicas: 2,
    clients_a_node: 1,
    cases: &[],
    axis: NODES,
    xs: &[],
    quick_xs: &[],
    lines: &[],
    models: &[],
    theory: None,
    baselines: &[],
    shows: Quantity::Throughput,
    against: None,
    logarithmic: false,
    printed: &[],
    updates: 1.0,
    seconds: (1.0, 0.25),
    warm_up: (0.0, 0.0),
    claims: &[],
};

/// A setting that a summary is made of: another figure at a value of its axis.
#[derive(Clone, Copy)]
pub struct SummedSetting {
    pub of: &'static Figure,
    pub x: f64,
}

/// A figure at a value of its axis.
pub const fn case(of: &'static Figure, x: f64) -> SummedSetting {
    SummedSetting { of, x }
}

impl Figure {
    /// What is run at a value of the axis: of a summary, another figure at a value of its own axis.
    pub fn at(&self, x: f64) -> (&Figure, f64) {
        let case = (x as usize).checked_sub(1).and_then(|number| self.cases.get(number));
        case.map_or((self, x), |case| (case.of, case.x))
    }

    /// What is run at a value of the axis, in words.
    pub fn place(&self, x: f64) -> String {
        let (of, at) = self.at(x);
        if self.cases.is_empty() { x.to_string() } else { format!("{x}: {} at {at}", of.name) }
    }

    /// The workloads of all that is run.
    pub fn workloads(&self) -> Vec<&'static str> {
        let mut all: Vec<_> = self.cases.iter().map(|case| case.of.workload).collect();
        all.sort_unstable();
        all.dedup();
        if all.is_empty() { vec![self.workload] } else { all }
    }
}

/// How one point is run.
#[derive(Clone, Debug)]
pub struct Setting {
    pub protocol: &'static str,
    pub machine: MachineModel,
    pub nodes: usize,
    /// How many nodes there are besides, which decide for the others.
    pub masters: usize,
    /// The tree that votes climb; `None`: a root above all, beside the first.
    pub tree: Option<TreePlan>,
    /// How many nodes with data each inner node of it covers, level by level from the leaves up,
    /// but for the root: for a theory.
    pub tree_spans: Vec<usize>,
    /// How many nodes there are besides, on which the tree's validators live.
    pub validator_nodes: usize,
    /// How many messages leave together over a link, and how long they wait for each other.
    pub batching: Batching,
    /// All of them; `None`: so many a node as the figure says.
    pub clients: Option<u32>,
    pub parameters: Vec<String>,
    /// How data are placed, in a figure about that.
    pub placement: PlacementSetting,
}

impl Setting {
    /// A figure's, at a value of its axis, under a protocol.
    pub fn of(figure: &Figure, protocol: &'static str, x: f64) -> Setting {
        let mut setting = Setting {
            protocol,
            machine: (figure.machine)(),
            nodes: figure.nodes,
            masters: 0,
            tree: None,
            tree_spans: Vec::new(),
            validator_nodes: 0,
            batching: Batching::default(),
            clients: None,
            parameters: figure.parameters.iter().map(|text| (*text).to_owned()).collect(),
            placement: PlacementSetting::default(),
        };
        (figure.axis.set)(x, &mut setting);
        setting
    }

    /// The value of a parameter of the workload, if it was given and is a number.
    pub fn number(&self, name: &str) -> Option<f64> {
        let given = self.parameters.iter().filter_map(|text| text.split_once('='));
        given.filter(|(given, _)| *given == name).find_map(|(_, value)| value.parse().ok())
    }

    /// Gives a parameter of the workload another value.
    pub fn put(&mut self, name: &str, value: f64) {
        self.parameters.retain(|given| given.split('=').next() != Some(name));
        self.parameters.push(format!("{name}={value}"));
    }
}

/// How a line of a figure places data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PlacedBy {
    /// As it is suggested from the trace; judged on transactions that nothing was learnt from.
    #[default]
    Suggestion,
    /// The same, judged on the transactions that it was learnt from.
    SuggestionInSample,
    /// The same columns, with units by a hash.
    Hash,
    /// By the scheme that is usual for the workload, with units in turn.
    Manual,
}

/// What a placement is learnt from, and how data are placed.
#[derive(Clone, Copy, Debug, Default)]
pub struct PlacementSetting {
    /// So many transactions.
    pub learnt: usize,
    pub by: PlacedBy,
}

/// What changes from left to right.
#[derive(Clone, Copy)]
pub struct Axis {
    /// What it is, with its unit.
    pub name: &'static str,
    /// Sets it.
    pub set: fn(f64, &mut Setting),
    /// The least and the most that it can be.
    pub range: (f64, f64),
    /// Whether equal steps are equal factors.
    pub logarithmic: bool,
}

/// How many nodes there are.
pub const NODES: Axis = Axis {
    name: "nodes",
    set: |x, setting| setting.nodes = x as usize,
    range: (1.0, 1_000.0),
    logarithmic: false,
};

/// The number of a summary's case.
pub const CASES: Axis =
    Axis { name: "setting", set: |_, _| (), range: (1.0, 100.0), logarithmic: false };

/// What is compared.
#[derive(Clone, Copy)]
pub struct PlottedLine {
    pub name: &'static str,
    pub protocol: &'static str,
    /// What else is special about it.
    pub set: fn(&mut Setting),
    /// What it shows, where that is something else than the figure says.
    pub shows: Option<Quantity>,
}

/// A line that is called as its protocol.
pub const fn protocol(name: &'static str) -> PlottedLine {
    line(name, name, |_| ())
}

/// A line with a name of its own.
pub const fn line(
    name: &'static str,
    protocol: &'static str,
    set: fn(&mut Setting),
) -> PlottedLine {
    PlottedLine { name, protocol, set, shows: None }
}

/// What a theory says of each point of a line.
#[derive(Clone, Copy)]
pub struct Model {
    pub name: &'static str,
    /// Of which line.
    pub of: &'static str,
    /// What is shown, by the point's setting and what was measured besides.
    pub predicts: fn(&Point) -> f64,
}

/// A line of a paper's figure, or a part of it, as far as the paper prints it in numbers.
#[derive(Clone, Copy)]
pub struct Printed {
    /// What it is called in the plot.
    pub name: &'static str,
    /// Where the paper says so.
    pub source: &'static str,
    /// The values of the axis at which it says something.
    pub xs: &'static [f64],
    /// What it says at such a value.
    pub predicts: PrintedAs,
}

/// How a paper says where a line is.
#[derive(Clone, Copy)]
pub enum PrintedAs {
    /// By a number at each value of the axis, in the unit of the figure.
    Number(fn(f64) -> f64),
    /// By the share of another line, here our own of this name.
    Share(&'static str, fn(f64) -> f64),
}

impl Printed {
    /// Where the line is, over our own points where the paper says so.
    pub fn places(&self, figure: &Figure, points: &[Point]) -> Vec<(f64, f64)> {
        let place = |x: f64| match self.predicts {
            PrintedAs::Number(predicts) => Some((x, predicts(x))),
            PrintedAs::Share(line, share) => {
                let ours = points.iter().find(|point| point.line == line && point.x == x)?;
                Some((x, share(x) * ours.shows(figure.shows)))
            }
        };
        self.xs.iter().filter_map(|x| place(*x)).collect()
    }
}

/// Something that the paper says about a figure.
#[derive(Clone, Copy)]
pub struct PaperClaim {
    pub what: &'static str,
    pub measure: Measure,
    /// What the paper says, in the unit of the measure; `None`: only in words.
    pub paper: Option<f64>,
    pub target: Option<ClaimTarget>,
}

/// A number made from a figure's points. Lines go by name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Measure {
    /// Throughput of the first over that of the second, at the right end.
    Speedup(&'static str, &'static str),
    /// Throughput lost by the first against the second, in percent: the geometric mean over all
    /// points.
    Loss(&'static str, &'static str),
    /// Attempts of updates that abort, in percent: the mean over all points.
    Aborts(&'static str),
    /// Committed transactions a second at the right end.
    Throughput(&'static str),
    /// The most committed transactions a second.
    Most(&'static str),
    /// Throughput a node at the right end over that at the left end.
    Scaling(&'static str),
    /// Throughput at the right end over that at the left end.
    Kept(&'static str),
    /// Throughput at the right end over the most.
    KeptOfMost(&'static str),
    /// The least value of the axis at which a line has 95 % of its most committed transactions a
    /// second.
    Saturates(&'static str),
    /// What a line shows at a value of the axis.
    At(Quantity, &'static str, f64),
    /// What a line shows at the first value of the axis over what it shows at the second.
    Within(Quantity, &'static str, f64, f64),
    /// What the first line shows over what the second shows, at a value of the axis.
    Over(Quantity, &'static str, &'static str, f64),
    /// The same at the first value of the axis over what it is at the second.
    OverWithin(Quantity, &'static str, &'static str, f64, f64),
    /// The most that a line shows over what the best of others shows at the same place.
    MostOverBest(Quantity, &'static str, &'static [&'static str]),
    /// The least that a line shows over that.
    LeastOverBest(Quantity, &'static str, &'static [&'static str]),
    /// The least that a line shows.
    LeastOf(Quantity, &'static str),
    /// The most that it shows.
    MostOf(Quantity, &'static str),
    /// What a line shows over what the model of this name says of it: the mean over all points.
    OverModel(&'static str),
    /// Of a summary, by workloads: what the first line shows over the second.
    Summary(SummaryMeasure, &'static str, &'static str),
}

/// A number made from the points of a summary, by the workload of each: of one line's throughput
/// over another one's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SummaryMeasure {
    /// What is lost in this workload, in percent: the geometric mean.
    Loss(&'static str),
    /// The mean of this workload over the best mean of the others.
    OverBest(&'static str),
    /// The mean of this workload over the least mean of the others.
    OverLeast(&'static str),
    /// The value of this parameter of this workload with the best mean, where figures have it as
    /// their axis.
    BestAt(&'static str, &'static str),
}

/// What we aim at.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ClaimTarget {
    Least(f64),
    Most(f64),
    /// From the first to the second.
    Between(f64, f64),
}

impl ClaimTarget {
    pub fn is_met(self, ours: f64) -> bool {
        match self {
            ClaimTarget::Least(least) => ours >= least,
            ClaimTarget::Most(most) => ours <= most,
            ClaimTarget::Between(least, most) => (least..=most).contains(&ours),
        }
    }
}

/// Something that the paper says.
pub const fn claim(
    what: &'static str,
    measure: Measure,
    paper: Option<f64>,
    target: Option<ClaimTarget>,
) -> PaperClaim {
    PaperClaim { what, measure, paper, target }
}
