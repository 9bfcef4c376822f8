//! ReTwis: users follow each other, tweet, and read what those have tweeted whom they follow.
//!
//! The application on a key-value store, with tweets written to all timelines that show them; all
//! tables are by user, and procedures are [plans]. Users belong to communities, in which most ties
//! are, so that there is something to find for who places them; by which numbers users are of one
//! community nobody can tell.
//!
//! Instead of counters of users and tweets, which all would write, clients give numbers of their
//! own; there is no public timeline.
//!
//! Source: ReTwis of antirez; the mix is that of the TAPIR code.

mod checks;
mod followers;
mod ledger;
pub(crate) mod plans;
pub(crate) mod tables;

use muesli::plans::{PlannedProcedureError, with};
use muesli::{Db, Error, Procedures, SpaceOptions};

use self::plans::{
    CHANGED, Follow, LoadUser, LoadedUser, NewUser, OfUser, ReadFollowers, ReadTimeline,
    RegisterUser, SentTweet, Shown, Tie, TweetWithFollowers, Unfollow,
};
use crate::chance::Chance;
use crate::check::Check;
use crate::distribution::{Zipfian, fnv_hash};
use crate::parameters::{Parameter, ParameterError, ParameterKind, Values};
use crate::per_client::PerClient;
use crate::tally::Ended;
use crate::workload::{CallAttempts, Seat, Workload, call_plan, ended, load_by_plan};
use ledger::{FollowerChange, RetwisLedger, RetwisUpdate};
use tables::{NOBODY, name, text};

/// What ReTwis takes.
pub const PARAMETERS: &[Parameter] = &[
    Parameter::new("users", "1000", ParameterKind::Count(4, 1_000_000), "Users at first."),
    Parameter::new(
        "follows",
        "8",
        ParameterKind::Count(0, 1_000),
        "Whom each of them follows at first.",
    ),
    Parameter::new(
        "community",
        "40",
        ParameterKind::Count(2, 1_000_000),
        "Users of a community, about.",
    ),
    Parameter::new(
        "mixing",
        "5",
        ParameterKind::Percent,
        "Share of ties that are drawn among all users, and not in a community.",
    ),
    Parameter::new(
        "skew",
        "0.6",
        ParameterKind::Number(0.0, 0.99),
        "How uneven users are who tweet, read and are followed: Zipf's exponent.",
    ),
    Parameter::new("registrations", "5", ParameterKind::Count(0, 1_000_000), "Their weight."),
    Parameter::new(
        "ties",
        "15",
        ParameterKind::Count(0, 1_000_000),
        "Weight of follows and unfollows, half each.",
    ),
    Parameter::new("tweets", "30", ParameterKind::Count(0, 1_000_000), "Their weight."),
    Parameter::new(
        "timelines",
        "50",
        ParameterKind::Count(0, 1_000_000),
        "Weight of reading a timeline.",
    ),
    Parameter::new(
        "refused",
        "1",
        ParameterKind::Percent,
        "Share of registrations and follows that are refused: of a user that is taken, or that \
         there is not.",
    ),
];

/// ReTwis with its parameters.
#[derive(Debug)]
pub struct Retwis {
    users: u64,
    follows: u64,
    communities: u64,
    mixing: f64,
    popular: Zipfian,
    weights: [u64; 4],
    refused: f64,
    ledgers: PerClient<RetwisLedger>,
}

/// So often a tweet is tried whose author's followers change meanwhile.
const ROUNDS: u32 = 20;

/// The plans.
///
/// # Errors
/// One of them cannot be in one round.
pub fn procedures() -> Result<Procedures, PlannedProcedureError> {
    let users = with::<RegisterUser>(with::<LoadUser>(Procedures::default())?)?;
    let ties = with::<Unfollow>(with::<Follow>(users)?)?;
    let tweets = with::<TweetWithFollowers>(with::<ReadFollowers>(ties)?)?;
    with::<ReadTimeline>(tweets)
}

