//! An inventory whose changes are *procedures*: one round trip a transaction, run where the data
//! live, by servers of one's own.
//!
//! `cargo run -p muesli-examples --bin inventory` starts a server in this process, orders from it,
//! and ends. `-- serve DATA-FOLDER` is the server alone: it listens on 127.0.0.1:7400, keeps its
//! data in a log in the folder, and stops cleanly on SIGTERM or Ctrl-C. `-- order ADDRESS` orders
//! from that one.

use muesli::procedures::{Keys, Spaces, StoredProcedure, TouchesFn};
use muesli::server::{self, Durability, RunningServer, ServerOptions};
use muesli::{Connect, Db, Error, Footprint, Key, Refuses, SpaceOptions, Stop, Touched};

/// Protocols of the Granola family run one-round transactions.
const PROTOCOL: &str = "granola";

/// Puts items into stock, and tells how many there are.
struct Restock;

impl StoredProcedure for Restock {
    const NAME: &'static str = "restock";
    /// It never says no, so no repository has to ask the others.
    const REFUSES: Refuses = Refuses::Never;
    type Arguments = (String, u64);
    type Answer = u64;

    fn run(keys: &mut Keys<'_>, (item, more): (String, u64)) -> Result<u64, Stop> {
        let stock = keys.space("stock")?.typed::<String, u64>();
        let count = keys.read(stock, &item)?.unwrap_or(0) + more;
        keys.write(stock, &item, &count)?;
        Ok(count)
    }
}

/// Takes items out of stock, or refuses: then nothing of the whole call happens, on any repository.
struct Take;

impl StoredProcedure for Take {
    const NAME: &'static str = "take";
    const REFUSES: Refuses = Refuses::Alone;
    /// All that it may touch, from its arguments: others need not wait for it.
    const TOUCHES: Option<TouchesFn<Self::Arguments>> =
        Some(|spaces: &Spaces<'_>, (item, _): &Self::Arguments| {
            let key = Touched::Key(spaces.space("stock")?.id(), item.encoded());
            Ok(Footprint { writes: vec![key], ..Footprint::default() })
        });
    type Arguments = (String, u64);
    type Answer = u64;

    fn run(keys: &mut Keys<'_>, (item, less): (String, u64)) -> Result<u64, Stop> {
        let stock = keys.space("stock")?.typed::<String, u64>();
        let count = keys.read(stock, &item)?.unwrap_or(0);
        let left = count.checked_sub(less);
        let refused = || Stop::Refused(format!("only {count} {item} left").as_str().into());
        let left = left.ok_or_else(refused)?;
        keys.write(stock, &item, &left)?;
        Ok(left)
    }
}

/// The options of the server: procedures must be known on every server, under the same names.
fn server_options(listen: &str, durability: Durability) -> ServerOptions {
    let options = ServerOptions {
        protocol: PROTOCOL.to_owned(),
        listen: listen.to_owned(),
        repositories: 4,
        durability,
        ..server::options()
    };
    server::with_procedure::<Take>(server::with_procedure::<Restock>(options))
}

/// A client. It knows the procedures, too: what is declared of them decides how a call is run.
fn connect(address: String) -> Result<Db, Error> {
    let connect = Connect { protocol: PROTOCOL.to_owned(), ..Connect::default() };
    let connect = connect.procedure::<Restock>().procedure::<Take>();
    Db::connect_with(Connect { addresses: vec![address], ..connect })
}

fn order(address: String) -> Result<(), Error> {
    let db = connect(address)?;
    let stock = db.create_space("stock", SpaceOptions::default())?.typed::<String, u64>();
    let place = |item: &str| stock.place(item);
    let few = |item: &str, count: u64| (item.to_owned(), count);
    for (item, count) in [("pens", 10), ("inks", 2)] {
        let restock = db.call(Restock::NAME, 1).at(place(item), &few(item, count));
        println!("{item}: {}", restock.wait()?.of::<u64>(0)?);
    }
    // Several fragments, perhaps on several repositories, are one transaction.
    let order = |pens: u64, inks: u64| {
        let call = db.call(Take::NAME, 1).with::<Take>(place("pens"), &few("pens", pens));
        call.with::<Take>(place("inks"), &few("inks", inks)).wait()
    };
    let left = order(3, 1)?;
    println!("left: {} pens, {} inks", left.of::<u64>(0)?, left.of::<u64>(1)?);
    match order(3, 5) {
        Err(Error::Refused(why)) => println!("refused: {why}"),
        other => panic!("five inks are not there: {other:?}"),
    }
    // Nothing of the refused order happened, to the pens neither.
    let pens = db.call(Restock::NAME, 1).at(place("pens"), &few("pens", 0)).wait()?;
    println!("pens: {}", pens.of::<u64>(0)?);
    db.close();
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["serve", folder] | ["serve", folder, _] => {
            let listen = arguments.get(2).map_or("127.0.0.1:7400", String::as_str);
            let options = server_options(listen, Durability::Log(folder.into()));
            // Returns when the process is told to stop, by SIGTERM or SIGINT (Ctrl-C).
            server::serve(&options, 1, |address| println!("listening on {address}"))?;
            println!("stopped");
        }
        ["order", address] => order(address.to_owned())?,
        [] => {
            let server =
                RunningServer::start(server_options("127.0.0.1:0", Durability::Memory), 1)?;
            order(server.address().to_string())?;
            server.stop()?;
        }
        _ => return Err("usage: inventory [serve FOLDER [LISTEN] | order ADDRESS]".into()),
    }
    Ok(())
}
