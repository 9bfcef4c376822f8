//! Whether the parts of a transaction are children of it: closed ones, which can be undone and run
//! again alone, or open ones, which commit before it does; or whichever of all that is the best; or
//! whether there are checkpoints between them.

mod choices;
pub(crate) mod open_layer;
pub mod roots;

use std::time::Duration;

use muesli::nesting_choice::NestingModel;
use muesli::open_nesting::{NestingCounts, NestingLimits, NestingSwitch};
use muesli::{Db, Error, Tx};
use muesli_core::NodeId;

use crate::parameters::{Parameter, ParameterError, ParameterKind, Values};
use choices::NodeChoices;
use open_layer::CountedLayers;

/// What workloads take whose parts can be undone after their commit, too.
pub const NESTING_OR_OPEN: Parameter = Parameter::new(
    "nesting",
    "flat",
    ParameterKind::Choice(&["flat", "closed", "checkpoints", "open", "auto"]),
    "Whether parts of a transaction are run again with all of it (flat), as children (closed), \
     from a checkpoint before each of them (checkpoints), or committed at once, under abstract \
     locks, and compensated if it is aborted (open); or as is found to be the best of flat, \
     closed and open (auto).",
);

/// What workloads take whose parts can be undone after their commit, but are mostly better not.
pub const NESTING_SELDOM_OPEN: Parameter = Parameter::new(
    "nesting",
    "flat",
    ParameterKind::Choice(&["flat", "closed", "checkpoints", "open", "auto", "auto-open"]),
    "Whether parts of a transaction are run again with all of it (flat), as children (closed), \
     from a checkpoint before each of them (checkpoints), or committed at once, under abstract \
     locks, and compensated if it is aborted (open); or as is found to be the better of flat and \
     closed (auto), or the best of all three (auto-open), where all look at the locks of those \
     that are open.",
);

/// How long others take a transaction with open children for one that is under way.
pub const PATIENCE: Parameter = Parameter::new(
    "patience",
    "20",
    ParameterKind::Count(1, 3_600_000),
    "Milliseconds without progress after which a transaction with open children is taken for \
     abandoned; to be longer than it takes between two of them.",
);

/// How the parts of a workload's transactions are run.
#[derive(Debug)]
pub struct NestingPlan {
    /// `None`: it is chosen while they run.
    model: Option<NestingModel>,
    /// And then it may be that of open children.
    chooses_open: bool,
    /// Whether there is a checkpoint before each part, which is no child.
    checkpoints: bool,
    /// See [`PATIENCE`].
    patience: Duration,
    choices: NodeChoices,
    /// Layers for open children.
    counted: CountedLayers,
    /// For tests: a rule of these that is broken, where they lock rows.
    broken: Option<NestingSwitch>,
}

impl NestingPlan {
    /// Transactions without parts.
    pub fn flat() -> NestingPlan {
        NestingPlan {
            model: Some(NestingModel::Flat),
            chooses_open: false,
            checkpoints: false,
            patience: Duration::ZERO,
            choices: NodeChoices::default(),
            counted: CountedLayers::default(),
            broken: None,
        }
    }

    /// As these parameters say.
    pub fn new(values: &Values) -> NestingPlan {
        let model = match values.word("nesting") {
            "closed" => Some(NestingModel::Closed),
            "open" => Some(NestingModel::Open),
            "auto" | "auto-open" => None,
            _ => Some(NestingModel::Flat),
        };
        let checkpoints = values.word("nesting") == "checkpoints";
        let chooses_open = values.word("nesting") == "auto-open";
        NestingPlan { model, chooses_open, checkpoints, ..NestingPlan::flat() }
    }

    /// The same, where parts may be open children.
    pub fn or_open(values: &Values) -> NestingPlan {
        NestingPlan { chooses_open: true, ..NestingPlan::seldom_open(values) }
    }

    /// The same, where they are not chosen to be unless that is asked for.
    pub fn seldom_open(values: &Values) -> NestingPlan {
        let patience = Duration::from_millis(values.count("patience"));
        NestingPlan { patience, ..NestingPlan::new(values) }
    }

    /// Whether others wait for a part as long as it takes besides its accesses.
    ///
    /// # Errors
    /// They do not, where parts may be open children.
    pub fn check_length(&self, part: Duration) -> Result<(), ParameterError> {
        if !self.may_be_open() || part < self.patience {
            return Ok(());
        }
        let (part, patience) = (part.as_secs_f64() * 1e3, self.patience.as_millis());
        let text = format!(
            "a transaction of which a part takes {part} ms is taken for abandoned after \
             {patience} ms: give more patience, or less length"
        );
        Err(ParameterError::Incompatible(text))
    }

    /// Whether a transaction may have so many parts.
    ///
    /// # Errors
    /// It may not, where they may be open children.
    pub fn check_children(&self, parts: u64) -> Result<(), ParameterError> {
        let NestingLimits { children, locks, .. } = NestingLimits::default();
        let most = children.min(locks) as u64;
        if !self.may_be_open() || parts <= most {
            return Ok(());
        }
        let text = format!(
            "a transaction of {parts} parts is too large for open children, of which it has \
             {most} at most: give fewer calls, or nesting=flat, closed or checkpoints"
        );
        Err(ParameterError::Incompatible(text))
    }

    /// For tests: breaks a rule of open children that lock rows.
    pub fn without(self, switch: NestingSwitch) -> NestingPlan {
        NestingPlan { broken: Some(switch), ..self }
    }

    /// The rule that is broken.
    pub(crate) fn broken(&self) -> Option<NestingSwitch> {
        self.broken
    }

    /// Whether transactions have no parts.
    pub fn is_flat(&self) -> bool {
        self.model == Some(NestingModel::Flat) && !self.checkpoints
    }

    /// Whether an attempt may go on in the middle of its body, which is run anew and answered as
    /// before up to there.
    pub fn has_checkpoints(&self) -> bool {
        self.checkpoints
    }

    /// Whether parts may be open children, which the workload runs then.
    pub fn may_be_open(&self) -> bool {
        self.model.map_or(self.chooses_open, |model| model == NestingModel::Open)
    }

    /// Runs a part of a transaction of a [handle](Self::handle). (Open children are run by the
    /// workload.)
    ///
    /// # Errors
    /// As the part.
    pub async fn run<T>(
        &self,
        tx: &Tx,
        part: impl AsyncFn(&Tx) -> Result<T, Error>,
    ) -> Result<T, Error> {
        match self.model {
            Some(NestingModel::Flat | NestingModel::Open) => {
                if self.checkpoints {
                    tx.checkpoint().await?;
                }
                part(tx).await
            }
            Some(NestingModel::Closed) | None => tx.nested(part).await,
        }
    }

    /// The handle for transactions of a node's clients at one place of the workload, which has a
    /// name. Nodes choose together at places of one name.
    pub fn handle(&self, node: NodeId, db: &Db, place: &'static str) -> Db {
        match self.model {
            Some(_) if self.checkpoints => db.with_checkpoints(),
            Some(_) => db.clone(),
            None => db.choosing(&self.choices.of(place, node, db)),
        }
    }

    /// What was chosen, and why, and what open children did.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = self.choices.notes();
        notes.extend(self.counted.notes());
        notes
    }

    /// What open children did, where there may be some.
    pub fn counts(&self) -> Option<NestingCounts> {
        self.counted.counts()
    }
}
