//! The commands of the scripts.
//!
//! | command | meaning |
//! | --- | --- |
//! | `cluster [protocol=score] [nodes=3] [replicas=1] [log=yes\|manual] [off=switch] […]` | nodes |
//! | `cluster […] tree=2x2` | validators above them are in this shape, and not a root alone |
//! | `cluster […] masters=1` | further nodes, without repositories, decide for the others |
//! | `begin t1 n0 [read_only] [strict] [lower_bound=t0] [session=1]` | a transaction at a node |
//! | `begin t1 n0 keeps_losing` | one that has lost so often that it is to be let through |
//! | `begin t1 n0 validated` | one whose merges look at what was read |
//! | `begin t1 n0 stays` | one that moves no keys |
//! | `begin t1 n0 stale=50ms [refused]` | one that may be so stale; it waits, or is refused |
//! | `begin t1 n0 […] lower_bound=t0 ahead=9` | in a session that may have seen nine steps more |
//! | `begin t1 n0 […] after=n1` | the same, in a session that n1 has run |
//! | `get t1 a1 b1`, `put t1 a1=5`, `delete t1 a1`, `scan t1 a c [limit=2] [reverse]` | work |
//! | `later t1 a1=5 [asked]` | a delayed action: appends to the value |
//! | `delay t1 mark "a1 a2 x" [asked]` | a delayed procedure of `delayable` |
//! | `nest t1 1`, `merge t1 1`, `unnest t1 1` | a level of it begins, ends well, is given up |
//! | `commit t1`, `rollback t1` | its end |
//! | `watch t1` | its end, and its client waits until something that it has read has changed |
//! | `call t1 n0 bump a1 b1 [class=coordinated] [lower_bound=t0] [session=1]` | a one-round call |
//! | `call m1 n0 move b 2` | the partition of a key moves to a repository |
//! | `call i1 n0 issue 2` | a repository is to issue a timestamp |
//! | `deliver`, `deliver n0 n1 [2\|all]` | everything; or the next messages of a link |
//! | `drop n0 n1 [2\|all]`, `copy n0 n1` | loses messages; sends the next one once more, last |
//! | `wait 5ms` | timers fire, messages stay where they are |
//! | `clock n1 5us` | its clock is so far ahead |
//! | `sync n0`, `crash n0`, `restart n0` | logs and lives |
//! | `lose n0` | it comes back without its disk |
//! | `checkpoint n0` | the pieces of a checkpoint, which stands for its log from now on |
//! | `state n0`, `pending`, `check [level]` | what there is; what is under way; the verdict |
//! | `outcome t1` | what its node knows of how it ended |

use std::collections::VecDeque;
use std::error::Error;

use goldenscript::{ArgumentConsumer, Command, Context};
use muesli_check::{Level, Verdict};
use muesli_core::contract::Participant as _;
use muesli_core::procedure::Class;
use muesli_core::{
    Action, Deferral, Delay, Nanos, Operation, Put, Scan, SmallBytes, Staleness, Step, Timestamp,
    Txn, TxnOptions,
};

use super::clusters::Clusters;
use super::{Harness, Host};
use crate::harness::delayable::{self, SPACE};
use crate::harness::subject::{Subject, lines, procedures};

type Outcome = Result<(), Box<dyn Error>>;

/// Plays a script; its stage is the cluster set up last.
pub struct Script {
    clusters: Clusters,
    harness: Option<Box<dyn Play>>,
}

impl Script {
    /// A script of clusters of these protocols.
    pub fn new(clusters: Clusters) -> Script {
        Script { clusters, harness: None }
    }
}

/// A stage, whatever its protocol.
pub trait Play {
    /// Does what a command says, and gives what is to be printed.
    fn play(&mut self, command: &Command) -> Result<String, Box<dyn Error>>;
}

impl<P: Subject> Play for Harness<P> {
    fn play(&mut self, command: &Command) -> Result<String, Box<dyn Error>> {
        // Each command happens at a time of its own, so that real time orders the transactions.
        self.now = self.now + Nanos(1);
        self.run(command)?;
        Ok(self.page.take())
    }
}

