//! What a library registers: its code is run for that.

use std::time::Duration;

use muesli_scripts::{LibraryFunction, ScriptEnd, ScriptLimits, ScriptTask};

use super::drive::examine;
use crate::call::CommandCall;
use crate::engine::Library;
use crate::keyspace::stop::CommandStop;

/// The code of a library may run for so long when it is loaded.
const LOAD_TIME: Duration = Duration::from_millis(500);

/// A library of this code, which is run to see what it registers.
pub(super) async fn registered(
    call: &CommandCall<'_>,
    payload: &[u8],
) -> Result<Library, CommandStop> {
    let library = refused_or(Library::new(payload, Vec::new()))?;
    let limits = call.taken.left(call.host.engine().limits.get());
    let limits = ScriptLimits { time: limits.time.min(LOAD_TIME), ..limits };
    let task = ScriptTask::Load { code: library.code.code.clone() };
    let functions: Vec<LibraryFunction> = match examine(call, task, limits).await? {
        ScriptEnd::Loaded(functions) => functions,
        ScriptEnd::Invalid(why) | ScriptEnd::Failed(why) => {
            return CommandStop::refused(String::from_utf8_lossy(&why));
        }
        _ => {
            let text = "ERR Error registering functions: ERR FUNCTION LOAD timeout";
            return CommandStop::refused(text);
        }
    };
    Ok(Library { functions, ..library })
}

/// What was found, or that it is refused for this reason.
pub(super) fn refused_or<T>(found: Result<T, String>) -> Result<T, CommandStop> {
    found.map_err(|why| CommandStop::Refused(format!("ERR {why}")))
}
