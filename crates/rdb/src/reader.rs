//! A file as a stream of events: keys, and the elements of each.

use std::io::Read;
use std::ops::RangeInclusive;

use crate::error::{RdbError, RdbErrorKind};
use crate::input::RdbInput;
use crate::modules::module_type;
use crate::packed::{PackedEncoding, PackedEntries};
use crate::strings::{NO_SCORE, score_of};
use crate::values::{RdbKind, ValueEncoding, ValueType, value_type};

/// The versions of the format that are read: those of Redis up to 8.2.
pub const VERSIONS: RangeInclusive<u32> = 1..=12;
/// From this version on a checksum is at the end.
const VERSION_WITH_CHECKSUM: u32 = 5;

/// What comes before something else than a value.
mod opcode {
    pub const SLOT_INFO: u8 = 244;
    pub const FUNCTION: u8 = 245;
    pub const EARLY_FUNCTION: u8 = 246;
    pub const MODULE_AUX: u8 = 247;
    pub const IDLE: u8 = 248;
    pub const FREQUENCY: u8 = 249;
    pub const AUX: u8 = 250;
    pub const RESIZE: u8 = 251;
    pub const EXPIRES_MS: u8 = 252;
    pub const EXPIRES_S: u8 = 253;
    pub const DATABASE: u8 = 254;
    pub const END: u8 = 255;
}

/// What comes next in a file.
#[derive(Clone, Debug, PartialEq)]
pub enum RdbEvent {
    /// Something about the file, such as the version of Redis that has written it.
    Aux {
        /// What it is.
        name: Vec<u8>,
        /// Its value.
        value: Vec<u8>,
    },
    /// The code of a library of functions.
    Library(Vec<u8>),
    /// The keys after this are in the database with this number. Before the first such event they
    /// are in the one with the number 0.
    Database(u64),
    /// A key, whose elements come next.
    Key(RdbKey),
    /// An element of the last key.
    Element(RdbElement),
    /// The last key has no further elements. A collection without any has none.
    KeyEnd,
}

/// A key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RdbKey {
    /// Its bytes.
    pub key: Vec<u8>,
    /// The type of its value.
    pub kind: RdbKind,
    /// When it expires, in milliseconds since 1970.
    pub expires: Option<u64>,
}

/// An element of a value.
#[derive(Clone, Debug, PartialEq)]
pub enum RdbElement {
    /// A whole string; it has no other.
    Text(Vec<u8>),
    /// The next item of a list.
    Item(Vec<u8>),
    /// A member of a set.
    Member(Vec<u8>),
    /// A member of a sorted set, and its score, which is a number.
    Scored(Vec<u8>, f64),
    /// A field of a hash, and its value.
    Field(Vec<u8>, Vec<u8>),
}

/// What is still to come of a value.
enum ValueRest {
    /// The elements, each as strings, and as scores.
    Plain { kind: RdbKind, has_binary_scores: bool, count: u64 },
    /// The entries of a packed string that begins there.
    Packed { kind: RdbKind, entries: PackedEntries, offset: u64 },
    /// Nodes of a list.
    Nodes { count: u64, are_ziplists: bool },
    /// The entries of a node that begins there, and the nodes after it.
    Node { entries: PackedEntries, offset: u64, count: u64, are_ziplists: bool },
}

/// Reads a file.
pub struct RdbReader<R> {
    input: RdbInput<R>,
    version: u32,
    /// What is still to come of the last key's value.
    rest: Option<ValueRest>,
    /// The last key, for errors.
    key: Option<Vec<u8>>,
    /// When the next key expires.
    expires: Option<u64>,
    is_over: bool,
}

impl<R: Read> RdbReader<R> {
    /// Begins to read.
    ///
    /// # Errors
    /// It is no such file, or one of another version.
    pub fn open(source: R) -> Result<RdbReader<R>, RdbError> {
        const MAGIC: &[u8] = b"REDIS";
        let mut input = RdbInput::new(source);
        let first: [u8; 9] = match input.array() {
            Ok(first) => first,
            Err(RdbError { kind: RdbErrorKind::Ended, .. }) => {
                return Err(RdbErrorKind::NotRdb.at(0));
            }
            Err(error) => return Err(error),
        };
        if first.starts_with(b"VALKEY") {
            return Err(RdbErrorKind::Valkey.at(0));
        }
        let digits = first.strip_prefix(MAGIC).filter(|it| it.iter().all(u8::is_ascii_digit));
        let digits = digits.ok_or_else(|| RdbErrorKind::NotRdb.at(0))?;
        let version = digits.iter().fold(0, |number, it| 10 * number + u32::from(it - b'0'));
        if !VERSIONS.contains(&version) {
            return Err(RdbErrorKind::Version(version).at(MAGIC.len() as u64));
        }
        let (rest, key, expires, is_over) = (None, None, None, false);
        Ok(RdbReader { input, version, rest, key, expires, is_over })
    }

