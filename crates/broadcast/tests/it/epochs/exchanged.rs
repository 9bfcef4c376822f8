//! What came of runs in which members are exchanged.

/// What came of a run, or of all.
#[derive(Clone, Debug, Default)]
pub struct Exchanged {
    pub violation: Option<String>,
    /// What is not as it should be in the end.
    pub stuck: Vec<String>,
    pub delivered: usize,
    pub exchanged: usize,
    pub snapshots: usize,
    /// Members that had a memory and took a state.
    pub jumps: usize,
    pub voids: usize,
    pub replaced: usize,
    pub taken_as_delivered: usize,
    /// Requests that were delivered with the one before them.
    pub several: usize,
    /// Snapshots that were begun and not taken.
    pub interrupted: usize,
}

impl Exchanged {
    pub fn assert_sound(&self, members: usize, seed: u64) {
        assert!(self.violation.is_none(), "{members} {seed}: {self:#?}");
        assert!(self.stuck.is_empty(), "{members} {seed}: {self:#?}");
    }

    pub fn add(&mut self, other: &Exchanged) {
        self.delivered += other.delivered;
        self.exchanged += other.exchanged;
        self.snapshots += other.snapshots;
        self.jumps += other.jumps;
        self.voids += other.voids;
        self.replaced += other.replaced;
        self.taken_as_delivered += other.taken_as_delivered;
        self.several += other.several;
        self.interrupted += other.interrupted;
    }

    /// Everything has happened that can.
    pub fn assert_complete(&self) {
        let Exchanged { exchanged, jumps, voids, replaced, interrupted, .. } = self;
        let all = [exchanged, jumps, voids, replaced, interrupted];
        assert!(all.iter().all(|it| **it > 0), "something did not happen: {self:?}");
    }
}
