//! Libraries of functions: as bytes in rows, and as the engine has them.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use muesli_scripts::{LibraryCode, LibraryFunction, library, sha1_hex};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

/// The format of rows, and that of dumps.
const ROW_FORMAT: u8 = 1;
const DUMP_FORMAT: u8 = 1;
/// A library may have so many bytes of code.
const CODE_BYTES_MAX: usize = 1 << 20;
/// There may be so many libraries, with so many bytes of code.
const LIBRARIES_MAX: usize = 1000;
const ALL_CODE_BYTES_MAX: usize = 8 << 20;

/// A library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Library {
    /// All of its code, as it was given.
    pub payload: Rc<[u8]>,
    pub code: LibraryCode,
    pub functions: Vec<LibraryFunction>,
}

impl Library {
    /// A library of this code, whose functions are known.
    ///
    /// # Errors
    /// It has a first line that no library can have, as this text says, or is too long.
    pub fn new(payload: &[u8], functions: Vec<LibraryFunction>) -> Result<Library, String> {
        if payload.len() > CODE_BYTES_MAX {
            return Err(format!("a library has no more than {CODE_BYTES_MAX} bytes"));
        }
        let (name, code) = library(payload)?;
        let code = LibraryCode { name, sha: sha1_hex(payload), code: code.into() };
        Ok(Library { payload: payload.into(), code, functions })
    }

    /// Its bytes in a row.
    pub fn to_row(&self) -> Vec<u8> {
        let mut row = vec![ROW_FORMAT];
        push(&mut row, &self.payload);
        for function in &self.functions {
            push(&mut row, function.name.as_bytes());
            match &function.description {
                Some(text) => {
                    row.push(1);
                    push(&mut row, text.as_bytes());
                }
                None => row.push(0),
            }
            push(&mut row, function.flags.join(",").as_bytes());
        }
        row
    }

    /// The library of a row; `None`: these are other bytes.
    pub fn of_row(row: &[u8]) -> Option<Library> {
        let mut rest = row.strip_prefix(&[ROW_FORMAT])?;
        let payload = take(&mut rest)?;
        let mut functions = Vec::new();
        while !rest.is_empty() {
            let name = text(&mut rest)?;
            let (is_described, behind) = rest.split_first()?;
            rest = behind;
            let description = if *is_described == 1 { Some(text(&mut rest)?) } else { None };
            let flags = text(&mut rest)?;
            let flags = flags.split(',').filter(|it| !it.is_empty()).map(str::to_owned).collect();
            functions.push(LibraryFunction { name, description, flags });
        }
        Library::new(payload, functions).ok()
    }
}

fn push(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend((bytes.len() as u32).to_be_bytes());
    out.extend_from_slice(bytes);
}

fn take<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, behind) = rest.split_first_chunk()?;
    let (taken, behind) = behind.split_at_checked(u32::from_be_bytes(*length) as usize)?;
    *rest = behind;
    Some(taken)
}

fn text(rest: &mut &[u8]) -> Option<String> {
    String::from_utf8(take(rest)?.to_vec()).ok()
}

/// All libraries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LibrarySet {
    pub libraries: BTreeMap<String, Rc<Library>>,
    /// The library of each function, by its name in small letters.
    by_function: HashMap<String, String>,
}

impl LibrarySet {
    /// Adds a library.
    ///
    /// # Errors
    /// There is one of this name, or one with a function of the same name, or there are too many.
    pub fn add(&mut self, library: Library) -> Result<(), String> {
        let name = &library.code.name;
        if self.libraries.contains_key(name) {
            return Err(format!("Library {name} already exists"));
        }
        let bytes = |library: &Rc<Library>| library.payload.len();
        let bytes = self.libraries.values().map(bytes).sum::<usize>() + library.payload.len();
        if self.libraries.len() == LIBRARIES_MAX || bytes > ALL_CODE_BYTES_MAX {
            return Err(format!(
                "there are no more than {LIBRARIES_MAX} libraries, of {ALL_CODE_BYTES_MAX} bytes"
            ));
        }
        let taken = library.functions.iter();
        let mut taken = taken.filter(|it| self.by_function.contains_key(&small(&it.name)));
        if let Some(function) = taken.next() {
            return Err(format!("Function {} already exists", function.name));
        }
        for function in &library.functions {
            self.by_function.insert(small(&function.name), name.clone());
        }
        self.libraries.insert(name.clone(), Rc::new(library));
        Ok(())
    }