impl Retwis {
    /// ReTwis with these parameters, for so many clients.
    ///
    /// # Errors
    /// Parameters that do not go together.
    pub fn new(values: &Values, clients: u32) -> Result<Retwis, ParameterError> {
        let users = values.count("users");
        let weights = ["registrations", "ties", "tweets", "timelines"].map(|it| values.count(it));
        if weights == [0; 4] {
            let text = "one of registrations, ties, tweets and timelines needs a weight";
            return Err(ParameterError::Incompatible(text.to_owned()));
        }
        Ok(Retwis {
            users,
            follows: values.count("follows").min(users - 1),
            communities: (users / values.count("community")).max(1),
            mixing: values.number("mixing"),
            popular: Zipfian::new(users, values.number("skew")),
            weights,
            refused: values.number("refused"),
            ledgers: PerClient::new(clients, |_| RetwisLedger::default()),
        })
    }

    fn community(&self, user: u64) -> u64 {
        fnv_hash(user) % self.communities
    }

    /// A user that was there at first; some more often than others.
    fn draw_user(&self, chance: &mut Chance) -> u64 {
        1 + self.popular.draw(chance).min(self.users - 1)
    }

    /// Another user, whom this one may know: of its community in most cases.
    fn draw_other(&self, user: u64, chance: &mut Chance) -> u64 {
        let mixes = chance.percent(self.mixing);
        for _ in 0..64 * self.communities {
            let other = self.draw_user(chance);
            if other != user && (mixes || self.community(other) == self.community(user)) {
                return other;
            }
        }
        1 + user % self.users
    }

    /// Who follows whom at first: a function of the parameters alone.
    fn first_ties(&self) -> Vec<LoadedUser> {
        let user = |user| {
            let (followers, following) = (Vec::new(), Vec::new());
            LoadedUser { user, name: name(user), followers, following }
        };
        let mut all: Vec<LoadedUser> = (1..=self.users).map(user).collect();
        for user in 1..=self.users {
            let mut chance = Chance::new(user, 0, 0);
            for _ in 0..self.follows {
                let other = self.draw_other(user, &mut chance);
                if other != user && !all[user as usize - 1].following.contains(&other) {
                    all[user as usize - 1].following.push(other);
                    all[other as usize - 1].followers.push(user);
                }
            }
        }
        all
    }
}

impl Retwis {
    /// The next number of a client, and of no other one: later ones are larger.
    fn number(&self, seat: &Seat) -> u64 {
        let mut ledger = self.ledgers.of(seat.client);
        ledger.numbers += 1;
        ledger.numbers << 20 | u64::from(seat.client + 1)
    }

    fn settle(&self, seat: &Seat, ended: Ended, number: Option<u64>) -> Ended {
        self.ledgers.of(seat.client).settle(&ended, number);
        ended
    }

    /// Complains where something was committed that was to be refused.
    fn judge_refused(&self, seat: &Seat, to_be_refused: bool, ended: &Ended, what: &str) {
        if to_be_refused && *ended == Ended::Committed {
            self.ledgers.of(seat.client).wrong_commits.add(|| what.to_owned());
        }
    }

    async fn register(&self, seat: &mut Seat) -> (Ended, u32) {
        let is_taken = seat.chance.percent(self.refused);
        let new = || self.users + self.number(seat);
        let user = if is_taken { self.draw_user(&mut seat.chance) } else { new() };
        if !is_taken {
            self.ledgers.of(seat.client).set_out(RetwisUpdate::User(user));
        }
        let user = NewUser { user, name: name(user) };
        let (answer, attempts) =
            call_plan::<RegisterUser>(&seat.db, &mut seat.several, &user).await;
        let ended = self.settle(seat, ended(answer), None);
        self.judge_refused(seat, is_taken, &ended, "a user was registered twice");
        (ended, attempts)
    }

