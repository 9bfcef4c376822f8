//! All keys of a file, read as a stream.

use std::io::Read;

use muesli_rdb::{RdbElement, RdbError, RdbEvent, RdbKey, RdbKind, RdbReader};

use crate::sample::{SampleKey, SampleValue};

/// A file that was read to its end.
#[derive(Debug, Default, PartialEq)]
pub struct ReadFile {
    pub version: u32,
    pub keys: Vec<SampleKey>,
    pub aux: Vec<(String, String)>,
    pub libraries: Vec<Vec<u8>>,
}

fn empty(kind: RdbKind) -> SampleValue {
    match kind {
        RdbKind::String => SampleValue::Text(Vec::new()),
        RdbKind::List => SampleValue::List(Vec::new()),
        RdbKind::Set => SampleValue::Set(Vec::new()),
        RdbKind::Sorted => SampleValue::Sorted(Vec::new()),
        RdbKind::Hash => SampleValue::Hash(Vec::new()),
    }
}

fn add(value: &mut SampleValue, element: RdbElement) {
    match (value, element) {
        (SampleValue::Text(text), RdbElement::Text(whole)) => *text = whole,
        (SampleValue::List(all), RdbElement::Item(item)) => all.push(item),
        (SampleValue::Set(all), RdbElement::Member(member)) => all.push(member),
        (SampleValue::Sorted(all), RdbElement::Scored(member, score)) => all.push((member, score)),
        (SampleValue::Hash(all), RdbElement::Field(field, value)) => all.push((field, value)),
        (value, element) => panic!("{element:?} is none of {value:?}"),
    }
}

pub fn read(source: impl Read) -> Result<ReadFile, RdbError> {
    let mut reader = RdbReader::open(source)?;
    let (mut file, mut database) = (ReadFile::default(), 0);
    file.version = reader.version();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let mut is_open = false;
    while let Some(event) = reader.next_event()? {
        match event {
            RdbEvent::Aux { name, value } => file.aux.push((text(name), text(value))),
            RdbEvent::Library(code) => file.libraries.push(code),
            RdbEvent::Database(number) => database = number,
            RdbEvent::Key(RdbKey { key, kind, expires }) => {
                assert!(!is_open);
                is_open = true;
                file.keys.push(SampleKey { database, key, expires, value: empty(kind) });
            }
            RdbEvent::Element(element) => add(&mut file.keys.last_mut().unwrap().value, element),
            RdbEvent::KeyEnd => is_open = false,
        }
    }
    assert!(!is_open);
    assert_eq!(reader.next_event().unwrap(), None);
    Ok(file)
}
