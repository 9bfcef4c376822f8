//! Sessions that go on in other handles and other processes.

use std::collections::BTreeMap;
use std::sync::Arc;

use muesli_core::{NodeId, client};

use crate::database::handle::Db;
use crate::error::Error;
use crate::session::token::{Carried, CausalContext, SessionToken};

impl Db {
    /// What this session has seen so far, and perhaps more, to be given to another process: a
    /// session that begins [`after`](Self::after) it sees at least that.
    ///
    /// ```
    /// # use muesli::{Db, Error, Options, SessionToken, SpaceOptions};
    /// # let db = Db::open(Options::default().space("s", SpaceOptions::default()))?;
    /// # let other = db.independent();
    /// # let space = db.space("s")?;
    /// db.blocking().transact(async move |tx| tx.put(space, "k", "v").await)?;
    /// let token = db.blocking().token()?;
    /// let sent = postcard::to_stdvec(&token).expect("any format of serde does");
    /// // In the other process, which has a connection of its own:
    /// let token: SessionToken = postcard::from_bytes(&sent).expect("it was just written");
    /// let session = other.after(&token);
    /// let found = session.blocking().transact(async move |tx| tx.get(space, "k").await)?;
    /// assert_eq!(found, Some("v".into()));
    /// # Ok::<_, Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Closed`].
    pub async fn token(&self) -> Result<SessionToken, Error> {
        let mut session_token = SessionToken { seen: self.seen(), node_tokens: BTreeMap::new() };
        if let Some(carried) = self.carried() {
            let node_tokens = carried.node_tokens();
            session_token.node_tokens.extend(
                node_tokens
                    .iter()
                    .map(|(node, node_token)| (*node, node_token.as_slice().to_vec())),
            );
        }
        let database = self.inner.database;
        let ask = move || client::with(database, |engine| engine.session_token());
        for home in 0..self.loops() {
            let reported = match self.inner.driver {
                Some(_) => self.run_on(home, async move || ask()).await?,
                None => ask(),
            };
            if let Some((NodeId(node), node_token)) = reported.ok_or(Error::Closed)?? {
                session_token.node_tokens.insert(node, node_token.as_slice().to_vec());
            }
        }
        Ok(session_token)
    }

    /// The same database in a new, [independent](Self::independent) session that sees at least what
    /// the token tells, of another handle or another process.
    pub fn after(&self, token: &SessionToken) -> Db {
        let seen = self.seen().max(token.seen);
        self.in_next_session(Arc::new(CausalContext::new(seen, Some(Carried::of(token)))))
    }

    /// The same database in a new session whose transactions several nodes may run, where a driver
    /// of its own polls tasks of all of them. (The loops of a database need not be told.)
    pub fn roaming(&self) -> Db {
        self.after(&SessionToken::default())
    }
}