impl goldenscript::Runner for Script {
    type Command = Command;

    fn run(&mut self, command: &Command, _: &Context) -> Result<String, Box<dyn Error>> {
        if command.name == "cluster" {
            self.harness = Some((self.clusters)(command)?);
        }
        let harness = self.harness.as_mut().ok_or("a script begins with `cluster`")?;
        harness.play(command)
    }
}

pub(super) fn duration(text: &str) -> Result<Nanos, Box<dyn Error>> {
    match (text.strip_suffix("ms"), text.strip_suffix("us")) {
        (Some(millis), _) => Ok(Nanos::from_millis(millis.parse()?)),
        (_, Some(micros)) => Ok(Nanos::from_micros(micros.parse()?)),
        _ => Err(format!("`{text}` is no duration such as 5ms or 5us").into()),
    }
}

fn node(text: Option<&str>) -> Result<u32, Box<dyn Error>> {
    let number =
        text.and_then(|text| text.strip_prefix('n')).ok_or("a node such as n0 is missing")?;
    Ok(number.parse()?)
}

impl<P: Subject> Harness<P> {
    fn run(&mut self, command: &Command) -> Outcome {
        match command.name.as_str() {
            "cluster" => Ok(()),
            "begin" => self.begin(command),
            "call" => self.call(command),
            "clock" => self.clock(command),
            "get" => self.get(command),
            "put" | "delete" => self.put(command),
            "later" => self.defer(command),
            "delay" => self.delay(command),
            "scan" => self.scan(command),
            "nest" | "merge" | "unnest" => self.level(command),
            "commit" => self.commit(command),
            "rollback" => self.rollback(command),
            "watch" => self.watch(command),
            "deliver" | "drop" | "copy" => self.move_messages(command),
            "wait" => {
                let how_long = command.consume_args().next_pos().ok_or("how long?")?;
                self.wait(duration(how_long)?);
                Ok(())
            }
            "sync" | "checkpoint" | "crash" | "restart" | "lose" | "state" => self.on_node(command),
            "pending" => {
                for envelope in self.links.values().flatten() {
                    let line = lines::envelope::<P>(envelope, &self.page.names);
                    self.page.write(format_args!("{line}"));
                }
                Ok(())
            }
            "outcome" => self.outcome(command),
            "check" => self.check(command),
            other => Err(format!("no command `{other}`").into()),
        }
    }

    /// The name of a transaction that begins, its node, its session and what that has seen.
    fn beginning(
        &self,
        args: &mut ArgumentConsumer<'_>,
    ) -> Result<(String, u32, TxnOptions), Box<dyn Error>> {
        let name = args.next_pos().ok_or("a transaction is missing")?.to_owned();
        let at = node(args.next_pos())?;
        let mut options = TxnOptions::default();
        if let Some(session) = args.take_key("session") {
            options.session = session.parse()?;
        }
        if let Some(lower_bound) = args.take_key("lower_bound") {
            let ahead = args.take_key("ahead").map_or(Ok(0), str::parse)?;
            options.lower_bound = self.lower_bound(lower_bound, ahead)?;
        }
        Ok((name, at, options))
    }

    /// What a session has seen: up to a committed transaction, or so many steps further, as of one
    /// that begins at the end of a lease. A member has to have issued that much.
    fn lower_bound(&self, name: &str, ahead: u64) -> Result<Timestamp, Box<dyn Error>> {
        let at = *self.page.committed_at.get(name).ok_or("no such committed transaction")?;
        let lower_bound = at.after(ahead, at.repository());
        let issued = |host: &Host<P>| host.machine.node.issued() >= lower_bound;
        // What a commit was told needs nobody to have issued more.
        match ahead == 0 || self.hosts.values().any(issued) {
            true => Ok(lower_bound),
            false => Err(format!("no member has issued {lower_bound} yet").into()),
        }
    }