    /// The version of the format.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// How many bytes were read.
    pub fn offset(&self) -> u64 {
        self.input.offset()
    }

    /// What comes next; `None` once the file was read to its end, and its checksum is right.
    ///
    /// # Errors
    /// It cannot be read, is damaged, or has something that is not read. Nothing is to be read
    /// after that.
    pub fn next_event(&mut self) -> Result<Option<RdbEvent>, RdbError> {
        if self.is_over {
            return Ok(None);
        }
        let event = match self.rest.take() {
            Some(rest) => self.go_on(rest).map(Some),
            None => self.begin(),
        };
        event.map_err(|error| RdbError { key: self.key.take(), ..error })
    }

    /// Reads what is before values, up to the next event.
    fn begin(&mut self) -> Result<Option<RdbEvent>, RdbError> {
        self.key = None;
        loop {
            let offset = self.input.offset();
            let first = self.input.byte()?;
            let is_of_key = matches!(
                first,
                opcode::EXPIRES_MS | opcode::EXPIRES_S | opcode::IDLE | opcode::FREQUENCY
            );
            if self.expires.is_some() && first >= opcode::SLOT_INFO && !is_of_key {
                return Err(RdbErrorKind::Damaged("an expiry is not followed by a key").at(offset));
            }
            match first {
                opcode::EXPIRES_MS => {
                    let at = i64::from_le_bytes(self.input.array()?);
                    self.expires = Some(u64::try_from(at).unwrap_or(0));
                }
                opcode::EXPIRES_S => {
                    let at = i32::from_le_bytes(self.input.array()?);
                    self.expires = Some(u64::try_from(at).unwrap_or(0) * 1000);
                }
                opcode::IDLE => drop(self.input.length()?),
                opcode::FREQUENCY => drop(self.input.byte()?),
                opcode::RESIZE => self.pass_lengths(2)?,
                opcode::SLOT_INFO => self.pass_lengths(3)?,
                opcode::AUX => {
                    let (name, value) = (self.input.string()?, self.input.string()?);
                    return Ok(Some(RdbEvent::Aux { name, value }));
                }
                opcode::FUNCTION => return Ok(Some(RdbEvent::Library(self.input.string()?))),
                opcode::EARLY_FUNCTION => {
                    return Err(refused("functions of Redis 7.0 before its release", offset));
                }
                opcode::MODULE_AUX => {
                    let module = module_type(self.input.length()?);
                    return Err(refused(&format!("data of the module {module}"), offset));
                }
                opcode::DATABASE => return Ok(Some(RdbEvent::Database(self.input.length()?))),
                opcode::END => return self.end().map(|()| None),
                number => return self.begin_key(number, offset).map(Some),
            }
        }
    }

    fn pass_lengths(&mut self, count: usize) -> Result<(), RdbError> {
        (0..count).try_for_each(|_| self.input.length().map(drop))
    }

    fn end(&mut self) -> Result<(), RdbError> {
        if self.version >= VERSION_WITH_CHECKSUM {
            let offset = self.input.offset();
            let computed = self.input.checksum();
            let stored = u64::from_le_bytes(self.input.array()?);
            // None was written where it is zero.
            if stored != 0 && stored != computed {
                return Err(RdbErrorKind::Checksum { stored, computed }.at(offset));
            }
        }
        if !self.input.is_at_end()? {
            return Err(self.input.error(RdbErrorKind::Trailing));
        }
        self.is_over = true;
        Ok(())
    }

    /// A key, whose value is of the type with this number.
    fn begin_key(&mut self, number: u8, offset: u64) -> Result<RdbEvent, RdbError> {
        if value_type(number) == ValueType::Unknown {
            return Err(refused(&format!("values of the unknown type {number}"), offset));
        }
        let key = self.input.string()?;
        self.key = Some(key.clone());
        let (kind, encoding) = match value_type(number) {
            ValueType::Read(kind, encoding) => (kind, encoding),
            ValueType::Refused(name) => return Err(refused(name, offset)),
            ValueType::Module => {
                let module = module_type(self.input.length()?);
                return Err(refused(&format!("values of the module {module}"), offset));
            }
            ValueType::Unknown => unreachable!("it was refused"),
        };
        self.rest = Some(self.begin_value(kind, encoding)?);
        Ok(RdbEvent::Key(RdbKey { key, kind, expires: self.expires.take() }))
    }

    fn begin_value(
        &mut self,
        kind: RdbKind,
        encoding: ValueEncoding,
    ) -> Result<ValueRest, RdbError> {
        Ok(match encoding {
            ValueEncoding::Plain | ValueEncoding::BinaryScores => ValueRest::Plain {
                kind,
                has_binary_scores: encoding == ValueEncoding::BinaryScores,
                count: if kind == RdbKind::String { 1 } else { self.input.length()? },
            },
            ValueEncoding::Packed(encoding) => {
                let (entries, offset) = self.packed(encoding)?;
                ValueRest::Packed { kind, entries, offset }
            }
            ValueEncoding::Ziplists | ValueEncoding::Nodes => {
                let are_ziplists = encoding == ValueEncoding::Ziplists;
                ValueRest::Nodes { count: self.input.length()?, are_ziplists }
            }
        })
    }

