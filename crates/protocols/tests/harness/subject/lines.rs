//! One readable line for everything that is said, logged or answered.

use muesli_core::{Address, Answer, Envelope, Failure, Gave, Role, SmallBytes, SpaceId, TxnId};

use super::{Names, Subject};

/// A role: `n0` is the coordinator of node 0, `r0` is repository 0.
fn role(address: Address) -> String {
    match address.role {
        Role::Coordinator => format!("n{}", address.node.0),
        Role::Repository(repository) => format!("r{}", repository.0),
        Role::Service(service) => format!("{service} of n{}", address.node.0),
    }
}

pub fn name(txn: TxnId, names: &Names) -> String {
    names.get(&txn).cloned().unwrap_or_else(|| txn.to_string())
}

pub fn text(bytes: &SmallBytes) -> String {
    String::from_utf8_lossy(bytes.as_slice()).into_owned()
}

pub fn value(value: Option<&SmallBytes>) -> String {
    value.map_or_else(|| "nothing".to_owned(), text)
}

pub fn joined(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join(", ")
}

pub fn writes(writes: &[(SpaceId, SmallBytes, Option<SmallBytes>)]) -> String {
    joined(writes.iter().map(|(_, key, new)| format!("{}={}", text(key), value(new.as_ref()))))
}

pub fn envelope<P: Subject>(envelope: &Envelope<P::Message>, names: &Names) -> String {
    let (from, to) = (role(envelope.from), role(envelope.to));
    format!("{from} -> {to} {}", P::show_message(&envelope.message, names))
}

pub fn result(result: &Result<Answer, Failure>) -> String {
    match result {
        Ok(Answer::Value(found)) => value(found.as_ref()),
        Ok(Answer::Values(all)) => joined(all.iter().map(|found| value(found.as_ref()))),
        Ok(Answer::Rows(rows)) => {
            joined(rows.iter().map(|(key, found)| format!("{}={}", text(key), text(found))))
        }
        Ok(Answer::Committed(committed)) => format!("committed at {}", committed.at),
        Ok(Answer::Answered(committed, answers)) => {
            let all = joined(answers.iter().map(given));
            format!("committed at {}, and told: {all}", committed.at)
        }
        Ok(Answer::Invoked(invoked)) => {
            format!("{} at {}", joined(invoked.results.iter().map(text)), invoked.at)
        }
        Ok(Answer::Written) => "written".to_owned(),
        Ok(Answer::Awake) => "awake".to_owned(),
        Ok(Answer::Changed) => "changed".to_owned(),
        Ok(Answer::Ended) => "merged".to_owned(),
        Ok(answer @ (Answer::Begun(_) | Answer::Delayed(_) | Answer::Nested(_))) => {
            unreachable!("{answer:?} is never waited for")
        }
        Err(failure) => failure.to_string(),
    }
}

/// What was told of a delayed action.
pub fn given(gave: &Gave) -> String {
    match gave {
        Gave::Value(found) => value(found.as_ref()),
        Gave::Nothing(why) => format!("nothing was done: {}", text(why)),
        Gave::Unknown => "not known".to_owned(),
        Gave::TooMuch { size, limit } => format!("{size} bytes, more than {limit}"),
    }
}
