//! A site by itself: its invariants, and what it refuses.

use muesli_core::{Participant as _, RepositoryId, Settings, StateMachine as _};
use muesli_protocols::certified::{CertifiedSite, Switches};

#[test]
fn a_new_site_keeps_its_invariants() {
    let site = CertifiedSite::new(RepositoryId(0), &Settings::default(), &Switches::default());
    site.assert_invariants();
    assert_eq!((site.applied(), site.proposed(), site.unfinished()), (0, 0, 0));
}