    async fn tie(&self, seat: &mut Seat) -> (Ended, u32) {
        let follower = self.draw_user(&mut seat.chance);
        let is_refused = seat.chance.percent(self.refused);
        let followed = match is_refused {
            true => NOBODY,
            false => self.draw_other(follower, &mut seat.chance),
        };
        let tie = Tie { follower, followed };
        let follows = is_refused || seat.chance.percent(50.0);
        if !is_refused {
            let change = FollowerChange { follower, follows };
            self.ledgers.of(seat.client).set_out(RetwisUpdate::Followers(followed, change));
        }
        let (answer, attempts) = match follows {
            true => call_plan::<Follow>(&seat.db, &mut seat.several, &tie).await,
            false => call_plan::<Unfollow>(&seat.db, &mut seat.several, &tie).await,
        };
        let (number, ended) = (answer.as_ref().ok().copied(), ended(answer));
        let ended = self.settle(seat, ended, number);
        self.judge_refused(seat, is_refused, &ended, "somebody follows nobody");
        (ended, attempts)
    }

    /// Reads who follows the author, and tweets to those; again, where others follow by then.
    async fn tweet(&self, seat: &mut Seat) -> (Ended, u32) {
        let (author, number) = (self.draw_user(&mut seat.chance), self.number(seat));
        let mut all_attempts = CallAttempts::default();
        for _ in 0..ROUNDS {
            let of = OfUser { user: author };
            let reader = seat.db.read_only();
            let (read, attempts) =
                call_plan::<ReadFollowers>(&reader, &mut seat.several, &of).await;
            all_attempts.add(attempts);
            let audience = match read {
                Ok(audience) => audience,
                Err(error) => return (ended::<()>(Err(error)), all_attempts.all()),
            };
            self.ledgers.of(seat.client).set_out(RetwisUpdate::Tweet(author, number));
            let tweet = SentTweet { author, number, text: text(author, number), audience };
            let (sent, attempts) =
                call_plan::<TweetWithFollowers>(&seat.db, &mut seat.several, &tweet).await;
            all_attempts.add(attempts);
            let has_changed = matches!(&sent, Err(Error::Refused(why)) if why == CHANGED);
            let ended = self.settle(seat, ended(sent), None);
            if !has_changed {
                return (ended, all_attempts.all());
            }
            all_attempts.begin_anew();
        }
        (Ended::RolledBack, all_attempts.all())
    }

    async fn timeline(&self, seat: &mut Seat) -> (Ended, u32) {
        let of = OfUser { user: self.draw_user(&mut seat.chance) };
        let reader = seat.db.read_only();
        let (shown, attempts) = call_plan::<ReadTimeline>(&reader, &mut seat.several, &of).await;
        let mut ledger = self.ledgers.of(seat.client);
        let what = format_args!("timeline of {}", of.user);
        ledger.wrong_timelines.judge(what, &shown, is_whole);
        drop(ledger);
        (ended(shown), attempts)
    }
}

/// Whether a snapshot can have this timeline: whole tweets, the newest first.
fn is_whole(shown: &Shown) -> bool {
    let ordered = shown.windows(2).all(|pair| pair[0].0 > pair[1].0);
    let whole = shown.iter().all(|(number, author, found)| *found == text(*author, *number));
    ordered && whole && shown.len() <= plans::SHOWN
}

impl Workload for Retwis {
    type Memory = ();

    fn spaces(&self, _: usize) -> Vec<(&'static str, SpaceOptions)> {
        tables::spaces()
    }

    fn is_one_round(&self) -> bool {
        true
    }

    async fn load(&self, db: &Db) -> Result<(), Error> {
        load_by_plan::<LoadUser>(db, self.first_ties()).await
    }

    fn begin(&self, seat: &mut Seat) -> Result<(), Error> {
        self.ledgers.of(seat.client).begin_incarnation();
        Ok(())
    }

    async fn transact(&self, seat: &mut Seat, (): &mut ()) -> (Ended, u32) {
        let mut at = seat.chance.below(self.weights.iter().sum());
        let mut kind = 0;
        while at >= self.weights[kind] {
            at -= self.weights[kind];
            kind += 1;
        }
        match kind {
            0 => self.register(seat).await,
            1 => self.tie(seat).await,
            2 => self.tweet(seat).await,
            _ => self.timeline(seat).await,
        }
    }

    async fn check(&self, db: &Db) -> Result<Vec<Check>, Error> {
        checks::check(self, db).await
    }
}
