//! The keys of a repository with their versions, as pieces of a checkpoint.

use super::{COLLECTED, Spaces};
use crate::bytes::SmallBytes;
use crate::catalog::Catalog;
use crate::checkpoint::{Cursor, Rest, pieces};
use crate::ids::{SpaceId, Timestamp};
use crate::parts::versions::{Chain, Versions};
use crate::wire::{Reader, Wire, WireError};

/// So many collected deletions of a key stand together.
const COLLECTED_PER_CHAIN: usize = 1 << 10;

/// What pieces of a checkpoint begin with that hold versions of keys.
#[derive(Clone, Copy, Debug)]
pub struct ChainKinds {
    /// Keys with their versions, of the last perhaps the oldest ones only.
    pub chains: u8,
    /// More versions of the last key.
    pub rest: u8,
    /// Whether the versions of one key may be cut. Off, a piece grows with the data, to see that
    /// noticed.
    pub cuts: bool,
}

impl Spaces {
    /// Appends the next piece of a checkpoint: chains of a space from where the cursor stands, of
    /// about `bytes` bytes, or longer by one version of a key; false: there are none left. A chain
    /// that is longer goes in several pieces, all of it as it was when its turn came. Stages of the
    /// cursor are numbers of spaces.
    pub fn next_chains(
        &self,
        kinds: ChainKinds,
        cursor: &mut Cursor,
        bytes: usize,
        out: &mut Vec<u8>,
    ) -> bool {
        if let Some(rest) = cursor.rest.take() {
            let end = out.len() + bytes;
            out.push(kinds.rest);
            rest.space.encode(out);
            rest.key.encode(out);
            cursor.rest = encode_some(rest, end, out);
            return true;
        }
        while (cursor.step as usize) < self.stores.len() {
            if self.chains_of_space(kinds, cursor, bytes, out) {
                cursor.percent = self.percent(cursor);
                return true;
            }
            (cursor.step, cursor.place) = (cursor.step + 1, 0);
        }
        cursor.step = cursor.step.max(COLLECTED);
        while ((cursor.step - COLLECTED) as usize) < self.stores.len() {
            let space = SpaceId((cursor.step - COLLECTED) as u16);
            cursor.step += 1;
            cursor.first.extend(self.collected_of_space(kinds.chains, space, bytes));
        }
        let next = cursor.first.pop_front();
        next.map(|mut piece| out.append(&mut piece)).is_some()
    }

    /// How much a cursor has gone over, of 100.
    fn percent(&self, cursor: &Cursor) -> u8 {
        let slots = |store: &Option<Versions>| store.as_ref().map_or(0, |it| u64::from(it.slots()));
        let before = self.stores[..cursor.step as usize].iter().map(slots).sum::<u64>();
        let all = self.stores.iter().map(slots).sum::<u64>();
        (100 * (before + cursor.place).min(all)).checked_div(all).unwrap_or(100) as u8
    }

    /// The collected deletions of a space that are remembered, as chains that begin with version
    /// zero, as no others do. They come last: what is collected before the key's turn among the
    /// chains is here.
    fn collected_of_space(
        &self,
        kind: u8,
        space: SpaceId,
        bytes: usize,
    ) -> impl Iterator<Item = Vec<u8>> {
        let all = self.get(space).into_iter().flat_map(Versions::all_collected);
        let chains = all.flat_map(|(key, versions)| {
            versions.chunks(COLLECTED_PER_CHAIN).map(|some| {
                let all = std::iter::once(Timestamp::ZERO).chain(some.iter().copied());
                (key.clone(), all.map(|at| (at, None)).collect::<Chain>())
            })
        });
        let mut head = vec![kind];
        space.encode(&mut head);
        pieces(head, chains, bytes)
    }

    fn chains_of_space(
        &self,
        kinds: ChainKinds,
        cursor: &mut Cursor,
        bytes: usize,
        out: &mut Vec<u8>,
    ) -> bool {
        let Some(store) = &self.stores[cursor.step as usize] else { return false };
        let (start, space) = (out.len(), SpaceId(cursor.step as u16));
        let mut count = 0_u32;
        while cursor.place < u64::from(store.slots())
            && cursor.rest.is_none()
            && out.len() - start < bytes
        {
            if let Some((key, chain)) = store.chain_in(cursor.place as u32) {
                if count == 0 {
                    out.push(kinds.chains);
                    space.encode(out);
                    count.encode(out);
                }
                key.encode(out);
                let rest = Rest { space, key: key.clone(), versions: chain.into() };
                let end = if kinds.cuts { start + bytes } else { usize::MAX };
                cursor.rest = encode_some(rest, end, out);
                count += 1;
            }
            cursor.place += 1;
        }
        if count > 0 {
            out[start + 3..start + 7].copy_from_slice(&count.to_le_bytes());
        }
        count > 0
    }

    /// Takes what [`next_chains`](Self::next_chains) has appended, after its kind.
    ///
    /// # Errors
    /// The bytes are none of that, or of a space that there is not. Any may be given.
    pub fn restore_chains(
        &mut self,
        input: &mut Reader<'_>,
        catalog: &Catalog,
    ) -> Result<(), WireError> {
        let space = known_space(input, catalog)?;
        let chains: Vec<(SmallBytes, Chain)> = Wire::decode(input)?;
        let store = self.get_or_make(space, catalog);
        for (key, chain) in chains {
            match chain.split_first() {
                Some(((Timestamp::ZERO, _), collected)) => {
                    collected.iter().for_each(|(at, _)| store.add_collected(&key, *at));
                }
                _ => store.add_chain(&key, chain),
            }
        }
        Ok(())
    }

    /// The same, of a piece with more versions of a key.
    ///
    /// # Errors
    /// The same; or the key has no versions.
    pub fn restore_rest(
        &mut self,
        input: &mut Reader<'_>,
        catalog: &Catalog,
    ) -> Result<(), WireError> {
        let space = known_space(input, catalog)?;
        let at = input.position();
        let (key, rest): (SmallBytes, Chain) = Wire::decode(input)?;
        let what = "key whose first versions came before";
        let added = self.get_or_make(space, catalog).add_rest(&key, rest);
        if added { Ok(()) } else { Err(WireError::Variant { what, at, found: 0 }) }
    }
}

/// Appends versions until `out` is as long as `end`, one at least; what is left.
fn encode_some(mut rest: Rest, end: usize, out: &mut Vec<u8>) -> Option<Rest> {
    let (start, mut count) = (out.len(), 0_u32);
    count.encode(out);
    while (count == 0 || out.len() < end)
        && let Some(version) = rest.versions.pop_front()
    {
        version.encode(out);
        count += 1;
    }
    out[start..start + 4].copy_from_slice(&count.to_le_bytes());
    Some(rest).filter(|rest| !rest.versions.is_empty())
}

fn known_space(input: &mut Reader<'_>, catalog: &Catalog) -> Result<SpaceId, WireError> {
    let at = input.position();
    let space = SpaceId::decode(input)?;
    match catalog.space(space) {
        Some(_) => Ok(space),
        None => Err(WireError::Variant { what: "space", at, found: space.0.into() }),
    }
}
