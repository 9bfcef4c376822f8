//! Delayed actions: named functions of one key's value, run where the key lives.
//!
//! A transaction that changes a key without looking at it need not read it: it names what is to be
//! done, and whoever holds the key does it when the transaction's turn has come. For that an
//! action is a *name* and an argument, which are bytes and can be sent and logged; the function
//! belongs to the node, which knows it by that name. It must be the same function on every node,
//! and depend on nothing but what it is given: every replica runs it, and again after a crash.
//! What it may leave is therefore limited by a number that goes with the transaction, and not by
//! what each node is configured with ([`run_limited`]).

use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::bytes::SmallBytes;
use crate::wire_struct;

/// What is to be done to a key: the name of a function, and its argument.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Action {
    /// A name in [`Actions`].
    pub name: SmallBytes,
    /// What the function is given beside the key's value.
    pub argument: SmallBytes,
}

wire_struct!(Action { name: SmallBytes, argument: SmallBytes });

/// The new value of a key from its old one (`None`: absent or deleted) and the argument.
pub type ActionFn = fn(Option<&SmallBytes>, &SmallBytes) -> Option<SmallBytes>;

/// What a node runs for an action.
#[derive(Clone, Copy, Debug)]
pub enum ActionCode {
    /// A function of any bytes.
    Bytes(ActionFn),
    /// A function of numbers of eight bytes each, which fails on anything else.
    Numbers(ActionFn),
}

impl PartialEq for ActionCode {
    fn eq(&self, other: &ActionCode) -> bool {
        match (self, other) {
            (ActionCode::Bytes(a), ActionCode::Bytes(b))
            | (ActionCode::Numbers(a), ActionCode::Numbers(b)) => std::ptr::fn_addr_eq(*a, *b),
            (ActionCode::Bytes(_) | ActionCode::Numbers(_), _) => false,
        }
    }
}

impl Action {
    /// The action called `name`.
    pub fn named(name: &str, argument: impl Into<SmallBytes>) -> Action {
        Action { name: name.into(), argument: argument.into() }
    }

    /// Adds `amount` to a number of eight bytes, little-endian; absent counts as zero. It wraps.
    pub fn add(amount: i64) -> Action {
        Action::add_all(&[amount])
    }

    /// Adds numbers to as many that lie one behind the other.
    pub fn add_all(amounts: &[i64]) -> Action {
        let bytes: Vec<u8> = amounts.iter().flat_map(|amount| amount.to_le_bytes()).collect();
        Action::named("add", bytes)
    }

    /// Appends bytes.
    pub fn append(bytes: impl Into<SmallBytes>) -> Action {
        Action::named("append", bytes)
    }

    /// Raises a number of eight bytes, little-endian, to at least this; absent is below all.
    pub fn max(number: i64) -> Action {
        Action::named("max", number.to_le_bytes().to_vec())
    }

    /// Lowers a number of eight bytes, little-endian, to at most this; absent is above all.
    pub fn min(number: i64) -> Action {
        Action::named("min", number.to_le_bytes().to_vec())
    }

    /// Puts a value where there is none.
    pub fn put_if_absent(value: impl Into<SmallBytes>) -> Action {
        Action::named("put-if-absent", value)
    }
}

/// The actions that a node knows.
#[derive(Clone)]
pub struct Actions {
    by_name: BTreeMap<SmallBytes, RegisteredAction>,
}

#[derive(Clone, Copy)]
struct RegisteredAction {
    run: ActionCode,
    /// It may leave more bytes than it is given, old value or argument.
    grows: bool,
    /// Whether it works depends on what it finds: a user's own, which may panic, and those of
    /// numbers.
    may_fail: bool,
}

/// Runs the function of an action.
///
/// # Errors
/// It panicked, or what it was given are no numbers, as this text says.
pub fn run_action(
    run: ActionCode,
    old: Option<&SmallBytes>,
    action: &Action,
) -> Result<Option<SmallBytes>, String> {
    let name = || String::from_utf8_lossy(action.name.as_slice());
    match run {
        ActionCode::Bytes(run) => {
            let ran = catch_unwind(AssertUnwindSafe(|| run(old, &action.argument)));
            ran.map_err(|_| format!("action `{}` panicked", name()))
        }
        ActionCode::Numbers(run) => run(old, &action.argument).map(Some).ok_or_else(|| {
            let (found, given) = (old.map_or(0, SmallBytes::len), action.argument.len());
            format!(
                "action `{}`: a value of {found} bytes and an argument of {given} are not as many \
                 numbers of 8 bytes each",
                name()
            )
        }),
    }
}

