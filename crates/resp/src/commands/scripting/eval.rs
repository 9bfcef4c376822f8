//! `EVAL`, `EVALSHA`, `FCALL` and the same that only read.

use std::ops::Range;

use muesli_scripts::{ScriptEnd, ScriptFlags, ScriptTask, sha1_hex};

use super::drive::{RunOptions, run};
use super::replies::of_script;
use super::rows::libraries;
use crate::call::{Answer, CommandCall};
use crate::engine::CachedScript;
use crate::keyspace::stop::{CommandStop, texts};
use crate::protocol::numbers;
use crate::protocol::reply::RespReply;

const NO_SCRIPT: &str = "NOSCRIPT No matching script. Please use EVAL.";
/// How long the hash of a script is.
const SHA_LENGTH: usize = 40;

/// The keys among the words of a call, of which the third one says how many there are.
fn keys(call: &CommandCall<'_>, no_integer: &str) -> Result<Range<usize>, CommandStop> {
    let Some(count) = numbers::integer(call.arg(2)) else {
        return CommandStop::refused(no_integer);
    };
    if count > call.len() as i64 - 3 {
        return CommandStop::refused("ERR Number of keys can't be greater than number of args");
    }
    match usize::try_from(count) {
        Ok(count) => Ok(3..3 + count),
        Err(_) => CommandStop::refused("ERR Number of keys can't be negative"),
    }
}

fn owned(call: &CommandCall<'_>, range: Range<usize>) -> Vec<Vec<u8>> {
    range.map(|at| call.arg(at).to_vec()).collect()
}

/// Whether the command is one of those that only read.
fn only_reads(call: &CommandCall<'_>) -> bool {
    call.arg(0).to_ascii_lowercase().ends_with(b"_ro")
}

/// What a script with these flags may do.
///
/// # Errors
/// It may not be run now, or by this command.
fn options(
    call: &CommandCall<'_>,
    flags: ScriptFlags,
    is_function: bool,
) -> Result<RunOptions, CommandStop> {
    if !flags.is_compatible {
        if !flags.no_writes && only_reads(call) {
            return CommandStop::refused(
                "ERR Can not execute a script with write flag using *_ro command.",
            );
        }
        if !flags.no_writes && !flags.allow_oom && call.host.is_over_memory() {
            return CommandStop::refused(
                "OOM allow-oom flag is not set on the script, can not run it when used memory > \
                 'maxmemory'",
            );
        }
    }
    let may_write = !only_reads(call) && !flags.no_writes;
    Ok(RunOptions { may_write, may_grow: flags.allow_oom, is_function })
}

/// What a client is answered of a script that has come to its end.
fn answered(end: ScriptEnd) -> Answer {
    match end {
        ScriptEnd::Answered(value) => Ok(of_script(value)),
        ScriptEnd::Invalid(why) => CommandStop::refused(String::from_utf8_lossy(&why)),
        _ => Ok(RespReply::Null),
    }
}

pub(super) async fn eval(call: &CommandCall<'_>) -> Answer {
    let engine = call.host.engine();
    let is_sha = call.arg(0).to_ascii_lowercase().starts_with(b"evalsha");
    if is_sha && call.arg(1).len() != SHA_LENGTH {
        return CommandStop::refused(NO_SCRIPT);
    }
    let keys = keys(call, texts::NO_INTEGER)?;
    let sha = match is_sha {
        true => String::from_utf8_lossy(call.arg(1)).to_ascii_lowercase(),
        false => sha1_hex(call.arg(1)),
    };
    let (code, flags, is_new) = match engine.cache.get(&sha) {
        Some(CachedScript { code, flags, .. }) => (code, flags, false),
        None if is_sha => return CommandStop::refused(NO_SCRIPT),
        None => match muesli_scripts::script(call.arg(1)) {
            Ok((flags, code)) => (code.into(), flags, true),
            Err(why) => return CommandStop::refused(format!("ERR {why}")),
        },
    };
    let options = options(call, flags, false)?;
    let args = owned(call, keys.end..call.len());
    let keys = owned(call, keys);
    let task = ScriptTask::Run { sha: sha.clone(), code: code.clone(), keys, args };
    let ran = run(call, &sha, task, options).await;
    if is_new && !matches!(ran, Ok(ScriptEnd::Invalid(_))) {
        engine.cache.insert(sha, code, flags);
    }
    answered(ran?)
}

pub(super) async fn fcall(call: &CommandCall<'_>) -> Answer {
    let name = String::from_utf8_lossy(call.arg(1)).into_owned();
    let Some((library, function)) = libraries(call).await?.function(&name) else {
        return CommandStop::refused("ERR Function not found");
    };
    let keys = keys(call, "ERR Bad number of keys provided")?;
    let options = options(call, ScriptFlags::of(&function.flags), true)?;
    let args = owned(call, keys.end..call.len());
    let keys = owned(call, keys);
    let (library, function) = (library.code.clone(), name.clone());
    let task = ScriptTask::Call { library, function, keys, args };
    answered(run(call, &name, task, options).await?)
}
