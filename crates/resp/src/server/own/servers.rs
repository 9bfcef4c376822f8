//! Commands of the server, of which most say that there is nothing of the kind here.

use super::ServerCall;
use crate::clock::since_1970;
use crate::protocol::numbers;
use crate::protocol::reply::RespReply;

pub(super) fn run(asked: ServerCall<'_>, name: &str) -> RespReply {
    let refused = |text: &str| RespReply::Error(text.to_owned());
    match name {
        "time" => {
            let now = since_1970();
            RespReply::bulks([now.as_secs().to_string(), now.subsec_micros().to_string()])
        }
        "wait" => wait(asked),
        "lastsave" => RespReply::Integer(asked.shared.now_ms() as i64 / 1000),
        "role" => RespReply::Array(vec![
            RespReply::bulk("master"),
            RespReply::Integer(0),
            RespReply::Array(Vec::new()),
        ]),
        "cluster" => refused("ERR This instance has cluster support disabled"),
        "save" | "bgsave" | "bgrewriteaof" if !asked.shared.durable => {
            refused("ERR this server keeps everything in memory: there is nowhere to save it")
        }
        "save" | "bgsave" | "bgrewriteaof" => {
            refused("ERR what is acknowledged is on the disk already: there is nothing to save")
        }
        "debug" => refused("ERR DEBUG command not allowed."),
        "monitor" => refused("ERR MONITOR is not supported by this server"),
        "replicaof" | "slaveof" => refused("ERR this server takes no data from a Redis"),
        "shutdown" => refused("ERR the server is stopped by a signal (SIGTERM)"),
        "function" | "script" if asked.is(1, "FLUSH") => RespReply::OK,
        "function" if asked.is(1, "LIST") => RespReply::Array(Vec::new()),
        "script" if asked.is(1, "EXISTS") => {
            RespReply::Array((2..asked.len()).map(|_| RespReply::Integer(0)).collect())
        }
        "function" | "script" | "eval" | "evalsha" | "eval_ro" | "evalsha_ro" | "fcall"
        | "fcall_ro" => {
            refused("ERR this server was built without scripts: build it with `--features scripts`")
        }
        _ => asked.unknown(),
    }
}

/// What is acknowledged is where it is to be: no other server is waited for.
fn wait(asked: ServerCall<'_>) -> RespReply {
    let number = |at: usize| numbers::integer(asked.arg(at));
    match (number(1), number(2)) {
        (Some(_), Some(0..)) => RespReply::Integer(0),
        (Some(_), Some(_)) => RespReply::Error("ERR timeout is negative".to_owned()),
        _ => RespReply::Error("ERR value is not an integer or out of range".to_owned()),
    }
}
