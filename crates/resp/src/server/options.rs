//! How the server is started.

use crate::users::RespUsers;

/// How a server for Redis clients is started.
#[derive(Clone, Debug)]
pub struct RespOptions {
    /// The name of the space that holds all of it.
    pub space: String,
    /// Whether other processes serve the same data: then counts are spread over several rows, so
    /// that they rarely meet, readers see all that was committed anywhere before, and who waits
    /// looks again now and then.
    pub shared: bool,
    /// Whether what is acknowledged is on a disk: what clients are answered who ask for that. It is
    /// the database's own matter whether it is so.
    pub durable: bool,
    /// Most clients at a time (`maxclients`).
    pub clients_max: usize,
    /// Who may be served, and what each may do; `None`: nobody is asked, and may do everything.
    pub users: Option<RespUsers>,
    /// Other machines may connect where nobody is asked who it is.
    pub insecure: bool,
    /// Where the lines go that scripts have for the log (`redis.log`).
    pub script_notice: fn(&str),
}

impl Default for RespOptions {
    fn default() -> RespOptions {
        let space = "redis".to_owned();
        let (shared, durable, clients_max) = (false, false, 10_000);
        RespOptions {
            space,
            shared,
            durable,
            clients_max,
            users: None,
            insecure: false,
            script_notice: |_| {},
        }
    }
}
