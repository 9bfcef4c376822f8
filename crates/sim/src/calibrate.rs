//! Measuring what a real node's work costs, for the processors of the simulated ones.
//!
//! A pair of real nodes runs transactions of several shapes: with keys here or there, reading and
//! writing more or less, with short and long values, logging or not. Each shape gives an equation:
//! so many messages, reads, bytes and so on took so long. The costs are what fits all equations
//! best without being negative. What the loop itself costs is measured on a connection to the own
//! machine: per turn it looks once whether anything has come, and reads and writes once per other
//! node that there is something from or for. What it costs to hand something over to another loop
//! of the same process is measured between two threads.
//!
//! This is the one part of the simulator that looks at a real clock. Nothing else depends on it
//! but through the file of figures that is kept.

mod fit;
mod handover;
mod pair;

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Instant;

use muesli_core::Protocol;
use pair::{CalibrationPair, PairShape};

use crate::hardware::costs::Costs;
use crate::hardware::processor::ProcessorLoad;
use crate::time::Span;

/// One equation: what was done, and how long it took in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct CalibrationRun {
    load: ProcessorLoad,
    nanos: f64,
}

/// So many transactions of each shape run before measuring, and so many are measured at once.
const WARM_UP: u64 = 500;
const ROUNDS: u64 = 2_000;
/// The fastest of so many measurements counts: what is slower was disturbed.
const REPEATS: usize = 7;

/// Measures the costs of a node of protocol `P` on this machine. Takes a few seconds; `progress`
/// is told what is measured next.
///
/// # Errors
/// There is no loopback network to measure a turn with, or no temporary file to sync.
pub fn measure<P: Protocol>(mut progress: impl FnMut(&str)) -> io::Result<Costs> {
    progress("a node");
    let mut equations = Vec::new();
    for logging in [false, true] {
        let mut pair = CalibrationPair::<P>::new(logging);
        for shape in PairShape::all() {
            equations.push(measure_shape(&mut pair, shape));
        }
    }
    let costs = fit::fit(&equations);
    progress("a connection");
    let (short, long) =
        (CalibrationConnection::measure(SHORT_BYTES)?, CalibrationConnection::measure(LONG_BYTES)?);
    let more = (long.read + long.write - short.read - short.write).max(0.0);
    // Every byte is counted twice, where it is sent and where it is received.
    let byte_nanos = more / (LONG_BYTES - SHORT_BYTES) as f64 / 2.0;
    let span = |nanos: f64| Span::from_nanos(nanos.round() as u64);
    progress("another loop");
    let handover = handover::measure();
    progress("a disk");
    Ok(Costs {
        sync: span(sync()?),
        tick: span(short.look),
        fetch: span(short.read),
        flush: span(short.write),
        core: span(handover),
        byte_picos: costs.byte_picos + (byte_nanos * 1_000.0).round() as u64,
        ..costs
    })
}

fn measure_shape<P: Protocol>(pair: &mut CalibrationPair<P>, shape: PairShape) -> CalibrationRun {
    (0..WARM_UP).for_each(|_| pair.transaction(shape));
    let mut best: Option<CalibrationRun> = None;
    for _ in 0..REPEATS {
        pair.take_load();
        let started = Instant::now();
        (0..ROUNDS).for_each(|_| pair.transaction(shape));
        let nanos = started.elapsed().as_nanos() as f64;
        let measured = CalibrationRun { load: pair.take_load(), nanos };
        if best.is_none_or(|best| measured.nanos < best.nanos) {
            best = Some(measured);
        }
    }
    best.expect("there was at least one repeat")
}

/// So many syncs are measured.
const SYNCS: usize = 50;

/// The median time that it takes to make 256 appended bytes of a temporary file stable.
fn sync() -> io::Result<f64> {
    let path = std::env::temp_dir().join(format!("muesli-calibrate-{}", std::process::id()));
    let mut file = File::create(&path)?;
    let mut once = || {
        file.write_all(&[7; 256])?;
        let started = Instant::now();
        file.sync_data()?;
        Ok(started.elapsed().as_nanos() as f64)
    };
    let times: io::Result<Vec<f64>> = (0..SYNCS).map(|_| once()).collect();
    std::fs::remove_file(&path)?;
    let mut times = times?;
    times.sort_by(f64::total_cmp);
    Ok(times[SYNCS / 2])
}

/// What a connection to this machine costs, in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct CalibrationConnection {
    /// Looking whether anything has come, when nothing has.
    look: f64,
    /// One read.
    read: f64,
    /// One write.
    write: f64,
}

/// So many bytes are read and written at once, to see what a byte costs.
const SHORT_BYTES: usize = 64;
const LONG_BYTES: usize = 16 * 1_024;

impl CalibrationConnection {
    fn measure(bytes: usize) -> io::Result<CalibrationConnection> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let mut near = TcpStream::connect(listener.local_addr()?)?;
        let (mut far, _) = listener.accept()?;
        near.set_nodelay(true)?;
        near.set_nonblocking(true)?;
        let mut buffer = vec![0; bytes];
        let mut best = CalibrationConnection {
            look: f64::INFINITY,
            read: f64::INFINITY,
            write: f64::INFINITY,
        };
        for _ in 0..REPEATS * 1_000 {
            let started = Instant::now();
            far.write_all(&buffer)?;
            best.write = best.write.min(started.elapsed().as_nanos() as f64);
            let started = Instant::now();
            let mut read = 0;
            while read < bytes {
                // On one machine what was written has come; where it has not, it is waited for.
                match near.read(&mut buffer[read..]) {
                    Ok(more) => read += more,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(error) => return Err(error),
                }
            }
            best.read = best.read.min(started.elapsed().as_nanos() as f64);
            let started = Instant::now();
            let nothing = near.read(&mut buffer).map_err(|error| error.kind());
            assert_eq!(nothing, Err(io::ErrorKind::WouldBlock), "nobody wrote anything");
            best.look = best.look.min(started.elapsed().as_nanos() as f64);
        }
        Ok(best)
    }
}

#[cfg(test)]
mod tests {
    use muesli_protocols::score::Score;

    use super::*;

    #[test]
    fn the_costs_of_a_real_node_can_be_measured() {
        let costs = measure::<Score>(|_| {}).expect("there is a loopback network");
        assert!(costs.tick > Span::ZERO);
        assert!(costs.operation + costs.receive + costs.send > Span::ZERO);
        assert_eq!(costs.to_string().parse(), Ok(costs));
    }

    #[test]
    fn shapes_differ_in_what_they_do() {
        let mut pair = CalibrationPair::<Score>::new(true);
        for shape in PairShape::all() {
            pair.take_load();
            pair.transaction(shape);
            let load = pair.take_load();
            assert_eq!(load.received, load.sent, "{shape:?}: {load:?}");
            assert_eq!(load.sent > 0, shape.remote, "{shape:?}: {load:?}");
            assert_eq!(load.logged > 0, shape.writes > 0, "{shape:?}: {load:?}");
            assert!(load.operations >= 2 + shape.reads as u64 + shape.writes as u64);
        }
    }
}
