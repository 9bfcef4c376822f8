//! `cargo xtask clients`: programs of other languages over clients of Redis, against a server.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use xtask::files;

use super::{Done, built, muesli, program, target};

/// A client library, and how its program is made ready and run.
struct ClientLibrary {
    name: &'static str,
    /// Commands that fetch the library and compile the program, in a folder of its own.
    prepared_by: &'static [&'static str],
    /// The command that is given the server's host and port.
    run_by: &'static str,
}

const LIBRARIES: &[ClientLibrary] = &[
    ClientLibrary {
        name: "redis-py",
        prepared_by: &[
            "python3 -m venv venv",
            "venv/bin/pip install --quiet --disable-pip-version-check -r requirements.txt",
        ],
        run_by: "venv/bin/python main.py",
    },
    ClientLibrary {
        name: "ioredis",
        prepared_by: &["npm install --silent --no-fund --no-audit"],
        run_by: "node main.js",
    },
    ClientLibrary {
        name: "node-redis",
        prepared_by: &["npm install --silent --no-fund --no-audit"],
        run_by: "node main.js",
    },
    ClientLibrary { name: "go-redis", prepared_by: &["go build -o client ."], run_by: "./client" },
    ClientLibrary {
        name: "jedis",
        prepared_by: &["mvn --quiet --batch-mode compile dependency:copy-dependencies"],
        run_by: "java -cp target/classes:target/dependency/* Main",
    },
];

/// Runs the programs of these libraries, or of all, one after the other. With `--built` the server
/// is the one that the tests have built.
pub fn run(arguments: &[&str]) -> Done {
    let (options, names): (Vec<&str>, Vec<&str>) =
        arguments.iter().partition(|argument| argument.starts_with("--"));
    if let Some(unknown) = options.iter().find(|option| **option != "--built") {
        return Err(format!("{unknown}: this task has one option, --built"));
    }
    if let Some(unknown) = names.iter().find(|name| !LIBRARIES.iter().any(|it| it.name == **name)) {
        let known: Vec<_> = LIBRARIES.iter().map(|library| library.name).collect();
        return Err(format!("no client library is `{unknown}`; there are: {}", known.join(", ")));
    }
    let server = if options.is_empty() { muesli()? } else { built() };
    let wanted = |name: &str| names.is_empty() || names.contains(&name);
    let mut failed = Vec::new();
    for library in LIBRARIES.iter().filter(|library| wanted(library.name)) {
        failed.extend(try_library(library, &server).err());
    }
    match failed.is_empty() {
        true => Ok(()),
        false => Err(failed.join("\n")),
    }
}

fn try_library(library: &ClientLibrary, server: &Path) -> Done {
    let folder = copied(library.name).map_err(|error| format!("{}: {error}", library.name))?;
    for line in library.prepared_by {
        super::run(&mut command(line, &folder))?;
    }
    let (mut server, address) = started(server)?;
    let (host, port) = address.rsplit_once(':').expect("an address has a port");
    let ended = super::run(command(library.run_by, &folder).args([host, port]));
    // It keeps nothing, and is asked for nothing any more.
    let stopped = server.kill().and_then(|()| server.wait());
    stopped.map_err(|error| format!("the server cannot be stopped: {error}"))?;
    ended
}

/// What is to be built is built outside of the sources.
fn copied(name: &str) -> std::io::Result<PathBuf> {
    let source = files::root().join("examples").join("clients").join(name);
    let folder = target().join("clients").join(name);
    copy(&source, &folder)?;
    folder.canonicalize()
}

fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        match entry.file_type()?.is_dir() {
            true => copy(&entry.path(), &to)?,
            false => std::fs::copy(entry.path(), to).map(|_| ())?,
        }
    }
    Ok(())
}

fn command(line: &str, folder: &Path) -> Command {
    let mut words = line.split(' ');
    let mut command = Command::new(words.next().expect("a command has a name"));
    command.args(words).current_dir(folder);
    command
}

/// A server with an empty database, and its address for Redis's clients.
fn started(muesli: &Path) -> Result<(Child, String), String> {
    let mut command = program(&muesli.to_string_lossy());
    command.args(["start", "--resp", "127.0.0.1:0", "--durability", "memory"]);
    let mut server = command.stdout(Stdio::piped()).spawn().map_err(|error| {
        format!("{} cannot be run: {error}; `cargo build` makes it", muesli.display())
    })?;
    let mut line = String::new();
    let printed = server.stdout.as_mut().expect("it is piped");
    let read = BufReader::new(printed).read_line(&mut line);
    read.map_err(|error| format!("the server prints nothing: {error}"))?;
    let address = line.split("clients on ").nth(1).and_then(|rest| rest.split(';').next());
    match address {
        Some(address) => Ok((server, address.to_owned())),
        None => {
            let _ = server.kill();
            let _ = server.wait();
            Err(format!("the server did not say where it listens: {line}"))
        }
    }
}
