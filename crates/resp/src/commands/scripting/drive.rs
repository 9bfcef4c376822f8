//! Drives an interpreter to the end of a job: runs the commands that its script calls, in a part of
//! the transaction that is undone where the script fails.

use std::cell::Cell;
use std::rc::Rc;

use muesli::{Tx, yield_now};
use muesli_scripts::{
    ScriptEnd, ScriptInput, ScriptJob, ScriptLimits, ScriptStep, ScriptTask, ScriptValue,
};

use super::replies::to_script;
use crate::call::{CommandCall, ScriptedCommand};
use crate::engine::{LentInterpreter, RunningScript};
use crate::keyspace::scope::KeyScope;
use crate::keyspace::stop::CommandStop;
use crate::protocol::reply::RespVersion;
use crate::protocol::request::RespCommand;

const KILLED: &str = "ERR Script killed by user with SCRIPT KILL...";

/// What a script may do.
#[derive(Clone, Copy, Debug)]
pub(super) struct RunOptions {
    pub may_write: bool,
    /// It is run where the server has more memory than it may.
    pub may_grow: bool,
    pub is_function: bool,
}

/// Runs a script or a function, by this name: what it answers.
///
/// # Errors
/// It has failed, or was stopped: nothing of it was done.
pub(super) async fn run(
    call: &CommandCall<'_>,
    name: &str,
    task: ScriptTask,
    options: RunOptions,
) -> Result<ScriptEnd, CommandStop> {
    let words = || call.command.iter().map(<[u8]>::to_vec).collect();
    let named = (name, options.is_function);
    let running = &*call.taken.begin(&call.host.engine().running, named, words);
    let task = Rc::new(task);
    match options.may_write {
        true => run_in_part(call, running, &task, options).await,
        false => run_in(call, call.scope, running, &task, options).await,
    }
}

/// Runs it in a part of the transaction, which is undone where it fails.
async fn run_in_part(
    call: &CommandCall<'_>,
    running: &RunningScript,
    task: &Rc<ScriptTask>,
    options: RunOptions,
) -> Result<ScriptEnd, CommandStop> {
    let body = async |tx: &Tx| {
        let scope = call.scope.child(tx);
        let end = run_in(call, &scope, running, task, options).await?;
        Ok::<_, CommandStop>((end, scope.effects()))
    };
    let (end, effects) = call.scope.tx.nested(body).await?;
    call.scope.merge(effects);
    Ok(end)
}

async fn run_in(
    call: &CommandCall<'_>,
    scope: &KeyScope<'_>,
    running: &RunningScript,
    task: &Rc<ScriptTask>,
    options: RunOptions,
) -> Result<ScriptEnd, CommandStop> {
    if running.is_killed() {
        return CommandStop::refused(KILLED);
    }
    let engine = call.host.engine();
    let limits = call.taken.left(engine.limits.get());
    let mut lent = engine.interpreters.lend().map_err(CommandStop::Refused)?;
    let job = ScriptJob { task: task.clone(), limits, seed: fastrand::u64(..) };
    let (db, has_written) = (Cell::new(call.db), Cell::new(false));
    let mut step = lent.get().start(job);
    let end = loop {
        let input = match step {
            ScriptStep::Done(end) => break end,
            _ if running.is_killed() => ScriptInput::Stop(KILLED.to_owned()),
            ScriptStep::Call { words, resp3 } => {
                let version = if resp3 { RespVersion::Resp3 } else { RespVersion::Resp2 };
                let command = &RespCommand::of(words);
                let RunOptions { may_write, may_grow, .. } = options;
                let (db, has_written) = (&db, &has_written);
                let asked = ScriptedCommand {
                    scope,
                    command,
                    version,
                    db,
                    has_written,
                    may_write,
                    role: call.role,
                    may_grow,
                };
                match call.host.command(asked).await {
                    Ok(reply) => ScriptInput::Reply(to_script(reply)),
                    Err(CommandStop::Refused(why)) => ScriptInput::Reply(ScriptValue::error(why)),
                    Err(CommandStop::Waits) => ScriptInput::Reply(ScriptValue::Null),
                    Err(error) => {
                        call.taken.add(lent.get().taken());
                        return Err(error);
                    }
                }
            }
            ScriptStep::Check(words) => {
                ScriptInput::Reply(match call.host.may_give(call.role, &words) {
                    Some(may) => ScriptValue::Bool(may),
                    None => {
                        ScriptValue::error("ERR Invalid command passed to redis.acl_check_cmd()")
                    }
                })
            }
            ScriptStep::Log(level, text) => {
                engine.log(level, &text);
                ScriptInput::Continue
            }
            ScriptStep::Pause => {
                if call.taken.pauses_between() {
                    yield_now().await;
                }
                ScriptInput::Continue
            }
        };
        step = lent.get().resume(input);
    };
    finished(call, &mut lent, end)
}

/// What a script has come to that was run to its end.
fn finished(
    call: &CommandCall<'_>,
    lent: &mut LentInterpreter,
    end: ScriptEnd,
) -> Result<ScriptEnd, CommandStop> {
    lent.is_done = true;
    call.taken.add(lent.get().taken());
    let text = |why: Vec<u8>| String::from_utf8_lossy(&why).into_owned();
    match end {
        ScriptEnd::Failed(why) => CommandStop::refused(text(why)),
        ScriptEnd::Stopped(why) => CommandStop::refused(why),
        end => Ok(end),
    }
}

/// Does a task that calls no commands, with limits of its own.
pub(super) async fn examine(
    call: &CommandCall<'_>,
    task: ScriptTask,
    limits: ScriptLimits,
) -> Result<ScriptEnd, CommandStop> {
    let mut lent = call.host.engine().interpreters.lend().map_err(CommandStop::Refused)?;
    let mut step = lent.get().start(ScriptJob { task: Rc::new(task), limits, seed: 0 });
    loop {
        let input = match step {
            ScriptStep::Done(end) => {
                lent.is_done = true;
                call.taken.add(lent.get().taken());
                return Ok(end);
            }
            ScriptStep::Pause => {
                yield_now().await;
                ScriptInput::Continue
            }
            ScriptStep::Log(level, text) => {
                call.host.engine().log(level, &text);
                ScriptInput::Continue
            }
            ScriptStep::Call { .. } | ScriptStep::Check(_) => {
                ScriptInput::Stop("ERR no commands are called here".to_owned())
            }
        };
        step = lent.get().resume(input);
    }
}
