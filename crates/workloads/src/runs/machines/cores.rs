//! Cores of a simulated run: which nodes are cores of one machine.

use muesli_sim::network::cores::Cores;
use thiserror::Error;

/// Nodes with data that do not fill machines.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{nodes} nodes with data do not fill machines of {cores} cores: give a multiple of it")]
pub struct NoCores {
    /// How many nodes there are.
    nodes: usize,
    /// How many cores a machine has.
    cores: usize,
}

/// The cores of these nodes with data, by how many a machine has; `None`: each node is a machine.
/// Nodes without data are machines of their own: clients are processes, and run elsewhere.
///
/// # Errors
/// They do not fill machines.
pub(crate) fn of(nodes: usize, cores: usize) -> Result<Option<Cores>, NoCores> {
    if cores <= 1 {
        return Ok(None);
    }
    if !nodes.is_multiple_of(cores) {
        return Err(NoCores { nodes, cores });
    }
    Ok(Some(Cores::new(nodes, cores)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_fill_machines() {
        assert_eq!((of(7, 0), of(7, 1)), (Ok(None), Ok(None)));
        assert_eq!(of(8, 4), Ok(Some(Cores::new(8, 4))));
        let error = of(9, 4).unwrap_err().to_string();
        assert!(error.starts_with("9 nodes with data do not fill machines of 4 cores"), "{error}");
    }
}
