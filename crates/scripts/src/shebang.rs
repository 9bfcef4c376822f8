//! The first line of a script or library, which says what it is written in and what it may do.

/// What a script or function may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScriptFlags {
    /// It changes nothing.
    pub no_writes: bool,
    /// It is run where the server has more memory than it may.
    pub allow_oom: bool,
    /// It has no first line of its own: what it may do is seen at each command.
    pub is_compatible: bool,
}

/// The names of all flags; the others mean nothing to one server that has all keys.
const NAMES: [&str; 5] =
    ["no-writes", "allow-oom", "allow-stale", "no-cluster", "allow-cross-slot-keys"];

impl ScriptFlags {
    /// Sets the flag of this name; whether there is one.
    pub fn add(&mut self, name: &str) -> bool {
        self.no_writes |= name == "no-writes";
        self.allow_oom |= name == "allow-oom";
        NAMES.contains(&name)
    }

    /// The flags of these names.
    pub fn of(names: &[String]) -> ScriptFlags {
        let mut flags = ScriptFlags::default();
        for name in names {
            flags.add(name); // They were checked when the function was registered.
        }
        flags
    }
}

/// The first line, and what follows it, with the end of the line.
fn first_line(code: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = code.iter().position(|it| *it == b'\n')?;
    Some(code.split_at(end))
}

/// The flags of a script, and its code without the first line.
///
/// # Errors
/// The first line is none that a script can have, as this text says.
pub fn script(body: &[u8]) -> Result<(ScriptFlags, &[u8]), String> {
    if !body.starts_with(b"#!") {
        return Ok((ScriptFlags { is_compatible: true, ..ScriptFlags::default() }, body));
    }
    let (line, code) = first_line(body).ok_or("Invalid script shebang")?;
    let parts = parts(line).ok_or("Invalid engine in script shebang")?;
    let Some((engine, options)) = parts.split_first() else {
        return Err("Invalid engine in script shebang".to_owned());
    };
    if engine != "#!lua" {
        return Err(format!("Unexpected engine in script shebang: {engine}"));
    }
    let mut flags = ScriptFlags::default();
    for option in options {
        let Some(names) = option.strip_prefix("flags=") else {
            return Err(format!("Unknown lua shebang option: {option}"));
        };
        for name in names.split(',').filter(|_| !names.is_empty()) {
            if !flags.add(name) {
                return Err(format!("Unexpected flag in script shebang: {name}"));
            }
        }
    }
    Ok((flags, code))
}

/// What a name of a library or function may not be.
pub const BAD_NAME: &str = "Library names can only contain letters, numbers, or underscores(_) \
                            and must be at least one character long";

/// Longest name of a library or function, in bytes.
pub const NAME_BYTES_MAX: usize = 256;

/// Whether a library or function may have this name.
pub fn is_name(name: &str) -> bool {
    let fits = (1..=NAME_BYTES_MAX).contains(&name.len());
    fits && name.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'_')
}

/// The name of a library, and its code without the first line.
///
/// # Errors
/// The first line is none that a library can have, as this text says.
pub fn library(payload: &[u8]) -> Result<(String, &[u8]), String> {
    if !payload.starts_with(b"#!") {
        return Err("Missing library metadata".to_owned());
    }
    let (line, code) = first_line(payload).ok_or("Invalid library metadata")?;
    let parts = parts(line).filter(|it| !it.is_empty()).ok_or("Invalid library metadata")?;
    let engine = &parts[0][2..];
    let mut name = None;
    for part in &parts[1..] {
        match part.get(..5) {
            Some(key) if key.eq_ignore_ascii_case("name=") => {
                if name.replace(part[5..].to_owned()).is_some() {
                    let text = "Invalid metadata value, name argument was given multiple times";
                    return Err(text.to_owned());
                }
            }
            _ => return Err(format!("Invalid metadata value given: {part}")),
        }
    }
    let name = name.ok_or("Library name was not given")?;
    if !is_name(&name) {
        return Err(BAD_NAME.to_owned());
    }
    if !engine.eq_ignore_ascii_case("lua") {
        return Err(format!("Engine '{engine}' not found"));
    }
    Ok((name, code))
}

/// The words of a line, of which some may be within quotes; `None`: quotes do not end, or end
/// within a word.
fn parts(line: &[u8]) -> Option<Vec<String>> {
    let line = String::from_utf8_lossy(line);
    let mut letters = line.chars().peekable();
    let mut parts = Vec::new();
    loop {
        while letters.next_if(|it| it.is_ascii_whitespace()).is_some() {}
        if letters.peek().is_none() {
            return Some(parts);
        }
        let (mut part, mut quote) = (String::new(), None);
        loop {
            let Some(letter) = letters.next() else {
                if quote.is_some() {
                    return None;
                }
                break;
            };
            match quote {
                None if letter.is_ascii_whitespace() => break,
                None if letter == '"' || letter == '\'' => quote = Some(letter),
                Some(end) if letter == end => {
                    if letters.peek().is_some_and(|it| !it.is_ascii_whitespace()) {
                        return None;
                    }
                    break;
                }
                Some('"') if letter == '\\' => part.push(letters.next()?),
                _ => part.push(letter),
            }
        }
        parts.push(part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_of_scripts_are_read() {
        let flags = |body: &str| script(body.as_bytes()).map(|it| (it.0.no_writes, it.0.allow_oom));
        assert!(script(b"return 1").unwrap().0.is_compatible);
        assert_eq!(flags("#!lua\nreturn 1"), Ok((false, false)));
        assert_eq!(flags("#!lua flags=\nreturn 1"), Ok((false, false)));
        assert_eq!(flags("#!lua flags=allow-oom,no-writes\nreturn 1"), Ok((true, true)));
        assert_eq!(script(b"#!lua\nreturn 1").unwrap().1, b"\nreturn 1");
        for (body, expected) in [
            ("#!lua", "Invalid script shebang"),
            ("#!not-lua\n", "Unexpected engine in script shebang: #!not-lua"),
            ("#!lua badger=data\n", "Unknown lua shebang option: badger=data"),
            ("#!lua flags=what?\n", "Unexpected flag in script shebang: what?"),
        ] {
            assert_eq!(flags(body), Err(expected.to_owned()));
        }
    }

    #[test]
    fn names_of_libraries_are_read() {
        let name = |payload: &str| library(payload.as_bytes()).map(|it| it.0);
        assert_eq!(name("#!lua name=lib\n"), Ok("lib".to_owned()));
        assert_eq!(name("#!LUA NAME=\"lib\"\n"), Ok("lib".to_owned()));
        for (payload, expected) in [
            ("return 1", "Missing library metadata"),
            ("#!lua name=a", "Invalid library metadata"),
            ("#! name=a\n", "Engine '' not found"),
            (
                "#!lua name=a name=b\n",
                "Invalid metadata value, name argument was given multiple times",
            ),
            ("#!lua name=a foo=bar\n", "Invalid metadata value given: foo=bar"),
            ("#!lua\n", "Library name was not given"),
            ("#!lua name=a-b\n", BAD_NAME),
        ] {
            assert_eq!(name(payload), Err(expected.to_owned()));
        }
    }
}
