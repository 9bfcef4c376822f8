//! Plans on databases of several repositories: whole calls, calls that lack fragments, tables that
//! are everywhere.

use std::sync::Arc;

use muesli::plans::{self, PlanBuilder, PlanTable, PlanValue, PlannedProcedure};
use muesli::procedures::builtin::{Get, Keyed, Put, Rows};
use muesli::{
    Class, Db, Error, Index, Key, Options, Place, RepositoryId, SpaceOptions, UnitMap, arg,
};
use serde::{Deserialize, Serialize};

const ACCOUNTS: PlanTable<(u32,), i64> = PlanTable::by_unit("account", "account", 1);
const RATES: PlanTable<(u32,), i64> = PlanTable::everywhere("rate");

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Payment {
    from: u32,
    to: u32,
    amount: i64,
}

/// Takes from one account, if there is enough, and gives to another one.
struct Pay<const SHARES: bool>;

impl<const SHARES: bool> PlannedProcedure for Pay<SHARES> {
    const NAME: &'static str = if SHARES { "pay-shared" } else { "pay-voted" };
    type Arguments = Payment;
    type Answer = i64;

    fn plan(plan: &mut PlanBuilder<Payment>) -> PlanValue<i64> {
        let (from, to) = (arg!(plan, from), arg!(plan, to));
        let balance = match SHARES {
            true => plan.shared(ACCOUNTS, (from,)),
            false => plan.read(ACCOUNTS, (from,)),
        };
        plan.refuse_unless("not enough", balance, |payment, balance| {
            balance.unwrap_or(0) >= payment.amount
        });
        plan.update(ACCOUNTS, (from,), (), |payment, old, ()| {
            Some(old.unwrap_or(0) - payment.amount)
        });
        plan.update(ACCOUNTS, (to,), (), |payment, old, ()| {
            Some(old.unwrap_or(0) + payment.amount)
        });
        plan.field(balance, "before", |balance| balance.unwrap_or(0))
    }
}

/// Sets a rate, which every repository has; or takes it away.
struct SetRate;

impl PlannedProcedure for SetRate {
    const NAME: &'static str = "set-rate";
    type Arguments = (u32, i64);
    type Answer = ();

    fn plan(plan: &mut PlanBuilder<(u32, i64)>) -> PlanValue<()> {
        let number = plan.arg("number", |rate| rate.0);
        plan.update(RATES, (number,), (), |rate, _, ()| (rate.1 != 0).then_some(rate.1));
        plan.nothing()
    }
}

/// Multiplies an account by a rate; refuses alike where there is none.
struct Multiply;

impl PlannedProcedure for Multiply {
    const NAME: &'static str = "multiply";
    type Arguments = (Vec<u32>, u32);
    type Answer = i64;

    fn plan(plan: &mut PlanBuilder<(Vec<u32>, u32)>) -> PlanValue<i64> {
        let (accounts, number) =
            (plan.arg("accounts", |of| of.0.clone()), plan.arg("rate", |of| of.1));
        let rate = plan.read(RATES, (number,));
        plan.refuse_unless("there is no such rate", rate, |_, rate| rate.is_some());
        plan.each(accounts, |plan, account| {
            plan.update(ACCOUNTS, (account.item,), rate, |_, old, rate| {
                Some(old.unwrap_or(1) * rate.unwrap_or(1))
            });
        });
        plan.field(rate, "rate", |rate| rate.unwrap_or(0))
    }
}

/// Takes one from each account, if they have a thousand together.
struct TakeOfEach;

impl PlannedProcedure for TakeOfEach {
    const NAME: &'static str = "take-of-each";
    type Arguments = Vec<u32>;
    type Answer = ();

