//! Drives an interpreter to the end of a job: runs the commands that its script calls, in a part of
//! the transaction that is undone where the script fails.

use std::cell::Cell;
use std::future::poll_fn;
use std::task::Poll;

use muesli::Tx;
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
    let begun = || call.host.engine().running.begin(name, words(), options.is_function);
    let mark = call.taken.mark(name, begun);
    let ended = match options.may_write {
        true => run_in_part(call, &mark.script, &task, options).await,
        false => run_in(call, call.scope, &mark.script, &task, options).await,
    };
    if matches!(ended, Err(CommandStop::Database(_))) {
        call.taken.keep(mark); // The transaction may be run again.
    }
    ended
}

/// Runs it in a part of the transaction, which is undone where it fails.
async fn run_in_part(
    call: &CommandCall<'_>,
    running: &RunningScript,
    task: &ScriptTask,
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
    task: &ScriptTask,
    options: RunOptions,
) -> Result<ScriptEnd, CommandStop> {
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
            ScriptStep::Check(words) => ScriptInput::Reply(match call.host.is_command(&words[0]) {
                true => ScriptValue::Bool(true),
                false => ScriptValue::error("ERR Invalid command passed to redis.acl_check_cmd()"),
            }),
            ScriptStep::Log(level, text) => {
                engine.log(level, &text);
                ScriptInput::Continue
            }
            ScriptStep::Pause => {
                if call.taken.is_polite() {
                    let_others_go_on().await;
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
    let mut step = lent.get().start(ScriptJob { task, limits, seed: 0 });
    loop {
        let input = match step {
            ScriptStep::Done(end) => {
                lent.is_done = true;
                return Ok(end);
            }
            ScriptStep::Pause => {
                let_others_go_on().await;
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

/// Lets the other tasks go on.
async fn let_others_go_on() {
    let mut is_first = true;
    poll_fn(|cx| {
        if !std::mem::replace(&mut is_first, false) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