    /// Takes a library away; whether it was there.
    pub fn remove(&mut self, name: &str) -> bool {
        self.by_function.retain(|_, library| library != name);
        self.libraries.remove(name).is_some()
    }

    /// A function, and its library.
    pub fn function(&self, name: &str) -> Option<(Rc<Library>, LibraryFunction)> {
        let library = self.libraries.get(self.by_function.get(&small(name))?)?;
        let function = library.functions.iter().find(|it| it.name.eq_ignore_ascii_case(name))?;
        Some((library.clone(), function.clone()))
    }

    pub fn functions(&self) -> usize {
        self.by_function.len()
    }

    /// A hash of all of them; 0: there are none.
    pub fn version(&self) -> u64 {
        if self.libraries.is_empty() {
            return 0;
        }
        let mut hash = Xxh3::new();
        for library in self.libraries.values() {
            hash.update(&(library.payload.len() as u64).to_be_bytes());
            hash.update(&library.payload);
        }
        hash.digest().max(1)
    }
}

fn small(name: &str) -> String {
    name.to_ascii_lowercase()
}

/// The code of all libraries as bytes.
pub(crate) fn dumped(set: &LibrarySet) -> Vec<u8> {
    let mut bytes = vec![DUMP_FORMAT];
    for library in set.libraries.values() {
        push(&mut bytes, &library.payload);
    }
    bytes.extend(xxh3_64(&bytes).to_be_bytes());
    bytes
}

/// The code of the libraries of such bytes; `None`: these are other bytes, or more libraries than
/// there may be.
pub(crate) fn parse_dump(bytes: &[u8]) -> Option<Vec<&[u8]>> {
    let (body, sum) = bytes.split_last_chunk()?;
    if u64::from_be_bytes(*sum) != xxh3_64(body) {
        return None;
    }
    let mut rest = body.strip_prefix(&[DUMP_FORMAT])?;
    let mut payloads = Vec::new();
    while !rest.is_empty() {
        if payloads.len() == LIBRARIES_MAX {
            return None;
        }
        payloads.push(take(&mut rest)?);
    }
    Some(payloads)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(name: &str, functions: &[&str]) -> Library {
        let payload = format!("#!lua name={name}\nreturn 1");
        let function = |name: &&str| LibraryFunction {
            name: (*name).to_owned(),
            description: (*name == "f").then(|| "what it does".to_owned()),
            flags: vec!["no-writes".to_owned(), "allow-oom".to_owned()],
        };
        Library::new(payload.as_bytes(), functions.iter().map(function).collect()).unwrap()
    }

    #[test]
    fn libraries_come_back_from_rows_and_dumps() {
        let library = made("lib", &["f", "g"]);
        let row = library.to_row();
        assert_eq!(Library::of_row(&row), Some(library.clone()));
        for length in 0..row.len() {
            assert_ne!(Library::of_row(&row[..length]), Some(library.clone()));
        }
        let mut set = LibrarySet::default();
        set.add(library.clone()).unwrap();
        set.add(made("other", &["h"])).unwrap();
        let bytes = dumped(&set);
        let payloads: Vec<_> = set.libraries.values().map(|it| &*it.payload).collect();
        assert_eq!(parse_dump(&bytes), Some(payloads));
        for at in 0..bytes.len() {
            let mut wrong = bytes.clone();
            wrong[at] ^= 1;
            assert_eq!(parse_dump(&wrong), None);
        }
    }

    #[test]
    fn a_dump_has_no_more_libraries_than_there_may_be() {
        for (count, is_one) in [(LIBRARIES_MAX, true), (LIBRARIES_MAX + 1, false)] {
            let mut bytes = vec![DUMP_FORMAT];
            (0..count).for_each(|_| push(&mut bytes, b""));
            bytes.extend(xxh3_64(&bytes).to_be_bytes());
            assert_eq!(parse_dump(&bytes).is_some(), is_one);
        }
    }

    #[test]
    fn names_are_there_once() {
        let mut set = LibrarySet::default();
        assert_eq!(set.version(), 0);
        set.add(made("a", &["f"])).unwrap();
        let version = set.version();
        assert_eq!(set.add(made("a", &["g"])).unwrap_err(), "Library a already exists");
        assert_eq!(set.add(made("b", &["F"])).unwrap_err(), "Function F already exists");
        set.add(made("b", &["g"])).unwrap();
        assert_eq!(set.function("G").unwrap().0.code.name, "b");
        assert!(set.remove("b") && !set.remove("b"));
        assert_eq!((set.functions(), set.version()), (1, version));
        assert!(set.function("g").is_none());
    }
}