    fn begin(&mut self, command: &Command) -> Outcome {
        let mut args = command.consume_args();
        let (name, at, mut options) = self.beginning(&mut args)?;
        let session_token = args.take_key("after").map(|from| node(Some(from))).transpose()?;
        if let Some((_, seen)) = session_token
            .map(|from| self.host(from))
            .transpose()?
            .and_then(|it| it.machine.node.session_token())
        {
            self.host(at)?.machine.node.adopt(&seen);
        }
        let stale = args.take_key("stale").map(duration).transpose()?;
        let mut refuses = false;
        while let Some(word) = args.next_pos() {
            match word {
                "read_only" => options.read_only = true,
                "strict" => options.strict = true,
                "stays" => options.stays = true,
                "validated" => options.validated_merges = true,
                "refused" => refuses = true,
                "keeps_losing" => options.tried_since = Nanos(1),
                other => return Err(format!("no option `{other}`").into()),
            }
        }
        args.reject_next()?;
        options.staleness = stale.map(|most| Staleness { most, waits: !refuses });
        let machine = self.awake(at)?;
        let txn = machine.node.begin(options, &mut machine.effects)?;
        self.begun.insert(self.now.0, name.clone());
        self.transactions.insert(name, (at, txn));
        self.perform(at);
        Ok(())
    }

    fn call(&mut self, command: &Command) -> Outcome {
        let mut args = command.consume_args();
        let (name, at, options) = self.beginning(&mut args)?;
        let class = match args.take_key("class") {
            None => Class::Auto,
            Some("independent") => Class::Independent,
            Some("coordinated") => Class::Coordinated,
            Some(other) => return Err(format!("no class `{other}`").into()),
        };
        let procedure = args.next_pos().ok_or("a procedure is missing")?.to_owned();
        let mut keys = Vec::new();
        while let Some(key) = args.next_pos() {
            keys.push(key);
        }
        args.reject_next()?;
        let call = procedures::call(&procedure, &keys, class, &self.catalog);
        let begun = self.awake(at)?.effects.now.0;
        self.begun.insert(begun, name.clone());
        self.ending(at, name, Operation::Invoke(options, call))
    }

    fn clock(&mut self, command: &Command) -> Outcome {
        let mut args = command.consume_args();
        let at = node(args.next_pos())?;
        let ahead = duration(args.next_pos().ok_or("how far ahead?")?)?;
        self.host(at)?.skew = ahead;
        Ok(())
    }

    /// The node and handle of the transaction that a command names first.
    fn named(&self, name: Option<&str>) -> Result<(String, u32, Txn), Box<dyn Error>> {
        let name = name.ok_or("a transaction is missing")?;
        let (at, txn) = *self.transactions.get(name).ok_or("no such transaction")?;
        Ok((name.to_owned(), at, txn))
    }

    /// Does what ends a transaction: messages that name it get its name.
    fn ending(&mut self, at: u32, name: String, operation: Operation) -> Outcome {
        self.page.committing = Some(name.clone());
        self.operate(at, name, operation)?;
        self.page.committing = None;
        Ok(())
    }

    fn get(&mut self, command: &Command) -> Outcome {
        let mut args = command.consume_args();
        let (name, at, txn) = self.named(args.next_pos())?;
        let mut keys: Vec<SmallBytes> = Vec::new();
        while let Some(key) = args.next_pos() {
            keys.push(key.into());
        }
        let listed: Vec<_> = keys.iter().map(lines::text).collect();
        let what = format!("{name} get {}", listed.join(" "));
        let operation = match keys.as_slice() {
            [key] => Operation::Get(txn, SPACE, key.clone()),
            _ => Operation::GetMany(txn, SPACE, keys),
        };
        Ok(self.operate(at, what, operation)?)
    }

