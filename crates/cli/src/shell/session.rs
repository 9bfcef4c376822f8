//! What a shell is in the middle of, and how it carries commands out.

use std::fmt::Write as _;
use std::ops::Bound;
use std::time::Duration;

use anyhow::{Context, bail};
use muesli::blocking::block_on;
use muesli::{
    Db, Error, ErrorKind, Index, Range, SmallBytes, Space, SpaceOptions, Transaction, Tx,
};
use serde_json::{Map, Value, json};

use super::interrupt::TypedInterrupt;
use super::tokens::ShellToken;
use super::values;

/// A scan shows so many rows, unless told otherwise.
const ROWS: usize = 100;
/// So many rows are counted at a time.
const COUNTED: usize = 1_000;
/// A transaction that is typed may be open for so long.
const TYPED_WITHIN: Duration = Duration::from_secs(3_600);
/// What a database keeps for itself is in spaces that are called so.
const OWN: &str = "muesli.";

/// A shell's session on a database.
pub struct ShellSession {
    pub db: Db,
    /// Addresses of servers, where there are some.
    pub addresses: Vec<String>,
    /// The name of the protocol.
    pub protocol: String,
    /// Where what transactions do is written at the end, if it is.
    pub histories: Option<String>,
    /// What commands are about, where they do not say.
    pub space: Option<(String, Space)>,
    open: Option<TypedTransaction>,
    /// Whether programs read what is answered.
    pub json: bool,
    /// Ctrl-C, where there is a prompt to come back to.
    pub interrupt: Option<TypedInterrupt>,
}

struct TypedTransaction {
    transaction: Transaction,
    writes: usize,
}

impl ShellSession {
    /// A session that is in the middle of nothing.
    pub fn new(db: Db, addresses: Vec<String>, protocol: String, json: bool) -> ShellSession {
        let db = db.listing().timeout(TYPED_WITHIN);
        let mut session = ShellSession {
            db,
            addresses,
            protocol,
            histories: None,
            space: None,
            open: None,
            json,
            interrupt: None,
        };
        if let [only] = &session.spaces()[..] {
            session.space = session.db.space(only).ok().map(|space| (only.clone(), space));
        }
        session
    }

    /// The names of all spaces.
    pub fn spaces(&self) -> Vec<String> {
        let catalog = self.db.catalog();
        let names = catalog.spaces().iter().map(|space| space.name.clone());
        names.filter(|name| !name.starts_with(OWN)).collect()
    }

    /// What is asked for a command.
    pub fn prompt(&self) -> String {
        let mut prompt = "muesli".to_owned();
        if let Some((name, _)) = &self.space {
            let _ = write!(prompt, " {name}");
        }
        match &self.open {
            None => {}
            Some(open) if open.writes == 1 => prompt.push_str(" [transaction, 1 write]"),
            Some(open) => {
                let _ = write!(prompt, " [transaction, {} writes]", open.writes);
            }
        }
        prompt + "> "
    }

    /// What commands are about.
    pub fn current(&self) -> anyhow::Result<(&str, Space)> {
        let Some((name, space)) = &self.space else {
            let names = self.spaces();
            if names.is_empty() {
                bail!("there is no space yet: `create NAME` makes one");
            }
            bail!("no space is in use: `use NAME`, of {}", names.join(", "));
        };
        Ok((name, *space))
    }

    pub fn space_named(&self, token: &ShellToken) -> anyhow::Result<(String, Space)> {
        let name = token.text();
        let space = self.db.space(&name)?;
        Ok((name, space))
    }

