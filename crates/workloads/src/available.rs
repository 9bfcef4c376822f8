//! The workloads by name.

use std::sync::Arc;

use muesli::Procedures;
use muesli::procedures::builtin;
use thiserror::Error;

use crate::append::procedures::AppendProcedures;
use crate::append::{self, Append};
use crate::auctionmark::{self, AuctionMark};
use crate::bank::loan::{self, Loan};
use crate::bank::{self, Bank};
use crate::counter_service::{self, CounterService};
use crate::counters::{self, Counters};
use crate::delayed_adds;
use crate::epinions::{self, Epinions};
use crate::home::lists::{self, HomeLists};
use crate::home::records::{self, HomeRecords};
use crate::home::vacation::{self as home_vacation, HomeVacation};
use crate::marks;
use crate::objects::{self, Objects};
use crate::pairs::{self, Pairs};
use crate::parameters::{Parameter, ParameterError, Values};
use crate::queues::{self, Queues};
use crate::retwis::{self, Retwis};
use crate::sets::{self, Sets, StructureKind};
use crate::tpcc::procedures::TpccProcedures;
use crate::tpcc::{self, Tpcc};
use crate::tpcw::{self, Tpcw};
use crate::vacation::{self, Vacation};
use crate::workload::AnyWorkload;
use crate::ycsb::{self, Ycsb};

/// A workload as the command line knows it.
#[derive(Debug)]
pub struct Description {
    /// Its name.
    pub name: &'static str,
    /// What it does, in one sentence.
    pub about: &'static str,
    /// What it takes.
    pub parameters: &'static [Parameter],
    /// Parameters (`name=value`) with which it is small, for searches: runs of many seeds.
    pub small: &'static [&'static str],
    build: Build,
}

/// Makes a workload from its parameters, for so many clients.
type Build = fn(&Values, u32) -> Result<Arc<dyn AnyWorkload>, ParameterError>;

/// What makes most workloads small: few keys.
const SMALL: &[&str] = &["keys=30"];
/// The same for those whose keys are [objects](crate::calls).
const FEW_OBJECTS: &[&str] = &["objects=30"];

/// All workloads. Compiled where it is called, which is never inlined: each crate that names a
/// constant compiles all that it refers to, here every workload, once more; and a program of tests
/// compiles what its statics refer to, also where no test needs them.
#[inline(never)]
pub fn workloads() -> &'static [Description] {
    ALL
}

