//! Locks on accounts, and which of their modes go together.
//!
//! | held, asked for | read | deposit | withdraw |
//! | --- | --- | --- | --- |
//! | read | yes | | |
//! | deposit | | yes | where accounts may be overdrawn |
//! | withdraw | | where accounts may be overdrawn | yes |
//!
//! Amounts are added, so that changes may come in any order, and so may what undoes them. Only
//! where an account must hold what is withdrawn does it matter what is undone: a withdrawal may
//! rest on a deposit, and if that were undone its money would be gone. It cannot rest on another
//! withdrawal, which if undone leaves more. A withdrawal that is refused as the account does not
//! hold the amount has read it, and asks for the lock so: nothing that it has seen may be undone.

use muesli::Error;
use muesli::open_nesting::{CompatibilityMatrix, LockMode};

/// The modes of a lock on an account.
#[derive(Clone, Debug)]
pub(super) struct AccountModes {
    pub read: LockMode,
    pub deposit: LockMode,
    pub withdraw: LockMode,
}

impl AccountModes {
    /// Those for accounts that may be overdrawn, or may not.
    pub fn new(overdraft: bool) -> Result<AccountModes, Error> {
        let mut pairs = vec![("read", "read"), ("deposit", "deposit"), ("withdraw", "withdraw")];
        pairs.extend(overdraft.then_some(("deposit", "withdraw")));
        let matrix = CompatibilityMatrix::new("account", &["read", "deposit", "withdraw"], &pairs)?;
        let mode = |name| matrix.mode(name);
        let (read, deposit, withdraw) = (mode("read")?, mode("deposit")?, mode("withdraw")?);
        Ok(AccountModes { read, deposit, withdraw })
    }
}

/// The lock on an account.
pub(super) fn lock_of(account: u32) -> [u8; 4] {
    account.to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_rests_on_what_may_be_undone() {
        for overdraft in [false, true] {
            let AccountModes { read, deposit, withdraw } = AccountModes::new(overdraft).unwrap();
            let all = [&read, &deposit, &withdraw];
            assert!(all.iter().all(|mode| mode.goes_with(mode)));
            assert!(!read.goes_with(&deposit) && !read.goes_with(&withdraw));
            assert_eq!(deposit.goes_with(&withdraw), overdraft);
        }
    }
}