    fn packed(&mut self, encoding: PackedEncoding) -> Result<(PackedEntries, u64), RdbError> {
        let offset = self.input.offset();
        let bytes = self.input.string()?;
        let entries = PackedEntries::open(encoding, bytes).map_err(|kind| kind.at(offset))?;
        Ok((entries, offset))
    }

    /// The next element of a value, or its end.
    fn go_on(&mut self, mut rest: ValueRest) -> Result<RdbEvent, RdbError> {
        loop {
            match rest {
                ValueRest::Plain { count: 0, .. } | ValueRest::Nodes { count: 0, .. } => {
                    return Ok(RdbEvent::KeyEnd);
                }
                ValueRest::Plain { kind, has_binary_scores, count } => {
                    let element = self.plain(kind, has_binary_scores)?;
                    let count = count - 1;
                    self.rest = Some(ValueRest::Plain { kind, has_binary_scores, count });
                    return Ok(RdbEvent::Element(element));
                }
                ValueRest::Packed { kind, mut entries, offset } => {
                    let element = packed_element(&mut entries, kind);
                    let element = element.map_err(|kind| kind.at(offset))?;
                    let Some(element) = element else { return Ok(RdbEvent::KeyEnd) };
                    self.rest = Some(ValueRest::Packed { kind, entries, offset });
                    return Ok(RdbEvent::Element(element));
                }
                ValueRest::Node { mut entries, offset, count, are_ziplists } => {
                    if let Some(item) = entries.next().map_err(|kind| kind.at(offset))? {
                        self.rest = Some(ValueRest::Node { entries, offset, count, are_ziplists });
                        return Ok(RdbEvent::Element(RdbElement::Item(item)));
                    }
                    rest = ValueRest::Nodes { count, are_ziplists };
                }
                ValueRest::Nodes { count, are_ziplists } => {
                    let count = count - 1;
                    if !are_ziplists && self.is_item_alone()? {
                        let item = self.input.string()?;
                        self.rest = Some(ValueRest::Nodes { count, are_ziplists });
                        return Ok(RdbEvent::Element(RdbElement::Item(item)));
                    }
                    let encoding = match are_ziplists {
                        true => PackedEncoding::Ziplist,
                        false => PackedEncoding::Listpack,
                    };
                    let (entries, offset) = self.packed(encoding)?;
                    rest = ValueRest::Node { entries, offset, count, are_ziplists };
                }
            }
        }
    }

    /// Whether the next node of a list is an item, and no listpack.
    fn is_item_alone(&mut self) -> Result<bool, RdbError> {
        const ALONE: u64 = 1;
        const PACKED: u64 = 2;
        let offset = self.input.offset();
        match self.input.length()? {
            ALONE => Ok(true),
            PACKED => Ok(false),
            _ => Err(RdbErrorKind::Damaged("a node of a list is of no known kind").at(offset)),
        }
    }

    fn plain(&mut self, kind: RdbKind, has_binary_scores: bool) -> Result<RdbElement, RdbError> {
        let first = self.input.string()?;
        Ok(match kind {
            RdbKind::String => RdbElement::Text(first),
            RdbKind::List => RdbElement::Item(first),
            RdbKind::Set => RdbElement::Member(first),
            RdbKind::Sorted if has_binary_scores => {
                RdbElement::Scored(first, self.input.binary_score()?)
            }
            RdbKind::Sorted => RdbElement::Scored(first, self.input.text_score()?),
            RdbKind::Hash => RdbElement::Field(first, self.input.string()?),
        })
    }
}

fn refused(name: &str, offset: u64) -> RdbError {
    RdbErrorKind::Unsupported(name.to_owned()).at(offset)
}

/// The next element of packed entries, of which some have two.
fn packed_element(
    entries: &mut PackedEntries,
    kind: RdbKind,
) -> Result<Option<RdbElement>, RdbErrorKind> {
    let Some(first) = entries.next()? else { return Ok(None) };
    let mut second = || entries.next()?.ok_or(RdbErrorKind::Damaged("a field has no value"));
    Ok(Some(match kind {
        RdbKind::String => RdbElement::Text(first),
        RdbKind::List => RdbElement::Item(first),
        RdbKind::Set => RdbElement::Member(first),
        RdbKind::Hash => RdbElement::Field(first, second()?),
        RdbKind::Sorted => {
            let score = score_of(&second()?).ok_or(RdbErrorKind::Damaged(NO_SCORE))?;
            RdbElement::Scored(first, score)
        }
    }))
}