    fn put(&mut self, command: &Command) -> Outcome {
        let mut args = command.consume_args();
        let (name, at, txn) = self.named(args.next_pos())?;
        let mut writes: Vec<(SmallBytes, Option<SmallBytes>)> = Vec::new();
        while let Some((key, value)) = args.next_key() {
            writes.push((key.into(), Some(value.into())));
        }
        while let Some(key) = args.next_pos() {
            writes.push((key.into(), None));
        }
        for (key, value) in writes {
            let what = format!("{name} put {}", lines::text(&key));
            let put = Put { space: SPACE, key, value, may_wait: true };
            let machine = self.awake(at)?;
            match machine.node.operate(Operation::Put(txn, put), &mut machine.effects) {
                Step::Done(Ok(_)) => {}
                Step::Done(Err(failure)) => self.page.answer(&what, &Err(failure)),
                Step::Wait(op) => {
                    self.host(at)?.waiting.insert(op, what);
                    self.perform(at);
                }
            }
        }
        Ok(())
    }

    fn defer(&mut self, command: &Command) -> Outcome {
        let mut args = command.consume_args();
        let (name, at, txn) = self.named(args.next_pos())?;
        let asked = args.next_pos() == Some("asked");
        while let Some((key, value)) = args.next_key() {
            let delay = Delay::Action(SPACE, key.into(), Action::append(value));
            self.put_off((at, txn), &format!("{name} later {key}"), &delay, asked)?;
        }
        Ok(())
    }

    fn delay(&mut self, command: &Command) -> Outcome {
        let mut args = command.consume_args();
        let (name, at, txn) = self.named(args.next_pos())?;
        let procedure = args.next_pos().ok_or("which procedure?")?;
        let delay = delayable::call(procedure, args.next_pos().ok_or("on which keys?")?);
        let asked = args.next_pos() == Some("asked");
        self.put_off((at, txn), &format!("{name} {procedure}"), &delay, asked)
    }

    fn put_off(
        &mut self,
        (at, txn): (u32, Txn),
        what: &str,
        delay: &Delay,
        asked: bool,
    ) -> Outcome {
        let machine = &mut self.host(at)?.machine;
        match machine.node.delay(txn, delay.clone(), asked, &mut machine.effects) {
            Ok(Deferral::Deferred(_)) => {}
            Ok(_) => self.page.write(format_args!("{what}: at once, please")),
            Err(failure) => self.page.answer(what, &Err(failure)),
        }
        Ok(())
    }

    fn scan(&mut self, command: &Command) -> Outcome {
        let mut args = command.consume_args();
        let (name, at, txn) = self.named(args.next_pos())?;
        let (lo, hi) = (args.next_pos().ok_or("from?")?, args.next_pos().ok_or("to?")?);
        let limit = args.take_key("limit").map_or(Ok(usize::MAX), str::parse)?;
        let reverse = args.next_pos() == Some("reverse");
        let what = format!("{name} scan {lo} {hi}");
        let scan = Scan { space: SPACE, lo: lo.into(), hi: Some(hi.into()), reverse, limit };
        Ok(self.operate(at, what, Operation::Scan(txn, scan))?)
    }

    fn level(&mut self, command: &Command) -> Outcome {
        let mut args = command.consume_args();
        let (name, at, txn) = self.named(args.next_pos())?;
        let level = args.next_pos().ok_or("which level?")?.parse()?;
        let what = format!("{name} {} {level}", command.name);
        let operation = match command.name.as_str() {
            "nest" => Operation::Nest(txn, level),
            "merge" => Operation::Merge(txn, level),
            _ => Operation::Unnest(txn, level),
        };
        let machine = self.awake(at)?;
        match machine.node.operate(operation, &mut machine.effects) {
            Step::Done(Ok(_)) => self.perform(at),
            Step::Done(Err(failure)) => self.page.answer(&what, &Err(failure)),
            Step::Wait(op) => {
                self.host(at)?.waiting.insert(op, what);
                self.perform(at);
            }
        }
        Ok(())
    }

    fn commit(&mut self, command: &Command) -> Outcome {
        let (name, at, txn) = self.named(command.consume_args().next_pos())?;
        self.ending(at, name, Operation::Commit(txn))
    }

    fn rollback(&mut self, command: &Command) -> Outcome {
        let (name, at, txn) = self.named(command.consume_args().next_pos())?;
        let machine = &mut self.host(at)?.machine;
        machine.node.rollback(txn, &mut machine.effects);
        self.perform(at);
        self.page.write(format_args!("{name}: rolled back"));
        Ok(())
    }

