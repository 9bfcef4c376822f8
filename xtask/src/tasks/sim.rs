//! `cargo xtask sim`: the searches by protocol.

use xtask::searches;

use super::{Done, built, muesli, muesli_for_searches, output, program};

/// What is asked for.
#[derive(Default)]
struct SimArguments<'a> {
    protocols: Vec<&'a str>,
    first: Option<u64>,
    times: u64,
    which: SearchList,
    list: bool,
    built: bool,
}

/// A list of searches.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum SearchList {
    /// Those that each commit is tried with.
    #[default]
    Commit,
    Nesting,
    Ordering,
}

pub fn run(arguments: &[&str]) -> Done {
    let asked = read(arguments)?;
    let all = match asked.which {
        SearchList::Commit => searches::of_commits(),
        SearchList::Nesting => searches::of_nesting(),
        SearchList::Ordering => searches::of_ordering(),
    };
    if let Some(unknown) = asked.protocols.iter().find(|it| !all.iter().any(|s| s.protocol == **it))
    {
        let mut known: Vec<_> = all.iter().map(|search| search.protocol).collect();
        known.sort_unstable();
        known.dedup();
        return Err(format!("no search is of `{unknown}`; there are: {}", known.join(", ")));
    }
    let first = asked.first.map_or_else(of_commit, Ok)?;
    let wanted = |protocol: &str| asked.protocols.is_empty() || asked.protocols.contains(&protocol);
    let searches = all.iter().filter(|search| wanted(search.protocol));
    let program_path = match (asked.list, asked.built) {
        (true, _) => "muesli".into(),
        (false, true) => built(),
        (false, false) if asked.which == SearchList::Commit => muesli()?,
        (false, false) => muesli_for_searches()?,
    };
    let mut failed = Vec::new();
    for search in searches {
        let arguments = search.arguments(first, asked.times);
        let mut command = program(&program_path.to_string_lossy());
        command.args(&arguments);
        match asked.list {
            true => println!("muesli {}", arguments.join(" ")),
            false => failed.extend(super::run(&mut command).err()),
        }
    }
    match failed.is_empty() {
        true => Ok(()),
        false => Err(format!("{} searches failed:\n{}", failed.len(), failed.join("\n"))),
    }
}

fn read<'a>(arguments: &[&'a str]) -> Result<SimArguments<'a>, String> {
    let mut asked = SimArguments { times: 1, ..SimArguments::default() };
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let mut number = || {
            let text = rest.next().ok_or_else(|| format!("{argument} wants a number"))?;
            text.parse::<u64>().map_err(|_| format!("{argument} {text}: this is no number"))
        };
        match *argument {
            "--first" => asked.first = Some(number()?),
            "--times" => asked.times = number()?.max(1),
            "--nesting" => asked.which = SearchList::Nesting,
            "--ordering" => asked.which = SearchList::Ordering,
            "--list" => asked.list = true,
            "--built" => asked.built = true,
            option if option.starts_with('-') => return Err(format!("no option {option}")),
            protocol => asked.protocols.push(protocol),
        }
    }
    Ok(asked)
}

/// A seed that each commit has of its own: the same for all who search it.
fn of_commit() -> Result<u64, String> {
    match output(program("git").args(["rev-parse", "HEAD"])) {
        Ok(hash) => u64::from_str_radix(hash.get(..7).unwrap_or("1"), 16)
            .map_err(|error| format!("git's answer is no hash: {error}")),
        Err(_) => Ok(1), // Not a checkout of git.
    }
}
