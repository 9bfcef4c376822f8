//! Procedures that have nothing to do with each other, on several threads of one loop.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use muesli::procedures::builtin::{Get, Keyed};
use muesli::procedures::{Bytes, Keys, Spaces, StoredProcedure, TouchesFn};
use muesli::{Db, Error, Footprint, Options, Refuses, Space, SpaceOptions, Stop, Touched};

/// How many of [`Meets`] run at this moment.
static MEETING: AtomicUsize = AtomicUsize::new(0);

/// Answers whether another call was run at the same time, for which it waits for a while. No
/// procedure that is worth anything looks beyond its keys; this one is here to see what runs it.
struct Meets;

impl StoredProcedure for Meets {
    const NAME: &'static str = "meets";
    const REFUSES: Refuses = Refuses::Never;
    const TOUCHES: Option<TouchesFn<Keyed>> = Some(touches_its_keys);
    type Arguments = Keyed;
    type Answer = bool;

    fn run(keys: &mut Keys<'_>, Keyed { space, keys: all }: Keyed) -> Result<bool, Stop> {
        for key in all {
            keys.put(space, key.0, "met")?;
        }
        MEETING.fetch_add(1, Ordering::SeqCst);
        let mut met = false;
        for _ in 0..200 {
            met |= MEETING.load(Ordering::SeqCst) > 1;
            std::thread::sleep(Duration::from_micros(if met { 0 } else { 50 }));
        }
        MEETING.fetch_sub(1, Ordering::SeqCst);
        Ok(met)
    }
}

fn touches_its_keys(_: &Spaces<'_>, at: &Keyed) -> Result<Footprint, Stop> {
    let touched = |key: &Bytes| Touched::Key(at.space.id(), key.0.clone());
    Ok(Footprint { reads: Vec::new(), writes: at.keys.iter().map(touched).collect() })
}

/// Whether two calls on these keys are ever seen to run at the same time, in so many attempts.
fn ever_meet(db: &Db, space: Space, keys: [&str; 2], attempts: usize) -> bool {
    let call = |key: &str| {
        let at = Keyed { space, keys: vec![key.into()] };
        let answers = db.session().call("meets", 1).at(space.place("a"), &at).wait().unwrap();
        answers.of::<bool>(0).unwrap()
    };
    (0..attempts).any(|_| {
        std::thread::scope(|scope| {
            let all = keys.map(|key| scope.spawn(move || call(key)));
            all.map(|it| it.join().unwrap()).contains(&true)
        })
    })
}

#[test]
fn procedures_on_different_keys_run_on_several_threads_where_it_is_asked_for() {
    let open = |protocol: &str, procedure_threads| {
        let protocol = protocol.to_owned();
        let options = Options { protocol, procedure_threads, ..Options::default() };
        let options = options.space("s", SpaceOptions::default()).procedure::<Meets>();
        Db::open(options)
    };
    for protocol in ["granola", "granola-passing"] {
        let db = open(protocol, 2).unwrap();
        let space = db.space("s").unwrap();
        assert!(ever_meet(&db, space, ["a", "b"], 1_000), "{protocol}");
        assert!(!ever_meet(&db, space, ["a", "a"], 5), "{protocol}: they conflict");
        let keyed = Keyed { space, keys: vec!["b".into()] };
        let found = db.blocking().execute::<Get>(space.place("b"), &keyed).unwrap();
        assert_eq!(found, [Some("met".into())], "{protocol}");
        db.close();
        let db = open(protocol, 1).unwrap();
        let space = db.space("s").unwrap();
        assert!(!ever_meet(&db, space, ["a", "b"], 5), "{protocol}: nobody asked for it");
        db.close();
    }
    let error = open("granola", 0).err().unwrap();
    assert!(matches!(&error, Error::Options(text) if text.contains("1 to 256")), "{error}");
}
