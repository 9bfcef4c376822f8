//! The table of commands in the manual.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::roles::described_role;
use super::table::all;

/// What comes before the table in the manual, and after it.
const MARKS: (&str, &str) = ("<!-- commands -->\n", "<!-- end of commands -->\n");

/// The manual with the table of commands as it is to be.
///
/// # Errors
/// The page has no place for the table.
pub fn page(before: &str) -> Result<String, &'static str> {
    let (head, rest) = before.split_once(MARKS.0).ok_or("the page has no `<!-- commands -->`")?;
    let (_, tail) = rest.split_once(MARKS.1).ok_or("the page has no `<!-- end of commands -->`")?;
    Ok(format!("{head}{}{}{}{tail}", MARKS.0, table(), MARKS.1))
}

fn table() -> String {
    let mut groups: BTreeMap<&str, Vec<_>> = BTreeMap::new();
    for spec in all() {
        groups.entry(spec.group).or_default().push(spec);
    }
    let mut text = String::new();
    for (group, mut specs) in groups {
        specs.sort_by_key(|spec| spec.name);
        let _ = write!(text, "\n### {}{}\n\n", group[..1].to_ascii_uppercase(), &group[1..]);
        text.push_str("| command | since | complexity here | role | differences |\n");
        text.push_str("| --- | --- | --- | --- | --- |\n");
        for spec in specs {
            let name = spec.name.to_ascii_uppercase();
            let (since, cost, differs) = (spec.since, spec.complexity, spec.differs);
            let role = described_role(spec);
            let _ = writeln!(text, "| `{name}` | {since} | {cost} | {role} | {differs} |");
        }
    }
    text.push('\n');
    text
}
