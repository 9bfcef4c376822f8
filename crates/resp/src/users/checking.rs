//! Passwords are checked on threads of their own, for each takes as much memory and time as its
//! hash is to cost. A few wait; of more than that each client is told so.
//!
//! A password that was found right is remembered, so that clients that connect again do not cost
//! that each time: by a tag of name and password, HMAC-SHA256 with random bytes that the process
//! draws as it starts and tells nobody. So what is remembered is nowhere but in the memory of the
//! process, of each user there is one such tag at most, and nothing is remembered of passwords that
//! were wrong. Tags are compared in constant time. Who can read the memory of the process finds
//! there what it needs to guess faster than by the file alone; and what clients send just now, too.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;

use futures_channel::oneshot;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::file::RespUsers;
use super::hashes::PASSWORD_BYTES_MAX;
use super::user::{RespUser, UserProof};

/// So many passwords are checked at a time.
const THREADS: usize = 2;
/// So many more wait.
const WAITING_MAX: usize = 64;

/// A password that is to be checked, of a user that has one.
struct PasswordCheck {
    user: Arc<RespUser>,
    password: Vec<u8>,
    answer: oneshot::Sender<bool>,
}

/// What is known of a password that a client has sent.
pub(crate) enum CheckedPassword {
    Right(Arc<RespUser>),
    Wrong,
    /// That takes a while: whether it is right comes by and by, of this user, if there is one.
    Pending(PendingCheck),
    /// Too many wait.
    Busy,
}

/// A password that a thread checks.
pub(crate) struct PendingCheck {
    pub answer: oneshot::Receiver<bool>,
    /// Who it is, if the password is right; `None`: nobody is, however that ends.
    user: Option<Arc<RespUser>>,
    tag: Vec<u8>,
}

/// Checks passwords; dropped, those that wait are not checked any more.
pub(crate) struct PasswordChecks {
    users: RespUsers,
    key: Hmac<Sha256>,
    /// By user, the tag of its password, once that was sent.
    remembered: RefCell<BTreeMap<String, Vec<u8>>>,
    queue: SyncSender<PasswordCheck>,
    is_over: Arc<AtomicBool>,
}

impl PasswordChecks {
    /// Begins to check passwords of these users.
    ///
    /// # Errors
    /// The system has no thread, or no random bytes.
    pub fn start(users: RespUsers) -> io::Result<PasswordChecks> {
        let mut key = [0; 32];
        getrandom::fill(&mut key).map_err(io::Error::other)?;
        let key = Hmac::new_from_slice(&key).map_err(io::Error::other)?;
        let (queue, waiting) = sync_channel(WAITING_MAX);
        let (waiting, is_over) = (Arc::new(Mutex::new(waiting)), Arc::new(AtomicBool::new(false)));
        for _ in 0..THREADS {
            let (waiting, is_over) = (waiting.clone(), is_over.clone());
            let named = thread::Builder::new().name("muesli-password".to_owned());
            named.spawn(move || check_all(&waiting, &is_over))?;
        }
        Ok(PasswordChecks { users, key, remembered: RefCell::default(), queue, is_over })
    }

    /// The users.
    pub fn users(&self) -> &RespUsers {
        &self.users
    }

    /// Begins to check a password. That a user is not there takes as long as a wrong password.
    pub fn begin(&self, name: &[u8], password: &[u8]) -> CheckedPassword {
        if password.len() > PASSWORD_BYTES_MAX {
            return CheckedPassword::Wrong;
        }
        let known = self.users.find(name);
        if let Some(user) = known {
            let remembered = self.remembered.borrow();
            let tag = match &user.proof {
                UserProof::Password(_) => remembered.get(&user.name).cloned(),
                UserProof::Secret(secret) => Some(self.tagged(name, secret).to_vec()),
            };
            let is_right = |tag: &Vec<u8>| self.mac(name, password).verify_slice(tag).is_ok();
            if tag.as_ref().is_some_and(is_right) {
                return CheckedPassword::Right(user.clone());
            }
        }
        let has_password = |it: &&Arc<RespUser>| matches!(it.proof, UserProof::Password(_));
        let known = known.filter(has_password);
        // Nobody's password is compared with somebody's: the answer is of no use, the time is.
        let Some(user) = known.or_else(|| self.users.all().find(has_password)) else {
            return CheckedPassword::Wrong;
        };
        let (answer, answered) = oneshot::channel();
        let check = PasswordCheck { user: user.clone(), password: password.to_vec(), answer };
        match self.queue.try_send(check) {
            Ok(()) => CheckedPassword::Pending(PendingCheck {
                answer: answered,
                user: known.cloned(),
                tag: self.tagged(name, password).to_vec(),
            }),
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => CheckedPassword::Busy,
        }
    }

