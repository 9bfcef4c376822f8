//! EPinions: users review items and trust each other; nine profiles, of which four overwrite one
//! thing each, and no placement makes all of them local.
//!
//! Reviews are kept by item and by user, so that either end finds them; users and items belong to
//! communities, in which most reviews and trust are, by hashes of their numbers. Procedures are
//! [plans].
//!
//! Source: BenchBase's epinions; ids are drawn in a community, and not over all.

mod checks;
mod first;
mod ledger;
pub(crate) mod plans;
mod structure;
pub(crate) mod tables;

use std::collections::BTreeSet;
use std::sync::OnceLock;

use muesli::plans::{PlannedProcedure, PlannedProcedureError, with};
use muesli::{Db, Error, Procedures, SpaceOptions};

use self::plans::{
    CHANGED, ItemAverage, ItemReviews, LoadItem, LoadPerson, NameUser, NewRating, NewText, OfOne,
    OfTrusted, RateReview, RateTrust, RatingSum, ReadTrust, SHOWN, ShownReviews, TitleItem,
    TrustedAverage, TrustedReviews, UserReviews,
};
use crate::check::Check;
use crate::distribution::fnv_hash;
use crate::parameters::{Parameter, ParameterError, ParameterKind, Values};
use crate::per_client::PerClient;
use crate::tally::Ended;
use crate::workload::{CallAttempts, Seat, Workload, call_plan, ended, load_by_plan};
use ledger::{EpinionsLedger, EpinionsRow};
use structure::ReviewStructure;

/// What EPinions takes.
pub const PARAMETERS: &[Parameter] = &[
    Parameter::new("users", "2000", ParameterKind::Count(4, 1_000_000), "Users."),
    Parameter::new("items", "1000", ParameterKind::Count(2, 1_000_000), "Items."),
    Parameter::new(
        "communities",
        "40",
        ParameterKind::Count(1, 100_000),
        "Communities that users and items belong to.",
    ),
    Parameter::new(
        "mixing",
        "5",
        ParameterKind::Percent,
        "Share of reviews, trust and questions that are drawn among all, and not in a community.",
    ),
    Parameter::new(
        "reads",
        "50",
        ParameterKind::Percent,
        "Share of the five profiles that read, in equal parts; of the others trust has two fifths.",
    ),
];

/// EPinions with its parameters.
#[derive(Debug)]
pub struct Epinions {
    users: u64,
    items: u64,
    communities: u64,
    mixing: f64,
    reads: f64,
    ledgers: PerClient<EpinionsLedger>,
    structure: OnceLock<ReviewStructure>,
}

/// So often a question is asked of trust that changes meanwhile.
const ROUNDS: u32 = 20;

/// The plans.
///
/// # Errors
/// One of them cannot be in one round.
pub fn procedures() -> Result<Procedures, PlannedProcedureError> {
    let all = with::<LoadItem>(with::<LoadPerson>(Procedures::default())?)?;
    let all = with::<ItemAverage>(with::<UserReviews>(with::<ItemReviews>(all)?)?)?;
    let all = with::<TrustedReviews>(with::<TrustedAverage>(with::<ReadTrust>(all)?)?)?;
    let all = with::<RateReview>(with::<TitleItem>(with::<NameUser>(all)?)?)?;
    with::<RateTrust>(all)
}

impl Epinions {
    /// EPinions with these parameters, for so many clients.
    ///
    /// # Errors
    /// More communities than users or items.
    pub fn new(values: &Values, clients: u32) -> Result<Epinions, ParameterError> {
        values.refuse_empty_communities("users")?;
        values.refuse_empty_communities("items")?;
        Ok(Epinions {
            users: values.count("users"),
            items: values.count("items"),
            communities: values.count("communities"),
            mixing: values.number("mixing"),
            reads: values.number("reads"),
            ledgers: PerClient::new(clients, |_| EpinionsLedger::default()),
            structure: OnceLock::new(),
        })
    }

    fn community(&self, number: u64) -> u64 {
        fnv_hash(number) % self.communities
    }

