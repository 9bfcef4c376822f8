//! What a run of procedures sees of the world.

use muesli_core::{Catalog, Context, Protocol, Settings};

/// What a run sees of the world; on whatever thread it is, as nothing of it changes meanwhile.
#[derive(Clone, Copy)]
pub(crate) struct Sight<'a> {
    pub catalog: &'a Catalog,
    pub settings: &'a Settings,
    /// Whether what is done is noted for a history.
    pub recording: bool,
}

impl<'a> Sight<'a> {
    /// What the participant sees that this is the context of.
    pub fn of<P: Protocol>(cx: &Context<'a, P>) -> Sight<'a> {
        let recording = cx.effects.recorder.is_some();
        Sight { catalog: cx.catalog, settings: cx.settings, recording }
    }
}