    fn plan(plan: &mut PlanBuilder<Vec<u32>>) -> PlanValue<()> {
        let accounts = plan.arg("accounts", Vec::clone);
        let balances = plan.map(accounts, |plan, account| plan.shared(ACCOUNTS, (account.item,)));
        plan.refuse_unless("too little together", balances, |_, balances| {
            balances.iter().map(|balance| balance.unwrap_or(0)).sum::<i64>() >= 1_000
        });
        plan.each(accounts, |plan, account| {
            plan.update(ACCOUNTS, (account.item,), (), |_, old, ()| Some(old.unwrap_or(0) - 1));
        });
        plan.nothing()
    }
}

fn options(protocol: &str, repositories: usize) -> Options {
    let map = Arc::new(UnitMap::of_units(0, [((1_u32,).encoded(), 0), ((2_u32,).encoded(), 1)]));
    let protocol = protocol.to_owned();
    let options = Options { repositories, loops: 2, protocol, ..Options::default() };
    let options = options.plan::<Pay<true>>().and_then(Options::plan::<Pay<false>>).unwrap();
    let options = options.plan::<SetRate>().and_then(Options::plan::<Multiply>).unwrap();
    let options = options.plan::<TakeOfEach>().unwrap();
    let spaces = [ACCOUNTS.space(Index::Hash, &map), RATES.space(Index::Ordered, &map)];
    spaces.into_iter().fold(options, |options, (name, space)| options.space(name, space))
}

fn open(protocol: &str) -> Db {
    Db::open(options(protocol, 3)).unwrap()
}

fn account(db: &Db, number: u32) -> i64 {
    let (space, key) = (db.space("account").unwrap(), (number,).encoded());
    let keyed = Keyed { space, keys: vec![key.clone().into()] };
    let found = db.blocking().execute::<Get>(space.place(key), &keyed).unwrap();
    let value = found.into_iter().next().flatten();
    value.map_or(0, |value| postcard::from_bytes(value.0.as_slice()).unwrap())
}

/// Those that run procedures, and keep spaces everywhere.
const PROTOCOLS: [&str; 6] =
    ["granola", "granola-passing", "granola-locking", "sinfonia", "alvin", "certified-multipaxos"];

#[test]
fn transfers_take_effect_at_both_units_or_not_at_all() {
    for protocol in PROTOCOLS {
        let db = open(protocol);
        let calls = db.blocking();
        calls.run_plan::<SetRate>(&(1, 100)).unwrap();
        assert_eq!(calls.run_plan::<Multiply>(&((1..=9).collect(), 1)), Ok(100), "{protocol}");
        let mut refused = 0;
        for from in 1..=9 {
            let payment = Payment { from, to: from % 9 + 1, amount: 60 };
            let voted = calls.run_plan::<Pay<false>>(&payment);
            let shared = calls.run_plan::<Pay<true>>(&payment);
            for done in [voted, shared] {
                match done {
                    Ok(before) => assert!(before >= 60, "{protocol}: {before}"),
                    Err(Error::Refused(why)) if why == "not enough" => refused += 1,
                    Err(error) => panic!("{protocol}: {error}"),
                }
            }
        }
        let all: i64 = (1..=9).map(|number| account(&db, number)).sum();
        assert!(all == 900 && refused > 0, "{protocol}: {all}, {refused} refused");
    }
}

/// Where participants are not told, none of them has all that decides: then nothing is done.
#[test]
fn what_all_together_decide_is_never_left_out() {
    for protocol in PROTOCOLS {
        let db = open(protocol);
        let calls = db.blocking();
        calls.run_plan::<SetRate>(&(1, 100)).unwrap();
        calls.run_plan::<Multiply>(&((1..=9).collect(), 1)).unwrap();
        let refused = calls.run_plan::<TakeOfEach>(&(1..=9).collect());
        match refused {
            Err(Error::Refused(why)) => assert_eq!(why, "too little together", "{protocol}"),
            Err(Error::Procedure(why)) => assert!(why.contains("granola-passing"), "{why}"),
            other => panic!("{protocol}: {other:?}"),
        }
        let all: Vec<_> = (1..=9).map(|number| account(&db, number)).collect();
        assert_eq!(all, [100; 9], "{protocol}");
        assert_eq!(calls.run_plan::<TakeOfEach>(&Vec::new()).ok(), None, "{protocol}");
    }
}

