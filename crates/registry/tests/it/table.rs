//! Names make protocols, and programs register their own.

use muesli_protocols::NAMES;
use muesli_registry::{Grouping, NoProtocol, NotRegistered, is_known, names, protocol, register};

#[test]
fn every_name_makes_a_protocol_alone_and_in_groups() {
    for name in NAMES {
        let alone = protocol(name, None).unwrap();
        let grouped = protocol(name, Some(Grouping::default()));
        if ["alvin", "certified-", "sharded-"].into_iter().any(|kind| name.starts_with(kind)) {
            assert!(matches!(grouped, Err(NoProtocol::InGroups { .. })), "{name}");
            continue;
        }
        let grouped = grouped.unwrap();
        assert_eq!(alone.isolation(), grouped.isolation(), "{name}");
        assert_eq!(alone.timestamp_step(), grouped.timestamp_step(), "{name}");
    }
    let error = protocol("scores", None).unwrap_err();
    assert!(NAMES.iter().all(|name| error.to_string().contains(name)), "{error}");
}

#[test]
fn a_protocol_is_registered_once_under_a_name_that_is_one() {
    type Score = muesli_protocols::score::Score;
    let register = |name| register::<Score>(name, Default::default());
    assert_eq!(register("score"), Err(NotRegistered::Taken("score")));
    assert_eq!(register("2pc"), Err(NotRegistered::Taken("2pc")), "an earlier name");
    for none in ["", "Score", "my score", "mine\n"] {
        assert_eq!(register(none), Err(NotRegistered::Name(none)));
    }
    assert!(protocol("mine", None).is_err());
    assert_eq!(register("mine"), Ok(()));
    assert_eq!(register("mine"), Err(NotRegistered::Taken("mine")));
    assert_eq!(protocol("mine", None).unwrap().name(), "score");
    assert!(protocol("mine", Some(Grouping::default())).is_ok());
    assert!(is_known("mine") && names().contains(&"mine"));
    let error = protocol("scores", None).unwrap_err().to_string();
    assert!(error.contains("mine"), "{error}");
}
