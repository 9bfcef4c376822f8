//! Limits of memory where procedures are run.

use muesli_core::memory::Memory;
use muesli_core::procedure::{Call, Class, Fragment};
use muesli_core::{
    Place, Procedure, ProcedureId, Procedures, Settings, SmallBytes, Step, Stop, Store, TxnOptions,
};
use muesli_protocols::granola::Granola;

use crate::harness::every::memory::{Alone, MIB, SPACE, VALUE_BYTES};

/// Puts as many bytes as it is told under a key of that name.
pub fn fill(store: &mut dyn Store, bytes: &SmallBytes) -> Result<SmallBytes, Stop> {
    let space = store.space("s")?;
    store.put(space, bytes.clone(), Some(vec![7; bytes.len() * VALUE_BYTES].into()))?;
    Ok(SmallBytes::EMPTY)
}

/// Where a procedure is run in the call that asks for it, the limit holds as well.
#[test]
fn procedures_that_are_run_at_once_meet_the_limit() {
    let memory = Memory::new(8 * MIB as u64, u64::MAX >> 1);
    let procedures = Procedures::default().with("fill", 1, Procedure::new(fill));
    let settings = Settings { memory: memory.clone(), procedures, ..Settings::default() };
    let mut alone = Alone::<Granola>::new(settings);
    // A key of a thousand bytes, and a megabyte.
    let mut call = |number: usize| {
        let name = SmallBytes::from(format!("{number:01000}").as_str());
        let procedure = ProcedureId { name: "fill".into(), version: 1 };
        let place = Place::Key(SPACE, name.clone());
        let fragments = vec![Fragment { procedure, place, arguments: name }];
        let call = Call { class: Class::Auto, fragments };
        alone.node.invoke(TxnOptions::default(), call, &mut alone.effects)
    };
    let done = (0..64).take_while(|number| matches!(call(*number), Step::Done(Ok(_)))).count();
    assert!((8..12).contains(&done), "{done} MB");
    assert!(memory.held().all < 12 * MIB as u64, "{:?}", memory.held());
}