    /// Who reviewed what and trusts whom, which never changes.
    fn structure(&self) -> &ReviewStructure {
        self.structure.get_or_init(|| {
            let (users, items) = self.first();
            ReviewStructure::new(&users, &items)
        })
    }
}

impl Workload for Epinions {
    type Memory = ();

    fn spaces(&self, _: usize) -> Vec<(&'static str, SpaceOptions)> {
        tables::spaces()
    }

    fn is_one_round(&self) -> bool {
        true
    }

    async fn load(&self, db: &Db) -> Result<(), Error> {
        let (users, items) = self.first();
        load_by_plan::<LoadPerson>(db, users).await?;
        load_by_plan::<LoadItem>(db, items).await
    }

    fn begin(&self, seat: &mut Seat) -> Result<(), Error> {
        self.ledgers.of(seat.client).begin_incarnation();
        Ok(())
    }

    async fn transact(&self, seat: &mut Seat, (): &mut ()) -> (Ended, u32) {
        let item = seat.chance.between(1, self.items);
        let near = self.community(!item);
        let user = self.draw(self.users, |user| user, near, &mut seat.chance);
        match seat.chance.percent(self.reads) {
            true => self.look(seat, item, user).await,
            false => self.overwrite(seat, item, user).await,
        }
    }

    async fn check(&self, db: &Db) -> Result<Vec<Check>, Error> {
        checks::check(self, db).await
    }
}

impl Epinions {
    /// Profiles 1 to 5.
    async fn look(&self, seat: &mut Seat, item: u64, user: u64) -> (Ended, u32) {
        let (db, several) = (seat.db.read_only(), &mut seat.several);
        let of_item = || self.structure().reviewers(item);
        match seat.chance.below(5) {
            0 => {
                let (shown, attempts) =
                    call_plan::<ItemReviews>(&db, several, &OfOne { of: item }).await;
                self.judge::<ItemReviews>(seat.client, &shown, item, |shown| {
                    is_whole(shown, 128, of_item())
                });
                (ended(shown), attempts)
            }
            1 => {
                let (shown, attempts) =
                    call_plan::<UserReviews>(&db, several, &OfOne { of: user }).await;
                let of_user = || self.structure().reviewed_by(user);
                self.judge::<UserReviews>(seat.client, &shown, user, |shown| {
                    is_whole(shown, 24, of_user())
                });
                (ended(shown), attempts)
            }
            2 => {
                let of = OfOne { of: item };
                let (average, attempts) = call_plan::<ItemAverage>(&db, several, &of).await;
                self.judge::<ItemAverage>(seat.client, &average, item, |it| {
                    it.0 == of_item().len() as u64
                });
                (ended(average), attempts)
            }
            3 => {
                let is_right = |average: &RatingSum, trusted: &BTreeSet<u64>| {
                    average.0 == of_item().intersection(trusted).count() as u64
                };
                self.of_trusted::<TrustedAverage>(seat, &db, (item, user), is_right).await
            }
            _ => {
                let is_right = |reviews: &Vec<(u64, u16)>, _: &BTreeSet<u64>| {
                    reviews.iter().map(|it| it.0).eq(of_item().iter().copied())
                };
                self.of_trusted::<TrustedReviews>(seat, &db, (item, user), is_right).await
            }
        }
    }

    /// Complains of an answer about something that no moment can have given.
    fn judge<P: PlannedProcedure<Answer: std::fmt::Debug>>(
        &self,
        client: u32,
        answer: &Result<P::Answer, Error>,
        of: u64,
        is_right: impl FnOnce(&P::Answer) -> bool,
    ) {
        let mut ledger = self.ledgers.of(client);
        ledger.wrong_answers.judge(format_args!("{} of {of}", P::NAME), answer, is_right);
    }