    /// A thread has said whether a password is right: whose it is, if so.
    pub fn end(&self, is_right: bool, check: PendingCheck) -> Option<Arc<RespUser>> {
        let user = check.user.filter(|_| is_right)?;
        self.remembered.borrow_mut().insert(user.name.clone(), check.tag);
        Some(user)
    }

    fn mac(&self, name: &[u8], password: &[u8]) -> Hmac<Sha256> {
        let mut mac = self.key.clone();
        mac.update(&(name.len() as u64).to_le_bytes());
        mac.update(name);
        mac.update(password);
        mac
    }

    fn tagged(&self, name: &[u8], password: &[u8]) -> [u8; 32] {
        self.mac(name, password).finalize().into_bytes().into()
    }
}

impl Drop for PasswordChecks {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
    }
}

/// Checks passwords until there are no more to come.
fn check_all(waiting: &Mutex<Receiver<PasswordCheck>>, is_over: &AtomicBool) {
    loop {
        let next = waiting.lock().unwrap_or_else(|broken| broken.into_inner()).recv();
        let Ok(PasswordCheck { user, password, answer }) = next else { return };
        // Whose client has gone needs no answer.
        if is_over.load(Ordering::Acquire) || answer.is_canceled() {
            continue;
        }
        let UserProof::Password(hash) = &user.proof else { continue };
        let _ = answer.send(hash.verify(&password)); // It may have gone meanwhile.
    }
}

#[cfg(test)]
mod tests {
    use muesli::blocking::block_on;

    use super::*;
    use crate::users::user::UserRole;

    /// A user with this password, of which a check takes a moment; and the server's own password.
    fn checks(password: &str) -> (PasswordChecks, String) {
        let line = RespUsers::line("ann", UserRole::Read, password.as_bytes()).unwrap();
        let (users, own) = RespUsers::parse(&line, "f").unwrap().with_own().unwrap();
        (PasswordChecks::start(users).unwrap(), own)
    }

    /// Whether a password is right, and whether a thread had to check it.
    fn ask(checks: &PasswordChecks, name: &str, password: &str) -> (bool, bool) {
        match checks.begin(name.as_bytes(), password.as_bytes()) {
            CheckedPassword::Right(user) => (user.name == name, false),
            CheckedPassword::Wrong => (false, false),
            CheckedPassword::Pending(mut check) => {
                let is_right = block_on(&mut check.answer).unwrap();
                (checks.end(is_right, check).is_some_and(|it| it.name == name), true)
            }
            CheckedPassword::Busy => panic!("nothing waits"),
        }
    }

    #[test]
    fn a_right_password_is_remembered_and_a_wrong_one_is_not() {
        let (checks, _) = checks("secret");
        assert_eq!(ask(&checks, "ann", "wrong"), (false, true));
        assert_eq!(ask(&checks, "ann", "wrong"), (false, true));
        assert_eq!(ask(&checks, "ann", "secret"), (true, true));
        assert_eq!(ask(&checks, "ann", "secret"), (true, false));
        assert_eq!(ask(&checks, "ann", "secre"), (false, true));
        // It is the password of one user, and of nobody else.
        assert_eq!(ask(&checks, "bob", "secret"), (false, true));
        assert_eq!(ask(&checks, "", "annsecret"), (false, true));
        assert_eq!(ask(&checks, "ann", &"s".repeat(PASSWORD_BYTES_MAX + 1)), (false, false));
    }

    #[test]
    fn the_own_user_proves_itself_by_its_secret() {
        let (checks, own) = checks("secret");
        assert_eq!(ask(&checks, RespUsers::OWN, &own), (true, false));
        assert_eq!(ask(&checks, RespUsers::OWN, "secret"), (false, true));
        assert_eq!(ask(&checks, "ann", &own), (false, true));
    }

    #[test]
    fn so_many_wait_and_no_more() {
        let (checks, _) = checks("secret");
        let mut all = Vec::new();
        let begun = (0..2 * (THREADS + WAITING_MAX)).filter(|at| {
            match checks.begin(b"ann", at.to_string().as_bytes()) {
                CheckedPassword::Pending(check) => all.push(check),
                CheckedPassword::Busy => return false,
                _ => panic!("no password is right"),
            }
            true
        });
        let begun = begun.count();
        assert!((WAITING_MAX..2 * (THREADS + WAITING_MAX)).contains(&begun), "{begun}");
        for mut check in all.drain(..) {
            let is_right = block_on(&mut check.answer).unwrap();
            assert!(checks.end(is_right, check).is_none());
        }
        assert_eq!(ask(&checks, "ann", "secret"), (true, true));
    }
}
