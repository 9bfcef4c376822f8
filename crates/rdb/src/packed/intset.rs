//! Intsets: the size of a member in bytes (4), how many there are (4), and the members.

use super::bytes::{Damage, LENGTH, PackedBytes, text};

const SIZE: Damage = "members have two, four or eight bytes";

/// How many members there are, and the size of each.
pub(super) fn begin(bytes: &mut PackedBytes) -> Result<(Option<u64>, usize), Damage> {
    let size = u32::from_le_bytes(bytes.array()?);
    if ![2, 4, 8].contains(&size) {
        return Err(SIZE);
    }
    let count = u64::from(u32::from_le_bytes(bytes.array()?));
    if (bytes.len() - bytes.at()) as u64 != count * u64::from(size) {
        return Err(LENGTH);
    }
    Ok((Some(count), size as usize))
}

/// The next member of this size; `None` at the end.
pub(super) fn next(bytes: &mut PackedBytes, size: usize) -> Result<Option<Vec<u8>>, Damage> {
    if bytes.is_at_end() {
        return Ok(None);
    }
    let number = match size {
        2 => i64::from(i16::from_le_bytes(bytes.array()?)),
        4 => i64::from(i32::from_le_bytes(bytes.array()?)),
        _ => i64::from_le_bytes(bytes.array()?),
    };
    Ok(Some(text(number)))
}

#[cfg(test)]
mod tests {
    use super::super::PackedEncoding::Intset;
    use super::super::tests::entries;

    #[test]
    fn members_have_three_sizes() {
        let intset = |size: u8, members: &[&[u8]]| {
            let head = [size, 0, 0, 0, members.len() as u8, 0, 0, 0];
            entries(Intset, &[&head[..], &members.concat()].concat())
        };
        assert_eq!(intset(2, &[&[0xff, 0xff], &[1, 0]]).unwrap(), ["-1", "1"]);
        assert_eq!(intset(4, &[&i32::MIN.to_le_bytes()]).unwrap(), [i32::MIN.to_string()]);
        assert_eq!(intset(8, &[&i64::MAX.to_le_bytes()]).unwrap(), [i64::MAX.to_string()]);
        assert_eq!(intset(2, &[]).unwrap(), [""; 0]);
        assert!(intset(3, &[&[0, 0, 0]]).unwrap_err().contains("two, four or eight"));
        assert!(intset(2, &[&[0, 0, 0]]).unwrap_err().contains("as long as it says"));
        assert!(entries(Intset, &[2, 0, 0, 0]).is_err());
    }
}