const ALL: &[Description] = &[
    Description {
        name: "bank",
        about: "Transfers between accounts; the total never changes.",
        parameters: bank::PARAMETERS,
        small: FEW_OBJECTS,
        build: |values, clients| Ok(Arc::new(Bank::new(values, clients)?)),
    },
    Description {
        name: "loan",
        about: "Accounts borrow from others, which borrow in turn; groups keep what they hold.",
        parameters: loan::PARAMETERS,
        small: FEW_OBJECTS,
        build: |values, clients| Ok(Arc::new(Loan::new(values, clients)?)),
    },
    Description {
        name: "ycsb",
        about: "YCSB A to F, and transactions of several reads, writes and scans.",
        parameters: ycsb::PARAMETERS,
        small: SMALL,
        build: |values, clients| Ok(Arc::new(Ycsb::new(values, clients)?)),
    },
    Description {
        name: "objects",
        about: "Objects of the thesis on deferred validation: updates on many nodes at once.",
        parameters: objects::PARAMETERS,
        small: objects::SMALL,
        build: |values, clients| Ok(Arc::new(Objects::new(values, clients)?)),
    },
    Description {
        name: "tpcc",
        about: "TPC-C: orders, payments and deliveries of a wholesale supplier.",
        parameters: tpcc::PARAMETERS,
        small: SMALL,
        build: |values, clients| Ok(Arc::new(Tpcc::new(values, clients)?)),
    },
    Description {
        name: "tpcc-procedures",
        about: "TPC-C as stored procedures, each transaction in one round.",
        parameters: tpcc::procedures::PARAMETERS,
        small: SMALL,
        build: |values, clients| Ok(Arc::new(TpccProcedures::new(values, clients)?)),
    },
    Description {
        name: "append",
        about: "Reads of and appends to lists, judged from the lists alone.",
        parameters: append::PARAMETERS,
        small: SMALL,
        build: |values, clients| Ok(Arc::new(Append::new(values, clients))),
    },
    Description {
        name: "append-procedures",
        about: "The same in one-round transactions, of which some may be refused.",
        parameters: append::procedures::ONE_ROUND_PARAMETERS,
        small: SMALL,
        build: |values, clients| Ok(Arc::new(AppendProcedures::new(values, clients))),
    },
    Description {
        name: "skiplist",
        about: "Searches, adds and removes in skip lists, node by node.",
        parameters: sets::SKIP_LIST_PARAMETERS,
        small: FEW_OBJECTS,
        build: |values, clients| {
            Ok(Arc::new(Sets::new(StructureKind::skip_list(values), values, clients)?))
        },
    },
    Description {
        name: "list",
        about: "The same in sorted linked lists, whose searches read half of them.",
        parameters: sets::LIST_PARAMETERS,
        small: FEW_OBJECTS,
        build: |values, clients| {
            Ok(Arc::new(Sets::new(StructureKind::list(values), values, clients)?))
        },
    },
    Description {
        name: "hashtable",
        about: "The same in hash tables, whose keys share buckets.",
        parameters: sets::HASH_TABLE_PARAMETERS,
        small: FEW_OBJECTS,
        build: |values, clients| {
            Ok(Arc::new(Sets::new(StructureKind::hash_table(values), values, clients)?))
        },
    },
    Description {
        name: "tree",
        about: "The same in binary search trees.",
        parameters: sets::PARAMETERS,
        small: FEW_OBJECTS,
        build: |values, clients| {
            Ok(Arc::new(Sets::new(StructureKind::tree(values), values, clients)?))
        },
    },
    Description {
        name: "queues",
        about: "Items that clients take from queues and put back; who finds none sleeps.",
        parameters: queues::PARAMETERS,
        small: queues::SMALL,
        build: |values, clients| Ok(Arc::new(Queues::new(values, clients)?)),
    },
    Description {
        name: "counters",
        about: "Many cold counters and a few hot ones, added to at once or by delayed actions.",
        parameters: counters::PARAMETERS,
        small: FEW_OBJECTS,
        build: |values, clients| Ok(Arc::new(Counters::new(values, clients)?)),
    },
    Description {
        name: "counter-procedures",
        about: "Counters at each repository, in one-round transactions: micro-benchmarks.",
        parameters: counter_service::PARAMETERS,
        small: SMALL,
        build: |values, clients| Ok(Arc::new(CounterService::new(values, clients))),
    },
    Description {
        name: "pairs",
        about: "Groups of counters that are used in pairs, which may change: for placements.",
        parameters: pairs::PARAMETERS,
        small: SMALL,
        build: |values, clients| Ok(Arc::new(Pairs::new(values, clients))),
    },
    Description {
        name: "vacation",
        about: "Reservations of cars, flights and rooms, as in STAMP.",
        parameters: vacation::PARAMETERS,
        small: SMALL,
        build: |values, clients| Ok(Arc::new(Vacation::new(values, clients))),
    },
    Description {
        name: "epinions",
        about: "EPinions: users review items and trust each other, by plans.",
        parameters: epinions::PARAMETERS,
        small: &["users=20", "items=12", "communities=3"],
        build: |values, clients| Ok(Arc::new(Epinions::new(values, clients)?)),
    },
    Description {
        name: "retwis",
        about: "ReTwis: users follow each other, tweet and read timelines, by plans.",
        parameters: retwis::PARAMETERS,
        small: &["users=30", "follows=3", "community=10"],
        build: |values, clients| Ok(Arc::new(Retwis::new(values, clients)?)),
    },
    Description {
        name: "tpcw",
        about: "TPC-W: an on-line bookstore of fourteen interactions, by plans.",
        parameters: tpcw::PARAMETERS,
        small: &["items=20", "customers=12", "communities=3", "mixing=20"],
        build: |values, clients| Ok(Arc::new(Tpcw::new(values, clients)?)),
    },
    Description {
        name: "auctionmark",
        about: "AuctionMark: users sell, bid, buy, ask and rate, by plans.",
        parameters: auctionmark::PARAMETERS,
        small: &["users=12", "items=4", "communities=3", "mixing=20"],
        build: |values, clients| Ok(Arc::new(AuctionMark::new(values, clients)?)),
    },
    Description {
        name: "home-lists",
        about: "Sorted lists, one a node; remote updates read another node's and write elsewhere.",
        parameters: lists::PARAMETERS,
        small: SMALL,
        build: |values, clients| Ok(Arc::new(HomeLists::new(values, clients))),
    },
    Description {
        name: "home-ycsb",
        about: "The same with small tables of records, all of which an update reads.",
        parameters: records::PARAMETERS,
        small: SMALL,
        build: |values, clients| Ok(Arc::new(HomeRecords::new(values, clients))),
    },
    Description {
        name: "home-vacation",
        about: "The same with travel agencies, whose resources are counted by delayed actions.",
        parameters: home_vacation::PARAMETERS,
        small: SMALL,
        build: |values, clients| Ok(Arc::new(HomeVacation::new(values, clients))),
    },
];

/// All procedures that workloads call, and those of the library that are always there.
pub fn procedures() -> Procedures {
    let counters = counter_service::procedures::procedures();
    let all = builtin::all().and(&counters).and(&append::procedures::procedures());
    let all = all.and(&tpcc::procedures::procedures()).and(&delayed_adds::procedures());
    let retwis = retwis::procedures().expect("each of ReTwis's plans is of one round");
    let epinions = epinions::procedures().expect("each of EPinions's plans is of one round");
    let tpcw = tpcw::procedures().expect("each of TPC-W's plans is of one round");
    let auctions = auctionmark::procedures().expect("each of AuctionMark's plans is of one round");
    let social = marks::procedures().and(&retwis).and(&epinions);
    all.and(&social).and(&tpcw).and(&auctions)
}

/// A workload that there is not.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("there is no workload `{name}`; there are: {all}")]
pub struct UnknownWorkload {
    name: String,
    /// Those that there are: to print an error is not to refer to all of them.
    all: String,
}

/// The workload called `name`.
///
/// # Errors
/// There is none.
pub fn find(name: &str) -> Result<&'static Description, UnknownWorkload> {
    let found = workloads().iter().find(|workload| workload.name == name);
    found.ok_or_else(|| {
        let all: Vec<_> = workloads().iter().map(|workload| workload.name).collect();
        UnknownWorkload { name: name.to_owned(), all: all.join(", ") }
    })
}

impl Description {
    /// Whether it has a parameter of this name.
    pub fn takes(&self, name: &str) -> bool {
        self.parameters.iter().any(|parameter| parameter.name == name)
    }

    /// Its parameters in searches.
    pub fn small_parameters(&self) -> Vec<String> {
        self.small.iter().map(|text| (*text).to_owned()).collect()
    }

    /// The workload with these parameters (`name=value`), for so many clients.
    ///
    /// # Errors
    /// A parameter that it does not take.
    pub fn build(
        &self,
        given: &[String],
        clients: u32,
    ) -> Result<Arc<dyn AnyWorkload>, ParameterError> {
        (self.build)(&Values::read(self.name, self.parameters, given)?, clients)
    }
}
