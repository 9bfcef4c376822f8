//! AuctionMark: users sell items by auction, and bid, buy, ask and rate; all tables are by user,
//! and procedures are [plans].
//!
//! An item is at its seller, so bids, questions and ends are at one user; a purchase is at seller
//! and buyer, and so is a rating that a buyer is given. Users belong to communities, in which most
//! buyers of a seller are, by hashes of their numbers.
//!
//! There is no virtual time: an auction ends when a client ends it, one item at a time, and not all
//! that are due by one transaction; what a user has bought and watches has copies of what is shown.
//! A seller's items are numbered in the transaction that lists them.
//!
//! Deviation: a bid goes by the price that the client has seen last, as in BenchBase, and is
//! refused below the price that is; who was refused offers more the next time.
//! Deviation: UpdateItem takes an attribute away, and adds none; attributes are of any category.
//! Deviation: questions are asked by buyers of the seller's community, of items that were bought or
//! closed at first; ratings are given by those who bought and sold, and by nobody else.
//!
//! Source: BenchBase's auctionmark, with the semantics that it intends.

mod checks;
mod first;
mod ledger;
pub(crate) mod plans;
mod profiles;
mod rows;
pub(crate) mod tables;

pub use plans::procedures;

use std::collections::BTreeMap;
use std::sync::OnceLock;

use muesli::{Db, Error, SpaceOptions};

use self::plans::loads::{AuctionReference, LoadAuctionReference, LoadAuctionUser};
use self::plans::reading::OfAuction;
use crate::check::Check;
use crate::parameters::{Parameter, ParameterError, ParameterKind, Values};
use crate::per_client::PerClient;
use crate::tally::Ended;
use crate::workload::{Seat, Workload, load_by_plan};
use first::{CATEGORIES, FirstAuctions, GROUPS, REGIONS, VALUES};
use ledger::AuctionLedger;

/// What AuctionMark takes.
pub const PARAMETERS: &[Parameter] = &[
    Parameter::new("users", "2000", ParameterKind::Count(4, 1_000_000), "Users."),
    Parameter::new(
        "items",
        "100",
        ParameterKind::Count(1, 10_000),
        "The most items that a user sells at first; most sell one or two.",
    ),
    Parameter::new(
        "communities",
        "40",
        ParameterKind::Count(1, 100_000),
        "Communities that users belong to.",
    ),
    Parameter::new(
        "mixing",
        "5",
        ParameterKind::Percent,
        "Share of bids by users of all communities, and not of the seller's.",
    ),
    Parameter::new(
        "refused",
        "1",
        ParameterKind::Percent,
        "Share of purchases for which the buyer has too little money.",
    ),
    Parameter::new(
        "ends",
        "5",
        ParameterKind::Count(0, 1_000_000),
        "How often auctions are ended, beside 100 for all other profiles.",
    ),
];

/// The profiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AuctionProfile {
    Item,
    User,
    Bid,
    Comment,
    Answer,
    Rating,
    Listing,
    Purchase,
    Update,
    End,
}

/// How often each profile is, of a hundred.
const WEIGHTS: [(AuctionProfile, u64); 9] = [
    (AuctionProfile::Item, 45),
    (AuctionProfile::User, 10),
    (AuctionProfile::Bid, 20),
    (AuctionProfile::Comment, 2),
    (AuctionProfile::Answer, 1),
    (AuctionProfile::Rating, 4),
    (AuctionProfile::Listing, 10),
    (AuctionProfile::Purchase, 5),
    (AuctionProfile::Update, 3),
];

/// AuctionMark with its parameters.
#[derive(Debug)]
pub struct AuctionMark {
    first: FirstAuctions,
    refused: f64,
    ends: u64,
    ledgers: PerClient<AuctionLedger>,
    /// How many items each user had bought at first.
    bought_first: OnceLock<BTreeMap<u64, usize>>,
}

/// What a client remembers of items that it has to do with.
#[derive(Clone, Debug, Default)]
pub struct KnownAuctions {
    open: Vec<OfAuction>,
    /// The prices that it has seen last.
    prices: BTreeMap<OfAuction, i64>,
    waiting: Vec<OfAuction>,
    /// With the buyer.
    bought: Vec<(OfAuction, u64)>,
    /// Comments that were not answered, by number.
    comments: Vec<(OfAuction, u32)>,
}

impl AuctionMark {
    /// AuctionMark with these parameters, for so many clients.
    ///
    /// # Errors
    /// More communities than users.
    pub fn new(values: &Values, clients: u32) -> Result<AuctionMark, ParameterError> {
        values.refuse_empty_communities("users")?;
        let first = FirstAuctions {
            users: values.count("users"),
            items: values.count("items") as u32,
            communities: values.count("communities"),
            mixing: values.number("mixing"),
        };
        Ok(AuctionMark {
            first,
            refused: values.number("refused"),
            ends: values.count("ends"),
            ledgers: PerClient::new(clients, |_| AuctionLedger::default()),
            bought_first: OnceLock::new(),
        })
    }
}

impl Workload for AuctionMark {
    type Memory = KnownAuctions;

    fn spaces(&self, _: usize) -> Vec<(&'static str, SpaceOptions)> {
        tables::spaces()
    }

    fn is_one_round(&self) -> bool {
        true
    }

    async fn load(&self, db: &Db) -> Result<(), Error> {
        let of_group = |group| (0..VALUES).map(move |value| (group, value));
        let values = (0..GROUPS).flat_map(of_group);
        let reference = AuctionReference {
            regions: (0..REGIONS).map(|it| (it, FirstAuctions::region(it))).collect(),
            categories: (0..CATEGORIES).map(|it| (it, FirstAuctions::category(it))).collect(),
            groups: (0..GROUPS).map(|it| (it, FirstAuctions::group(it))).collect(),
            values: values.map(|it| (it.0, it.1, FirstAuctions::value(it.0, it.1))).collect(),
        };
        load_by_plan::<LoadAuctionReference>(db, vec![reference]).await?;
        load_by_plan::<LoadAuctionUser>(db, self.first.all()).await
    }

    fn begin(&self, seat: &mut Seat) -> Result<KnownAuctions, Error> {
        self.ledgers.of(seat.client).begin_incarnation();
        Ok(KnownAuctions::default())
    }

    async fn transact(&self, seat: &mut Seat, known: &mut KnownAuctions) -> (Ended, u32) {
        let mut at = seat.chance.below(100 + self.ends);
        let profile = WEIGHTS.iter().find(|(_, weight)| {
            let is_it = at < *weight;
            at = at.saturating_sub(*weight);
            is_it
        });
        match profile.map_or(AuctionProfile::End, |it| it.0) {
            AuctionProfile::Item => self.look_at_item(seat, known).await,
            AuctionProfile::User => self.look_at_user(seat).await,
            AuctionProfile::Bid => self.bid(seat, known).await,
            AuctionProfile::Comment => self.comment(seat, known).await,
            AuctionProfile::Answer => self.answer(seat, known).await,
            AuctionProfile::Rating => self.rate(seat, known).await,
            AuctionProfile::Listing => self.list(seat, known).await,
            AuctionProfile::Purchase => self.purchase(seat, known).await,
            AuctionProfile::Update => self.update(seat, known).await,
            AuctionProfile::End => self.end(seat, known).await,
        }
    }

    async fn check(&self, db: &Db) -> Result<Vec<Check>, Error> {
        checks::check(self, db).await
    }
}
