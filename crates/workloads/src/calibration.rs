//! What a node's work costs on this machine, for the simulator.

use std::io;

use muesli_protocols::score::Score;
use muesli_sim::calibrate::measure;
use muesli_sim::hardware::costs::Costs;

/// Measures the costs of a node under SCORe, for which the simulator's own figures stand; takes
/// some seconds. `progress` is told what is measured next.
///
/// It is compiled here, as fast as what is measured: programs may be compiled to be small.
///
/// # Errors
/// As [`measure`].
pub fn measured(progress: fn(&str)) -> io::Result<Costs> {
    measure::<Score>(progress)
}
