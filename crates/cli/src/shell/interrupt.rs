//! Ctrl-C at a prompt.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use signal_hook::consts::SIGINT;
use signal_hook::flag;

/// Whether Ctrl-C was typed while something waited. At all other times it ends the process.
#[derive(Debug)]
pub struct TypedInterrupt {
    was_typed: Arc<AtomicBool>,
    /// Nothing waits.
    ends_process: Arc<AtomicBool>,
}

impl TypedInterrupt {
    /// Takes the signal over.
    ///
    /// # Errors
    /// The system does not let it.
    pub fn begin() -> anyhow::Result<TypedInterrupt> {
        let (was_typed, ends_process) = (Arc::default(), Arc::new(AtomicBool::new(true)));
        flag::register_conditional_default(SIGINT, Arc::clone(&ends_process))
            .and_then(|_| flag::register(SIGINT, Arc::clone(&was_typed)))
            .context("cannot wait for Ctrl-C")?;
        Ok(TypedInterrupt { was_typed, ends_process })
    }

    /// Something waits from now on.
    pub fn wait(&self) {
        self.was_typed.store(false, Ordering::Relaxed);
        self.ends_process.store(false, Ordering::Relaxed);
    }

    pub fn was_typed(&self) -> bool {
        self.was_typed.load(Ordering::Relaxed)
    }

    /// Nothing waits any more.
    pub fn end(&self) {
        self.ends_process.store(true, Ordering::Relaxed);
    }
}
