//! An account as it is stored: its balance and its version counter, eight bytes each.

use muesli::objects::Object;
use muesli::{Action, Error, SmallBytes};
use postcard::fixint;
use serde::{Deserialize, Serialize};

/// What an account holds, and how often it was written since it was opened. As an object it is the
/// same sixteen bytes.
#[derive(Clone, Copy, Debug, Deserialize, Object, PartialEq, Eq, Serialize)]
pub(super) struct Account {
    #[serde(with = "fixint::le")]
    pub balance: i64,
    #[serde(with = "fixint::le")]
    pub version: u64,
}

impl Account {
    /// This account after one more write that adds `amount`.
    pub fn after(self, amount: i64) -> Account {
        Account { balance: self.balance + amount, version: self.version + 1 }
    }

    /// The account that one write which added `amount` was made of, wherever it was among others.
    pub fn before(self, amount: i64) -> Account {
        // Who runs while others commit may see it without that write; its attempt is in vain.
        Account { balance: self.balance - amount, version: self.version.wrapping_sub(1) }
    }

    /// A delayed action that does the same to an account, unread.
    pub fn receive(amount: i64) -> Action {
        Action::add_all(&[amount, 1])
    }

    pub fn encode(self) -> SmallBytes {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.balance.to_le_bytes());
        bytes[8..].copy_from_slice(&self.version.to_le_bytes());
        SmallBytes::new(&bytes)
    }

    /// The account that was read.
    ///
    /// # Errors
    /// There is none, or it is no account.
    pub fn decode(value: Option<&SmallBytes>) -> Result<Account, Error> {
        let value = value.ok_or_else(|| Error::Codec("an account is missing".to_owned()))?;
        let (parts, []) = value.as_slice().as_chunks::<8>() else {
            return Err(Error::Codec(format!("an account of {} bytes", value.len())));
        };
        let &[balance, version] = parts else {
            return Err(Error::Codec(format!("an account of {} bytes", value.len())));
        };
        let (balance, version) = (i64::from_le_bytes(balance), u64::from_le_bytes(version));
        Ok(Account { balance, version })
    }
}

#[cfg(test)]
mod tests {
    use muesli_core::actions::run_action;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn accounts_come_back(balance: i64, version: u64) {
            let account = Account { balance, version };
            prop_assert_eq!(Account::decode(Some(&account.encode())), Ok(account));
            let object = postcard::to_stdvec(&account).expect("it is encoded");
            prop_assert_eq!(SmallBytes::from(object), account.encode());
        }

        #[test]
        fn what_is_undone_leaves_nothing_whatever_came_after_it(
            balance: i32, version: u32, amount: i32, other: i32,
        ) {
            let account = Account { balance: balance.into(), version: version.into() };
            let (amount, other) = (i64::from(amount), i64::from(other));
            let undone = account.after(amount).after(other).before(amount);
            prop_assert_eq!(undone, account.after(other));
        }

        #[test]
        fn receiving_is_one_more_write(balance: i32, version: u32, amount: i32) {
            let account = Account { balance: balance.into(), version: version.into() };
            let action = Account::receive(amount.into());
            let run = muesli::Actions::default().get(&action.name).expect("a known action");
            let after = account.after(amount.into()).encode();
            let received = run_action(run, Some(&account.encode()), &action);
            prop_assert_eq!(received, Ok(Some(after)));
        }

        #[test]
        fn other_bytes_are_refused(bytes: Vec<u8>) {
            let read = Account::decode(Some(&SmallBytes::from(bytes.clone())));
            prop_assert_eq!(read.is_ok(), bytes.len() == 16);
        }
    }
}
