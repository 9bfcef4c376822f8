//! Runs scripts, and answers the commands that they call.

use muesli_scripts::{
    Interpreter, ScriptEnd, ScriptInput, ScriptJob, ScriptLimits, ScriptStep, ScriptTask,
    ScriptValue, sha1_hex,
};

/// An interpreter, and what its scripts have called.
pub struct Harness {
    pub interpreter: Interpreter,
    pub limits: ScriptLimits,
    pub called: Vec<String>,
    pub pauses: usize,
    pub logged: Vec<String>,
}

impl Harness {
    pub fn new() -> Harness {
        let (interpreter, limits) = (Interpreter::new().unwrap(), ScriptLimits::default());
        Harness { interpreter, limits, called: Vec::new(), pauses: 0, logged: Vec::new() }
    }

    /// Does a task to its end.
    pub fn finish(&mut self, task: ScriptTask) -> ScriptEnd {
        let job = ScriptJob { task: task.into(), limits: self.limits, seed: 1 };
        let mut step = self.interpreter.start(job);
        loop {
            let input = match step {
                ScriptStep::Call { words, resp3 } => {
                    let words: Vec<_> =
                        words.iter().map(|it| String::from_utf8_lossy(it).into_owned()).collect();
                    self.called.push(words.join(" "));
                    ScriptInput::Reply(reply(&words, resp3))
                }
                ScriptStep::Check(_) => ScriptInput::Reply(ScriptValue::Bool(true)),
                ScriptStep::Log(_, line) => {
                    self.logged.push(String::from_utf8_lossy(&line).into_owned());
                    ScriptInput::Continue
                }
                ScriptStep::Pause => {
                    self.pauses += 1;
                    ScriptInput::Continue
                }
                ScriptStep::Done(end) => return end,
            };
            step = self.interpreter.resume(input);
        }
    }

    /// Runs a script with these arguments.
    pub fn run_with(&mut self, code: &str, keys: &[&str], args: &[&str]) -> ScriptEnd {
        let owned = |all: &[&str]| all.iter().map(|it| it.as_bytes().to_vec()).collect();
        self.finish(ScriptTask::Run {
            sha: sha1_hex(code.as_bytes()),
            code: code.as_bytes().into(),
            keys: owned(keys),
            args: owned(args),
        })
    }

    pub fn run(&mut self, code: &str) -> ScriptEnd {
        self.run_with(code, &[], &[])
    }

    /// What a script answers, or fails with, as text.
    pub fn text(&mut self, code: &str) -> String {
        match self.run(code) {
            ScriptEnd::Answered(value) => text(&value),
            ScriptEnd::Failed(why) | ScriptEnd::Invalid(why) => {
                String::from_utf8_lossy(&why).into_owned()
            }
            ScriptEnd::Stopped(why) => why,
            other => panic!("{other:?}"),
        }
    }

    /// Runs the scripts of a text, each `script -> answer`, over one line or several.
    pub fn play(&mut self, lines: &str) {
        let mut code = String::new();
        for line in lines.lines().map(str::trim).filter(|it| !it.is_empty()) {
            code += line;
            code.push(' ');
            if let Some((script, expected)) = code.clone().split_once("-> ") {
                let (script, expected) = (script.trim(), expected.trim());
                assert_eq!(self.text(script).trim_end(), expected, "{script}");
                code.clear();
            }
        }
        assert_eq!(code, "", "the last script has no answer");
    }
}

/// A reply as text: arrays in brackets, nothing as `nil`.
fn text(value: &ScriptValue) -> String {
    let bytes = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let all = |all: &[ScriptValue]| all.iter().map(text).collect::<Vec<_>>().join(" ");
    match value {
        ScriptValue::Status(word) => "+".to_owned() + &bytes(word),
        ScriptValue::Error(why) => "-".to_owned() + &bytes(why),
        ScriptValue::Integer(value) => value.to_string(),
        ScriptValue::Bytes(text) => bytes(text),
        ScriptValue::Null => "nil".to_owned(),
        ScriptValue::Array(values) => format!("[{}]", all(values)),
        ScriptValue::Set(values) => format!("~[{}]", all(values)),
        ScriptValue::Map(pairs) => {
            let pairs: Vec<_> = pairs.iter().map(|it| text(&it.0) + "=" + &text(&it.1)).collect();
            format!("{{{}}}", pairs.join(" "))
        }
        ScriptValue::Double(value) => format!(",{value}"),
        ScriptValue::Bool(yes) => format!("#{yes}"),
        ScriptValue::BigNumber(digits) => "(".to_owned() + &bytes(digits),
        ScriptValue::Verbatim(format, text) => format!("={}:{}", bytes(format), bytes(text)),
    }
}

/// What the commands answer that tests call.
fn reply(words: &[String], resp3: bool) -> ScriptValue {
    let bulk = |text: &str| ScriptValue::Bytes(text.as_bytes().to_vec());
    match &*words[0] {
        "ping" => ScriptValue::Status(b"PONG".to_vec()),
        "echo" => bulk(&words[1]),
        "fail" => ScriptValue::error("WRONGTYPE it is of another type"),
        "incr" => ScriptValue::Integer(7),
        "get" => ScriptValue::Null,
        "double" => ScriptValue::Double(1.5),
        "yes" => ScriptValue::Bool(true),
        "map" => ScriptValue::Map(vec![(bulk("a"), ScriptValue::Integer(1))]),
        "set" => ScriptValue::Set(vec![bulk("a")]),
        "version" => ScriptValue::Integer(if resp3 { 3 } else { 2 }),
        _ => ScriptValue::Array(words[1..].iter().map(|it| bulk(it)).collect()),
    }
}