    fn watch(&mut self, command: &Command) -> Outcome {
        let (name, at, txn) = self.named(command.consume_args().next_pos())?;
        Ok(self.operate(at, format!("{name} watches"), Operation::Watch(txn))?)
    }

    fn move_messages(&mut self, command: &Command) -> Outcome {
        let mut args = command.consume_args();
        let Some(from) = args.next_pos() else {
            self.deliver_all();
            return Ok(());
        };
        let link = (node(Some(from))?, node(args.next_pos())?);
        let waiting = self.links.get(&link).map_or(0, VecDeque::len);
        let count = match args.next_pos() {
            Some("all") => waiting,
            Some(number) => number.parse()?,
            None => 1,
        };
        for _ in 0..count {
            let queue = self.links.entry(link).or_default();
            let first = queue.front().cloned();
            let first = first.ok_or_else(|| format!("nothing on n{} -> n{}", link.0, link.1))?;
            match command.name.as_str() {
                "deliver" => drop(self.deliver_one(link)),
                "drop" => drop(queue.pop_front()),
                _ => queue.push_back(first),
            }
        }
        Ok(())
    }

    fn on_node(&mut self, command: &Command) -> Outcome {
        let id = node(command.consume_args().next_pos())?;
        match command.name.as_str() {
            "sync" => self.sync(id)?,
            "checkpoint" => self.checkpoint(id)?,
            "crash" => self.crash(id),
            "restart" => {
                self.crash(id);
                self.boot(id);
            }
            "lose" => {
                self.crash(id);
                self.lose(id);
                self.boot(id);
            }
            _ => self.show(id)?,
        }
        Ok(())
    }

    fn show(&mut self, id: u32) -> Outcome {
        let node = &self.hosts.get(&id).ok_or_else(|| format!("n{id} is down"))?.machine.node;
        self.page.write(format_args!("n{id}: {} unfinished", node.unfinished().0));
        for (repository, participant) in node.participants() {
            let number = repository.0;
            self.page.write(format_args!("r{number}: {}", P::show_participant(participant)));
            for (_, key, versions) in participant.chains(node.catalog()) {
                let versions: Vec<_> = versions.iter().map(Timestamp::to_string).collect();
                let (key, versions) = (lines::text(&key), versions.join(" "));
                self.page.write(format_args!("r{number}: {key} {versions}"));
            }
        }
        Ok(())
    }

    fn outcome(&mut self, command: &Command) -> Outcome {
        let name = command.consume_args().next_pos().ok_or("whose?")?.to_owned();
        let found = self.page.names.iter().find(|(_, known)| **known == name);
        let (&txn, _) = found.ok_or_else(|| format!("`{name}` was not sent"))?;
        let host = self.hosts.get(&txn.node.0).ok_or("its node is down")?;
        self.page.write(format_args!("{name}: {:?}", host.machine.node.outcome(txn)));
        Ok(())
    }

    fn check(&mut self, command: &Command) -> Outcome {
        let level = command.consume_args().next_pos().unwrap_or("serializable");
        let level: Level = level.parse()?;
        let verdict = self.running_evidence().judge::<P>(level);
        if verdict.holds() {
            self.page.write(format_args!("{level}"));
        } else {
            let why = self.explain(&verdict);
            self.page.write(format_args!("not {level}: {why}"));
        }
        Ok(())
    }

    /// The cycle as a chain of transactions and what binds them.
    fn explain(&self, verdict: &Verdict) -> String {
        let Some(cycle) = &verdict.cycle else {
            let first = verdict.findings.first();
            return first.map_or_else(String::new, |finding| format!("{finding:?}"));
        };
        let name = |at: usize| {
            let begin = cycle.transactions[at % cycle.transactions.len()].begin;
            self.begun.get(&begin).cloned().unwrap_or_else(|| begin.to_string())
        };
        let mut chain = name(0);
        for (place, edge) in cycle.edges.iter().enumerate() {
            chain += &format!(" -{} {}-> {}", edge.kind.name(), edge.key, name(place + 1));
        }
        chain
    }
}
