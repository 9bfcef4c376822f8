//! Names that commands take, and which one was meant by a name that there is not.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use muesli_registry::{names as protocol_names, stored_name};
use muesli_sim::plan::fault::{FaultError, FaultKind, FaultKinds};
use muesli_workloads::available::Description;

/// The protocols, with the names that they had earlier; of a name that there is not clap says
/// which one is alike.
pub fn protocols() -> impl TypedValueParser<Value = String> {
    let protocol = |name: &'static str| {
        // Of a name that was always so, this is the name itself.
        PossibleValue::new(name).alias(stored_name(name))
    };
    PossibleValuesParser::new(protocol_names().into_iter().map(protocol).collect::<Vec<_>>())
}

/// Kinds of faults, with commas between.
///
/// # Errors
/// There is no such kind.
pub fn faults(text: &str) -> Result<FaultKinds, String> {
    text.parse().map_err(|error| {
        let meant = match &error {
            FaultError::Kind(name) => {
                let kinds = FaultKind::ALL.iter().map(|kind| kind.name());
                nearest(name, kinds.chain(["none", "all"]))
            }
            _ => None,
        };
        format!("{error}{}", question(meant))
    })
}

/// Looks whether a workload has parameters of these names (`name=value`), each given once.
///
/// # Errors
/// It has not, or one is given twice.
pub fn check_parameters(workload: &Description, parameters: &[String]) -> anyhow::Result<()> {
    for (number, text) in parameters.iter().enumerate() {
        let name = name_of(text);
        if parameters[..number].iter().any(|earlier| name_of(earlier) == name) {
            anyhow::bail!("--param {name} is given twice");
        }
        // What is not `name=value` is refused by the workload, which says what it expects.
        if !text.contains('=') || workload.takes(name) {
            continue;
        }
        let names = workload.parameters.iter().map(|parameter| parameter.name);
        let all = names.clone().collect::<Vec<_>>().join(", ");
        let meant = question(nearest(name, names));
        anyhow::bail!("{} has no parameter `{name}`{meant}\nit has: {all}", workload.name);
    }
    Ok(())
}

/// The name in `name=value`.
pub fn name_of(text: &str) -> &str {
    text.split('=').next().unwrap_or_default().trim()
}

/// `; did you mean ...?`, if one was meant.
pub fn question(meant: Option<&str>) -> String {
    meant.map_or(String::new(), |meant| format!("; did you mean `{meant}`?"))
}

/// The name that was meant, if one is near: a third of its letters is different at most, or it
/// begins so.
pub fn nearest<'a>(name: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let length = name.chars().count();
    let begins = |known: &str| length >= 3 && known.starts_with(name);
    let distance = |known: &str| match strsim::damerau_levenshtein(known, name) {
        letters if letters <= (length / 3).max(1) => Some((letters, known.len())),
        letters if begins(known) => Some((letters, known.len())),
        _ => None,
    };
    let near = names.into_iter().filter_map(|known| Some((distance(known)?, known)));
    near.min().map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use muesli_workloads::available::find;

    use super::*;

    #[test]
    fn the_nearest_name_is_meant_and_a_far_one_is_not() {
        let of = |name| nearest(name, protocol_names());
        assert_eq!(of("scor"), Some("score"));
        assert_eq!(of("bmuper"), Some("bumper"));
        assert_eq!(of("repeatable"), Some("repeatable-read"));
        assert_eq!(of("paxos"), None);
        assert_eq!(of(""), None);
    }

    #[test]
    fn a_kind_of_fault_is_suggested_where_one_is_alike() {
        assert!(faults("crash,link").is_ok() && faults("all").is_ok());
        assert!(faults("crahs,link").unwrap_err().ends_with("; did you mean `crash`?"));
        assert!(faults("al").unwrap_err().ends_with("; did you mean `all`?"));
        let error = faults("all,flood").unwrap_err();
        assert!(error.starts_with("`flood`") && !error.contains("did you mean"), "{error}");
    }

    #[test]
    fn parameters_are_known_and_given_once() {
        let bank = find("bank").unwrap();
        let check = |given: &[&str]| {
            let given: Vec<_> = given.iter().map(|text| (*text).to_owned()).collect();
            check_parameters(bank, &given).map_err(|error| error.to_string())
        };
        assert_eq!(check(&["calls=3", "locality=1"]), Ok(()));
        assert_eq!(check(&["calls"]), Ok(()), "the workload says what is wrong with it");
        assert_eq!(
            check(&["calls=3", " calls =4"]),
            Err("--param calls is given twice".to_owned())
        );
        let error = check(&["cals=3"]).unwrap_err();
        assert!(error.contains("`cals`; did you mean `calls`?") && error.contains("locality"));
    }
}