/// Runs the function of an action, which may leave `limit` bytes, or as many as it was given as the
/// old value or as the argument.
///
/// # Errors
/// As [`run_action`], or it gave more, as this text says.
pub fn run_limited(
    run: ActionCode,
    old: Option<&SmallBytes>,
    action: &Action,
    limit: u64,
) -> Result<Option<SmallBytes>, String> {
    let new = run_action(run, old, action)?;
    let size = new.as_ref().map_or(0, SmallBytes::len);
    let given = old.map_or(0, SmallBytes::len).max(action.argument.len());
    check_growth(action, size, limit.max(given as u64))?;
    Ok(new)
}

/// Whether an action may leave so many bytes.
///
/// # Errors
/// It may not, as this text says.
pub fn check_growth(action: &Action, size: usize, limit: u64) -> Result<(), String> {
    let name = || String::from_utf8_lossy(action.name.as_slice());
    match size as u64 <= limit {
        true => Ok(()),
        false => Err(format!(
            "action `{}` would leave a value of {size} bytes, which is over the limit of {limit} \
             bytes (`value_bytes_max`)",
            name()
        )),
    }
}

impl Default for Actions {
    /// Those that are always there: `add`, `append`, `max`, `min`, `put-if-absent`.
    fn default() -> Actions {
        let all: [(&str, ActionCode); 5] = [
            ("add", ActionCode::Numbers(|old, by| each(old, by, i64::wrapping_add))),
            ("append", ActionCode::Bytes(append)),
            ("max", ActionCode::Numbers(|old, number| one(old, number, i64::max))),
            ("min", ActionCode::Numbers(|old, number| one(old, number, i64::min))),
            ("put-if-absent", ActionCode::Bytes(|old, value| Some(old.unwrap_or(value).clone()))),
        ];
        let known = |(name, run): (&str, ActionCode)| {
            let may_fail = matches!(run, ActionCode::Numbers(_));
            (name.into(), RegisteredAction { run, grows: name == "append", may_fail })
        };
        Actions { by_name: all.into_iter().map(known).collect() }
    }
}

impl Actions {
    /// These and one more, or another one by a name that is taken. A key's value is a function of
    /// its old value and the argument: the same on every node, whenever it is run.
    #[must_use]
    pub fn with(mut self, name: &str, run: ActionFn) -> Actions {
        let run = ActionCode::Bytes(run);
        self.by_name.insert(name.into(), RegisteredAction { run, grows: true, may_fail: true });
        self
    }

    /// The function called `name`.
    pub fn get(&self, name: &SmallBytes) -> Option<ActionCode> {
        self.by_name.get(name).map(|known| known.run)
    }

    /// Whether what it leaves may have more bytes than the old value and than the argument.
    pub fn grows(&self, name: &SmallBytes) -> bool {
        self.by_name.get(name).is_some_and(|known| known.grows)
    }

    /// Whether it depends on the old value that the function called `name` works.
    pub fn may_fail(&self, name: &SmallBytes) -> bool {
        self.by_name.get(name).is_some_and(|known| known.may_fail)
    }

    /// All names, in order.
    pub fn names(&self) -> impl Iterator<Item = &SmallBytes> {
        self.by_name.keys()
    }
}

/// Equal if they know the same names.
impl PartialEq for Actions {
    fn eq(&self, other: &Actions) -> bool {
        self.names().eq(other.names())
    }
}

impl Eq for Actions {}

impl fmt::Debug for Actions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}

/// Each number with its own one; absent counts as zeros.
fn each(
    old: Option<&SmallBytes>,
    others: &SmallBytes,
    of: fn(i64, i64) -> i64,
) -> Option<SmallBytes> {
    let (given, odd) = others.as_slice().as_chunks::<8>();
    let old = match old {
        None => return odd.is_empty().then(|| others.clone()),
        Some(old) => old,
    };
    let (found, rest) = old.as_slice().as_chunks::<8>();
    if !rest.is_empty() || !odd.is_empty() || found.len() != given.len() {
        return None;
    }
    let both = |(a, b): (&[u8; 8], &[u8; 8])| {
        of(i64::from_le_bytes(*a), i64::from_le_bytes(*b)).to_le_bytes()
    };
    let all: Vec<u8> = found.iter().zip(given).flat_map(both).collect();
    Some(all.into())
}

/// One of two numbers; the other where the old value is absent.
fn one(
    old: Option<&SmallBytes>,
    number: &SmallBytes,
    of: fn(i64, i64) -> i64,
) -> Option<SmallBytes> {
    match (old, number.len()) {
        (None, 8) => Some(number.clone()),
        (Some(old), 8) if old.len() == 8 => each(Some(old), number, of),
        _ => None,
    }
}

