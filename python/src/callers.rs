//! Who polls what a database is asked.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use muesli::blocking::StateCaller;

use crate::database::OpenDatabase;
use crate::forks::ForkedProcess;

/// A caller in the state of a loop. It keeps the database open.
pub struct DatabaseCaller {
    /// There until it is dropped; before the database.
    caller: Option<StateCaller>,
    database: Arc<OpenDatabase>,
}

impl DatabaseCaller {
    /// A caller of this database.
    pub fn new(caller: StateCaller, database: Arc<OpenDatabase>) -> DatabaseCaller {
        DatabaseCaller { caller: Some(caller), database }
    }

    /// Another caller in the state of the same loop.
    pub fn beside(&self) -> DatabaseCaller {
        DatabaseCaller::new((**self).beside(), self.database.clone())
    }

    /// The process that has the loop.
    pub fn process(&self) -> ForkedProcess {
        self.database.process()
    }
}

impl Deref for DatabaseCaller {
    type Target = StateCaller;

    fn deref(&self) -> &StateCaller {
        self.caller.as_ref().expect("it was not dropped")
    }
}

impl DerefMut for DatabaseCaller {
    fn deref_mut(&mut self) -> &mut StateCaller {
        self.caller.as_mut().expect("it was not dropped")
    }
}

impl Drop for DatabaseCaller {
    fn drop(&mut self) {
        // A forked process may have the loop's locks as they were held by threads of the other one.
        if !self.process().is_current() {
            std::mem::forget(self.caller.take());
        }
        self.caller = None;
    }
}
