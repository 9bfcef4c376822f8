//! Rules that tests break on purpose, to see that checkers notice.
//!
//! Each family of rules is an enum; which of them are broken is a [set](Broken) that nothing but
//! [`Sabotage`] changes. Under a protocol as users run it the set is empty, except for what a paper
//! prints and a correction of this implementation mends.
//!
//! The rules of two-phase commit itself no protocol of the product breaks. They can be broken with
//! the feature `sabotage` alone, which tests turn on; without it [`Unbroken`] has no bits, and to
//! ask whether a rule holds costs nothing.

use std::fmt::{self, Debug};
use std::marker::PhantomData;

/// Breaks rules of a protocol. For tests.
#[doc(hidden)]
pub trait Sabotage<R>: Sized {
    /// Says whether a rule holds.
    fn set(&mut self, switch: R, holds: bool);

    /// The same with one more rule broken.
    #[must_use]
    fn without(mut self, switch: R) -> Self {
        self.set(switch, false);
        self
    }

    /// The protocol as it should be, but for one rule.
    #[must_use]
    fn broken(switch: R) -> Self
    where
        Self: Default,
    {
        Self::default().without(switch)
    }
}

/// A rule that can be broken.
#[doc(hidden)]
pub trait Breakable: Copy + Debug + Eq + Sized + 'static {
    /// All of them, each with its name in scripts.
    const ALL: &'static [(Self, &'static str)];

    /// Its bit in a set.
    fn bit(self) -> u64;

    /// The one that scripts call so.
    fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known)| *known == name).map(|(switch, _)| *switch)
    }
}

/// The rules of a family that are broken.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[doc(hidden)]
pub struct Broken<R> {
    bits: u64,
    switches: PhantomData<R>,
}

impl<R> Default for Broken<R> {
    fn default() -> Broken<R> {
        Broken { bits: 0, switches: PhantomData }
    }
}

impl<R: Breakable> Broken<R> {
    /// Whether a rule holds.
    #[inline]
    pub fn keeps(self, switch: R) -> bool {
        self.bits & switch.bit() == 0
    }

    pub fn set(&mut self, switch: R, holds: bool) {
        assert!(R::ALL.len() <= u64::BITS as usize, "more rules than a set has room for");
        if holds {
            self.bits &= !switch.bit();
        } else {
            self.bits |= switch.bit();
        }
    }
}

/// The rules of a family that no protocol of the product breaks.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[doc(hidden)]
pub struct Unbroken<R> {
    #[cfg(feature = "sabotage")]
    broken: Broken<R>,
    switches: PhantomData<R>,
}

impl<R> Default for Unbroken<R> {
    fn default() -> Unbroken<R> {
        Unbroken {
            #[cfg(feature = "sabotage")]
            broken: Broken::default(),
            switches: PhantomData,
        }
    }
}

impl<R: Breakable> Unbroken<R> {
    /// Whether a rule holds: it does, unless a test broke it.
    #[cfg(feature = "sabotage")]
    #[inline]
    pub fn keeps(self, switch: R) -> bool {
        self.broken.keeps(switch)
    }

    /// Whether a rule holds: it does, as nothing can break it.
    #[cfg(not(feature = "sabotage"))]
    #[inline]
    pub fn keeps(self, _: R) -> bool {
        true
    }

    #[cfg(feature = "sabotage")]
    pub fn set(&mut self, switch: R, holds: bool) {
        self.broken.set(switch, holds);
    }
}

impl<R: Breakable> Debug for Unbroken<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let broken = R::ALL.iter().filter(|(switch, _)| !self.keeps(*switch));
        f.debug_set().entries(broken.map(|(switch, _)| switch)).finish()
    }
}

impl<R: Breakable> Debug for Broken<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let broken = R::ALL.iter().filter(|(switch, _)| !self.keeps(*switch));
        f.debug_set().entries(broken.map(|(switch, _)| switch)).finish()
    }
}

/// Makes the enum of the switches of a family, each with its name in scripts.
#[doc(hidden)]
#[macro_export]
macro_rules! breakable {
    ($(#[$about:meta])* enum $name:ident {
        $($(#[$what:meta])* $switch:ident = $script:literal,)+
    }) => {
        $(#[$about])*
        #[doc(hidden)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$what])* $switch,)+
        }

        impl $crate::sabotage::Breakable for $name {
            const ALL: &'static [($name, &'static str)] = &[$(($name::$switch, $script)),+];

            #[inline]
            fn bit(self) -> u64 {
                1 << self as u64
            }
        }
    };
}

pub use breakable;