fn append(old: Option<&SmallBytes>, more: &SmallBytes) -> Option<SmallBytes> {
    let mut bytes = old.map_or_else(Vec::new, |old| old.as_slice().to_vec());
    bytes.extend_from_slice(more.as_slice());
    Some(bytes.into())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::wire::Wire;

    fn ran(action: &Action, old: Option<&SmallBytes>) -> Result<Option<SmallBytes>, String> {
        run_action(Actions::default().get(&action.name).expect("a known action"), old, action)
    }

    fn run(action: &Action, old: Option<&SmallBytes>) -> Option<SmallBytes> {
        ran(action, old).expect("it works")
    }

    fn number(number: i64) -> SmallBytes {
        number.to_le_bytes().to_vec().into()
    }

    #[test]
    fn on_what_is_absent() {
        assert_eq!(run(&Action::add(3), None), Some(number(3)));
        assert_eq!(run(&Action::max(-3), None), Some(number(-3)));
        assert_eq!(run(&Action::min(3), None), Some(number(3)));
        assert_eq!(run(&Action::append("ab"), None), Some("ab".into()));
        assert_eq!(run(&Action::put_if_absent("ab"), None), Some("ab".into()));
    }

    #[test]
    fn on_what_is_there() {
        let old: SmallBytes = "xy".into();
        assert_eq!(run(&Action::append("ab"), Some(&old)), Some("xyab".into()));
        assert_eq!(run(&Action::put_if_absent("ab"), Some(&old)), Some(old.clone()));
        let two = SmallBytes::from([number(5).as_slice(), number(1).as_slice()].concat());
        let sums = SmallBytes::from([number(2).as_slice(), number(2).as_slice()].concat());
        assert_eq!(run(&Action::add_all(&[-3, 1]), Some(&two)), Some(sums));
    }

    #[test]
    fn one_that_panics_is_named() {
        let action = Action::named("broken", "");
        let ran = run_action(ActionCode::Bytes(|_, _| panic!("on purpose")), None, &action);
        assert_eq!(ran, Err("action `broken` panicked".to_owned()));
        let same = ActionCode::Bytes(|old, _| old.cloned());
        assert_eq!(run_action(same, None, &action), Ok(None));
    }

    #[test]
    fn what_is_no_number_is_not_added_to() {
        let text: SmallBytes = "many".into();
        let why = "action `add`: a value of 4 bytes and an argument of 8 are not as many numbers \
                   of 8 bytes each";
        assert_eq!(ran(&Action::add(1), Some(&text)), Err(why.to_owned()));
        for action in [Action::max(1), Action::min(1), Action::add_all(&[1, 2])] {
            let failed = [ran(&action, Some(&text)), ran(&action, Some(&SmallBytes::EMPTY))];
            assert!(failed.iter().all(Result::is_err), "{action:?}: {failed:?}");
        }
        assert!(ran(&Action::add_all(&[1, 2]), Some(&number(1))).is_err(), "one number, not two");
        assert!(ran(&Action::named("add", "abc"), None).is_err(), "an argument that is none");
        assert!(ran(&Action::named("max", "abc"), None).is_err());
    }

    #[test]
    fn users_have_their_own() {
        let actions = Actions::default().with("clear", |_, _| None);
        let clear = actions.get(&"clear".into()).expect("just registered");
        assert_eq!(run_action(clear, Some(&"x".into()), &Action::named("clear", "")), Ok(None));
        assert!(Actions::default().get(&"clear".into()).is_none());
    }

    proptest! {
        #[test]
        fn numbers_are_added_and_compared(old: i64, other: i64) {
            let at = number(old);
            let sum = number(old.wrapping_add(other));
            prop_assert_eq!(run(&Action::add(other), Some(&at)), Some(sum));
            prop_assert_eq!(run(&Action::max(other), Some(&at)), Some(number(old.max(other))));
            prop_assert_eq!(run(&Action::min(other), Some(&at)), Some(number(old.min(other))));
        }

        /// Whatever the bytes: no panic, the same again, and numbers stay numbers.
        #[test]
        fn any_bytes_will_do(old: Option<Vec<u8>>, name in 0usize..5, argument: Vec<u8>) {
            let old = old.map(SmallBytes::from);
            let all = Actions::default();
            let name = all.names().nth(name).expect("five names").clone();
            let action = Action { name, argument: argument.into() };
            prop_assert_eq!(ran(&action, old.as_ref()), ran(&action, old.as_ref()));
            let mut bytes = Vec::new();
            action.encode(&mut bytes);
            prop_assert_eq!(Action::decode_all(&bytes), Ok(action));
        }
    }
}
