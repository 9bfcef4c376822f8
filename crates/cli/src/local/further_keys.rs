//! Keys of servers' files that are given by `--set`, beside those that a local cluster writes.

use anyhow::{Context, bail};

use crate::config::Config;

/// The keys that are written for each server anyway, and how they are chosen instead.
const WRITTEN: [(&str, &str); 17] = [
    ("node", ""),
    ("listen", ""),
    ("servers", "--servers"),
    ("loops", "--loops"),
    ("repositories", "--repositories"),
    ("replicas", "--replicas"),
    ("group", "--group"),
    ("protocol", "--protocol"),
    ("tree", "--tree"),
    ("validators", "--validators"),
    ("validator_servers", "--validator-nodes"),
    ("batch", "--batch"),
    ("batch_timeout_us", "--batch-timeout"),
    ("batch_links", "--batch-links"),
    ("durability", "--memory"),
    ("data_dir", "--dir"),
    ("secret_file", ""),
];

/// Lines for the servers' files from texts `KEY=VALUE`; a value need not stand in quotes.
///
/// # Errors
/// There is no such key, it does not take the value, it is given twice, or the command writes it.
pub fn further_keys(given: &[String]) -> anyhow::Result<Vec<String>> {
    let mut names: Vec<&str> = Vec::new();
    let mut lines = Vec::new();
    for text in given {
        let (name, line) = one(text)?;
        if names.contains(&name) {
            bail!("--set {name} is given twice");
        }
        names.push(name);
        lines.push(line);
    }
    Ok(lines)
}

fn one(text: &str) -> anyhow::Result<(&str, String)> {
    let (name, value) = text.split_once('=').with_context(|| {
        format!("--set {text}: expected KEY=VALUE, as in checkpoint_bytes=1000000")
    })?;
    let (name, value) = (name.trim(), value.trim());
    match WRITTEN.iter().find(|(written, _)| *written == name) {
        Some((_, "")) => bail!("--set {name}: this command writes `{name}` itself"),
        Some((_, option)) => bail!("--set {name}: this command writes `{name}`; give {option}"),
        None => {}
    }
    let as_it_is = format!("{name} = {value}");
    let line = match as_it_is.parse::<toml::Table>() {
        Ok(_) => as_it_is,
        Err(_) => toml::Table::from_iter([(name.to_owned(), value.into())]).to_string(),
    };
    Config::default().read_text(&line, &format!("--set {text}"))?;
    Ok((name, line.trim_end().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(given: &[&str]) -> Result<Vec<String>, String> {
        let given: Vec<_> = given.iter().map(|text| (*text).to_owned()).collect();
        further_keys(&given).map_err(|error| format!("{error:#}"))
    }

    #[test]
    fn values_need_no_quotes() {
        let lines = keys(&["checkpoint_bytes=1_000_000", "dial=0=a:1", "masters = [1]"]).unwrap();
        assert_eq!(lines, ["checkpoint_bytes = 1_000_000", "dial = \"0=a:1\"", "masters = [1]"]);
    }

    #[test]
    fn what_is_wrong_with_a_key_is_told() {
        let error = |given: &[&str]| keys(given).unwrap_err();
        assert!(error(&["protocol=2pc"]).contains("give --protocol"));
        assert!(error(&["node=3"]).contains("writes `node` itself"));
        assert!(error(&["checkpoint_byte=1"]).contains("did you mean `checkpoint_bytes`?"));
        assert!(error(&["alive_every_ms=soon"]).contains("`alive_every_ms` = `soon`: a number"));
        assert!(error(&["alive_every_ms"]).contains("KEY=VALUE"));
        assert!(error(&["alive_every_ms=5", "alive_every_ms=6"]).contains("given twice"));
    }
}