    /// Reads whom a user trusts, and asks about an item; again, where that has changed by then.
    async fn of_trusted<P: PlannedProcedure<Arguments = OfTrusted, Answer: std::fmt::Debug>>(
        &self,
        seat: &mut Seat,
        db: &Db,
        (item, user): (u64, u64),
        is_right: impl Fn(&P::Answer, &BTreeSet<u64>) -> bool,
    ) -> (Ended, u32) {
        let trusted = self.structure().trusted_by(user);
        let mut all_attempts = CallAttempts::default();
        for _ in 0..ROUNDS {
            let of = OfOne { of: user };
            let (trust, attempts) = call_plan::<ReadTrust>(db, &mut seat.several, &of).await;
            all_attempts.add(attempts);
            self.judge::<ReadTrust>(seat.client, &trust, user, |trust| {
                trust.trusted.iter().map(|it| it.0).eq(trusted.iter().copied())
            });
            let trust = match trust {
                Ok(trust) => trust,
                Err(error) => return (ended::<()>(Err(error)), all_attempts.all()),
            };
            let asked = OfTrusted { item, user, trust };
            let (answer, attempts) = call_plan::<P>(db, &mut seat.several, &asked).await;
            all_attempts.add(attempts);
            if !matches!(&answer, Err(Error::Refused(why)) if why == CHANGED) {
                let is_right = |answer: &P::Answer| is_right(answer, trusted);
                self.judge::<P>(seat.client, &answer, item, is_right);
                return (ended(answer), all_attempts.all());
            }
            all_attempts.begin_anew();
        }
        (Ended::RolledBack, all_attempts.all())
    }

    /// Profiles 6 to 9, of which the last one has two fifths.
    async fn overwrite(&self, seat: &mut Seat, item: u64, user: u64) -> (Ended, u32) {
        let (kind, drawn) = (seat.chance.below(5), seat.chance.below(1 << 20));
        let (db, client) = (seat.db.clone(), seat.client);
        let set_out = |row| self.ledgers.of(client).set_out(row, drawn);
        let several = &mut seat.several;
        let (number, is_there, attempts) = match kind {
            0 => {
                set_out(EpinionsRow::Name(user));
                let new = NewText { of: user, text: Epinions::name(user, drawn) };
                let (done, attempts) = call_plan::<NameUser>(&db, several, &new).await;
                (done, true, attempts)
            }
            1 => {
                set_out(EpinionsRow::Title(item));
                let new = NewText { of: item, text: Epinions::title(item, drawn) };
                let (done, attempts) = call_plan::<TitleItem>(&db, several, &new).await;
                (done, true, attempts)
            }
            2 => {
                set_out(EpinionsRow::Review(item, user));
                let new = NewRating { by: user, of: item, rating: Epinions::rating(drawn) };
                let (done, attempts) = call_plan::<RateReview>(&db, several, &new).await;
                (done, self.structure().reviewers(item).contains(&user), attempts)
            }
            _ => {
                let near = self.community(user);
                let of = self.draw(self.users, |user| user, near, &mut seat.chance);
                set_out(EpinionsRow::Trust(user, of));
                let new = NewRating { by: user, of, rating: Epinions::trust(drawn) };
                let (done, attempts) = call_plan::<RateTrust>(&db, several, &new).await;
                (done, self.structure().trusted_by(user).contains(&of), attempts)
            }
        };
        let is_right = |number: &Option<u64>| number.is_some() == is_there;
        self.ledgers.of(client).wrong_answers.judge(format_args!("of {user}"), &number, is_right);
        let (found, ended) = (number.as_ref().ok().copied().flatten(), ended(number));
        self.ledgers.of(client).settle(&ended, found);
        (ended, attempts)
    }
}

/// Whether a text has so many letters, and the reviews are the best ones of these, in order.
fn is_whole((text, reviews): &ShownReviews, letters: usize, of: &BTreeSet<u64>) -> bool {
    let ordered = reviews.windows(2).all(|pair| pair[0].1 >= pair[1].1);
    let known = reviews.iter().all(|it| of.contains(&it.0));
    text.len() == letters && ordered && known && reviews.len() == of.len().min(SHOWN)
}