#[test]
fn a_call_that_lacks_a_fragment_is_refused_by_all() {
    for protocol in PROTOCOLS {
        let db = open(protocol);
        db.blocking().run_plan::<Pay<false>>(&Payment { from: 1, to: 2, amount: 0 }).unwrap();
        let give = Payment { from: 1, to: 2, amount: 0 };
        let whole = db.plan_fragments::<Pay<true>>(&give).unwrap();
        assert_eq!(whole.len(), 2, "{protocol}");
        for missing in 0..2 {
            let mut part = whole.clone();
            part.remove(missing);
            let refused = db.blocking().invoke(Class::Auto, part).unwrap_err();
            let Error::Procedure(text) = &refused else { panic!("{protocol}: {refused}") };
            assert!(text.contains("its plan needs one fragment in each of"), "{protocol}: {text}");
        }
        let mut twice = whole.clone();
        twice.push(whole[0].clone());
        let refused = db.blocking().invoke(Class::Auto, twice).unwrap_err();
        assert!(matches!(refused, Error::Procedure(_)), "{protocol}: {refused}");
        db.blocking().invoke(Class::Auto, whole).unwrap();
    }
}

#[test]
fn what_is_everywhere_is_at_every_repository() {
    for protocol in ["granola", "granola-passing", "granola-locking", "sinfonia"] {
        let db = open(protocol);
        let (space, key) = (db.space("rate").unwrap(), (7_u32,).encoded());
        let at = |repository: u16| {
            let keyed = Keyed { space, keys: vec![key.clone().into()] };
            let place = Place::Repository(RepositoryId(repository));
            let found = db.blocking().execute::<Get>(place, &keyed).unwrap();
            found
                .into_iter()
                .next()
                .flatten()
                .map(|it| postcard::from_bytes::<i64>(it.0.as_slice()))
        };
        for (rate, expected) in [(30, Some(Ok(30))), (0, None), (12, Some(Ok(12)))] {
            db.blocking().run_plan::<SetRate>(&(7, rate)).unwrap();
            for repository in 0..3 {
                assert_eq!(at(repository), expected, "{protocol}, repository {repository}");
            }
        }
        let refused = db.blocking().run_plan::<Multiply>(&(vec![1, 2, 3, 4], 8));
        assert_eq!(refused, Err(Error::Refused("there is no such rate".into())), "{protocol}");
        // Who writes it at one repository alone is stopped.
        let one = Rows { space, rows: vec![(key.clone().into(), Some("x".into()))] };
        let put = db.blocking().execute::<Put>(Place::Repository(RepositoryId(1)), &one);
        let Err(Error::Procedure(text)) = put else { panic!("{protocol}: {put:?}") };
        assert!(text.contains("is everywhere, and is written by fragments of all"), "{text}");
        assert_eq!(at(1), Some(Ok(12)));
    }
}

#[test]
fn plans_and_spaces_that_do_not_fit_are_refused() {
    let refused = Db::open(options("score", 2)).unwrap_err().to_string();
    assert!(refused.contains("the protocol keeps no space everywhere, as `rate` is"), "{refused}");
    let other = Options { repositories: 3, protocol: "granola".to_owned(), ..Options::default() };
    let other = other.space("account", SpaceOptions::default()).plan::<Pay<true>>().unwrap();
    let db = Db::open(other).unwrap();
    let paid = db.blocking().run_plan::<Pay<true>>(&Payment { from: 1, to: 2, amount: 1 });
    let Err(Error::Procedure(text)) = paid else { panic!("{paid:?}") };
    assert!(text.contains("is dealt by a hash of each key, and the plan is for units"), "{text}");
    assert_eq!(plans::id_of::<SetRate>().to_string(), "set-rate v1");
}