    pub fn list_spaces(&self) -> String {
        let catalog = self.db.catalog();
        let all = catalog.spaces().iter().filter(|space| !space.name.starts_with(OWN));
        let lines = all.map(|space| {
            let index = match space.options.index {
                Index::Hash => "hash",
                Index::Ordered => "ordered",
            };
            match self.json {
                true => json!({ "space": space.name, "index": index }).to_string(),
                false => format!("{} ({index})", space.name),
            }
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    pub fn use_space(&mut self, tokens: &[ShellToken]) -> anyhow::Result<String> {
        let [name] = tokens else { bail!("`use` takes the name of a space") };
        self.space = Some(self.space_named(name)?);
        Ok(self.done())
    }

    pub fn create(&mut self, tokens: &[ShellToken]) -> anyhow::Result<String> {
        let (name, index) = match tokens {
            [name] => (name, Index::Ordered),
            [name, index] if index.is("ordered") => (name, Index::Ordered),
            [name, index] if index.is("hash") => (name, Index::Hash),
            _ => bail!("`create` takes the name of a space, and perhaps `ordered` or `hash`"),
        };
        let name = name.text();
        if self.open.is_some() {
            bail!("a space is made outside of transactions: commit or abort this one first");
        }
        if self.db.space(&name).is_ok() {
            bail!("there is a space `{name}`");
        }
        let made =
            self.db.create_space(&name, SpaceOptions { index, ..SpaceOptions::default() })?;
        self.space = Some((name, made));
        Ok(self.done())
    }

    pub fn begin(&mut self, tokens: &[ShellToken]) -> anyhow::Result<String> {
        if self.open.is_some() {
            bail!("a transaction is open: commit or abort it first");
        }
        let db = match tokens {
            [] => self.db.clone(),
            [how] if how.is("read-only") => self.db.read_only(),
            [how] if how.is("strict") => self.db.strict(),
            _ => bail!("`begin` takes nothing, `read-only` or `strict`"),
        };
        self.open = Some(TypedTransaction { transaction: db.blocking().begin()?, writes: 0 });
        Ok(self.done())
    }

    pub fn commit(&mut self, tokens: &[ShellToken]) -> anyhow::Result<String> {
        if !tokens.is_empty() {
            bail!("`commit` takes nothing");
        }
        let open = self.open.take().context("no transaction is open: `begin` begins one")?;
        block_on(open.transaction.commit())?;
        Ok(self.done())
    }

    pub fn abort(&mut self, tokens: &[ShellToken]) -> anyhow::Result<String> {
        if !tokens.is_empty() {
            bail!("`abort` takes nothing");
        }
        let open = self.open.take().context("no transaction is open: `begin` begins one")?;
        block_on(open.transaction.rollback())?;
        Ok(self.done())
    }

    /// Ends what is open, at the end of the shell; whether something was.
    pub fn end(&mut self) -> bool {
        let open = self.open.take();
        open.is_some_and(|open| block_on(open.transaction.rollback()).is_ok())
    }

    /// Whether a transaction is open.
    pub fn is_in_transaction(&self) -> bool {
        self.open.is_some()
    }

    /// What an operation gives, in the open transaction or in one of its own. A transaction that
    /// cannot commit any more is not open afterwards, and neither is one of which some of several
    /// `writes` may be done.
    pub fn operate<T: Send + 'static>(
        &mut self,
        writes: usize,
        operation: impl AsyncFn(&Tx) -> Result<T, Error> + Send + Sync + 'static,
    ) -> anyhow::Result<T> {
        let Some(open) = &mut self.open else {
            return Ok(self.db.blocking().transact(operation)?);
        };
        match block_on(operation(&*open.transaction)) {
            Ok(answer) => {
                open.writes += writes;
                Ok(answer)
            }
            Err(error) if ends(&error) || writes > 1 => {
                self.end();
                Err(anyhow::Error::new(error).context("the transaction was aborted"))
            }
            Err(error) => Err(error.into()),
        }
    }

    pub fn get(&mut self, tokens: &[ShellToken]) -> anyhow::Result<String> {
        if tokens.is_empty() {
            bail!("`get` takes keys");
        }
        let (_, space) = self.current()?;
        let keys: Vec<SmallBytes> =
            tokens.iter().map(|token| SmallBytes::new(&token.bytes)).collect();
        let asked = keys.clone();
        let found = self.operate(0, async move |tx| tx.get_many(space, asked.clone()).await)?;
        let lines = keys.iter().zip(found).map(|(key, value)| {
            let (key, value) = (key.as_slice(), value.as_ref().map(SmallBytes::as_slice));
            if self.json {
                return row_for_programs(key, value);
            }
            let value = value.map_or("(absent)".to_owned(), values::shown_value);
            if keys.len() == 1 { value } else { format!("{}\t{value}", values::shown(key)) }
        });
        Ok(lines.collect::<Vec<_>>().join("\n"))
    }

    pub fn put(&mut self, tokens: &[ShellToken]) -> anyhow::Result<String> {
        if tokens.is_empty() || tokens.len() % 2 == 1 {
            bail!("`put` takes keys, each with its value; quote what has spaces");
        }
        let (_, space) = self.current()?;
        let row = |pair: &[ShellToken]| (pair[0].bytes.clone(), pair[1].bytes.clone());
        let rows: Vec<_> = tokens.chunks(2).map(row).collect();
        let write = async move |tx: &Tx| {
            for (key, value) in &rows {
                tx.put(space, &key[..], &value[..]).await?;
            }
            Ok(())
        };
        self.operate(tokens.len() / 2, write)?;
        Ok(self.done())
    }

    pub fn delete(&mut self, tokens: &[ShellToken]) -> anyhow::Result<String> {
        if tokens.is_empty() {
            bail!("`delete` takes keys");
        }
        let (_, space) = self.current()?;
        let keys: Vec<_> = tokens.iter().map(|token| token.bytes.clone()).collect();
        let write = async move |tx: &Tx| {
            for key in &keys {
                tx.delete(space, &key[..]).await?;
            }
            Ok(())
        };
        self.operate(tokens.len(), write)?;
        Ok(self.done())
    }

    pub fn scan(&mut self, tokens: &[ShellToken]) -> anyhow::Result<String> {
        let (_, space) = self.current()?;
        let scanned = scanned(tokens)?;
        let limit = scanned.limit;
        let range = scanned.range().limit(limit.saturating_add(1));
        let rows = self.operate(0, async move |tx| tx.scan(space, range.clone()).await)?;
        let shown = rows.iter().take(limit).map(|(key, value)| match self.json {
            true => row_for_programs(key.as_slice(), Some(value.as_slice())),
            false => {
                let (key, value) = (values::shown(key.as_slice()), value.as_slice());
                format!("{key}\t{}", values::shown(value))
            }
        });
        let mut lines: Vec<_> = shown.collect();
        if rows.len() > limit && !self.json {
            lines.push(format!("... and more; `limit N` shows other than {limit} rows"));
        }
        Ok(lines.join("\n"))
    }

    pub fn count(&mut self, tokens: &[ShellToken]) -> anyhow::Result<String> {
        let (_, space) = self.current()?;
        let scanned = scanned(tokens)?;
        let count = async move |tx: &Tx| {
            let (mut left, mut count) = (AskedRange { reverse: false, ..scanned.clone() }, 0);
            loop {
                let rows = tx.scan(space, left.range().limit(COUNTED)).await?;
                count += rows.len();
                match rows.last() {
                    Some((last, _)) => left.from = last.successor().as_slice().to_vec(),
                    None => return Ok(count),
                }
            }
        };
        let count = match self.open {
            Some(_) => self.operate(0, count)?,
            None => self.db.read_only().blocking().transact(count)?,
        };
        Ok(if self.json { json!({ "count": count }).to_string() } else { count.to_string() })
    }

    pub fn tell_histories(&self) -> String {
        match &self.histories {
            Some(path) => format!(
                "what transactions do is recorded, and written to {path} when the shell ends; \
                 `muesli check {path}` judges it"
            ),
            None => "nothing is recorded: begin the shell with --histories FILE".to_owned(),
        }
    }

    /// What is text where there is nothing else to say.
    pub fn done(&self) -> String {
        if self.json { json!({ "ok": true }).to_string() } else { "ok".to_owned() }
    }
}

/// Whether a transaction is over with this error.
fn ends(error: &Error) -> bool {
    let is_over = matches!(error, Error::TransactionTimeout { .. } | Error::Ended);
    is_over || error.kind() == ErrorKind::Conflict
}

/// What a scan is about.
#[derive(Clone, Debug)]
struct AskedRange {
    from: Vec<u8>,
    /// Up to this key, which is not among them.
    to: Option<Vec<u8>>,
    reverse: bool,
    limit: usize,
}

impl AskedRange {
    fn range(&self) -> Range {
        let to = self.to.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let range = Range::of::<&[u8]>((Bound::Included(&self.from[..]), to));
        if self.reverse { range.reverse() } else { range }
    }
}

/// `[FROM [TO]] [prefix TEXT] [reverse] [limit N]`.
fn scanned(tokens: &[ShellToken]) -> anyhow::Result<AskedRange> {
    let (mut bounds, mut prefix, mut limit, mut reverse) = (Vec::new(), None, ROWS, false);
    let mut tokens = tokens.iter();
    while let Some(token) = tokens.next() {
        if token.is("reverse") {
            reverse = true;
        } else if token.is("limit") {
            let number = tokens.next().and_then(|token| token.text().parse().ok());
            limit = number.context("`limit` takes a number")?;
        } else if token.is("prefix") {
            prefix = Some(tokens.next().context("`prefix` takes how keys begin")?.bytes.clone());
        } else {
            bounds.push(token.bytes.clone());
        }
    }
    let (from, to) = match (&mut bounds[..], prefix) {
        ([], None) => (Vec::new(), None),
        ([], Some(prefix)) => {
            let to = SmallBytes::new(&prefix).prefix_end();
            (prefix, to.map(|to| to.as_slice().to_vec()))
        }
        ([from], None) => (std::mem::take(from), None),
        ([from, to], None) => (std::mem::take(from), Some(std::mem::take(to))),
        _ => bail!("a range is FROM, FROM TO, or `prefix TEXT`"),
    };
    Ok(AskedRange { from, to, reverse, limit })
}

/// A row as programs get it; a key that is absent has no value.
pub fn row_for_programs(key: &[u8], value: Option<&[u8]>) -> String {
    let mut object = Map::new();
    values::put(&mut object, "key", key);
    match value {
        Some(value) => values::put(&mut object, "value", value),
        None => drop(object.insert("value".to_owned(), Value::Null)),
    }
    Value::Object(object).to_string()
}
