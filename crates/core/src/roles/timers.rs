//! Timers of roles: each role says which it has, and is called with one of these. And what drivers
//! are asked to call a node's machine for.

use std::fmt::Debug;

use super::Role;

/// The timers that a role may set, as drivers keep them: by number.
pub trait Timer: Copy + Debug + Eq + Send + 'static {
    /// Its number, which no other timer of the role has.
    fn number(self) -> u32;
    /// The timer of this number.
    fn numbered(number: u32) -> Option<Self>;
}

/// The timers of a role that sets none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoTimer {}

impl Timer for NoTimer {
    fn number(self) -> u32 {
        match self {}
    }

    fn numbered(_: u32) -> Option<NoTimer> {
        None
    }
}

/// What the [machine](crate::machine) of a node asks its driver to be called for later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MachineTimer {
    /// A role's timer, by its number.
    Role(Role, u32),
    /// The machine's own, of this number: messages have waited for their batches.
    Batches(u32),
}

/// Defines the timers of a role: an enum, each variant with its number.
#[macro_export]
macro_rules! timers {
    ($(#[$about:meta])* $visibility:vis enum $name:ident {
        $($(#[$which:meta])* $timer:ident = $number:literal,)+
    }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $visibility enum $name {
            $($(#[$which])* $timer = $number,)+
        }

        impl $crate::Timer for $name {
            fn number(self) -> u32 {
                self as u32
            }

            fn numbered(number: u32) -> Option<$name> {
                match number {
                    $($number => Some($name::$timer),)+
                    _ => None,
                }
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    timers! {
        enum Of {
            One = 1,
            Four = 4,
        }
    }

    #[test]
    fn timers_come_back_from_their_numbers() {
        for timer in [Of::One, Of::Four] {
            assert_eq!(Of::numbered(timer.number()), Some(timer));
        }
        assert_eq!((Of::numbered(2), NoTimer::numbered(0)), (None, None));
    }
}
