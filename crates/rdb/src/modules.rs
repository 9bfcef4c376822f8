//! Names of modules, as they are in numbers.

/// The letters of a name, each of six bits.
const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
/// How many letters a name has.
const NAME_LETTERS: u32 = 9;
/// So many bits below the name are its version.
const VERSION_BITS: u32 = 10;

/// The type of a module that a number stands for: its name, and its version.
pub(crate) fn module_type(id: u64) -> String {
    let letter = |at: u32| {
        let six = id >> (VERSION_BITS + 6 * (NAME_LETTERS - 1 - at)) & 0x3f;
        char::from(LETTERS[six as usize])
    };
    let name: String = (0..NAME_LETTERS).map(letter).collect();
    format!("`{name}`, version {}", id & ((1 << VERSION_BITS) - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_the_high_bits() {
        let letters = b"ReJSON-RL".map(|it| LETTERS.iter().position(|at| *at == it).unwrap());
        let id = letters.iter().fold(0, |id, letter| id << 6 | *letter as u64) << 10 | 3;
        assert_eq!(module_type(id), "`ReJSON-RL`, version 3");
        assert_eq!(module_type(0), "`AAAAAAAAA`, version 0");
    }
}
