//! Where a key stands: the lists that its head names, with its rank in each.

use bytes::{Buf, BufMut, Bytes};

use crate::record;

/// The longest name of a list. It is repeated for each key of the list.
pub const LIST_BYTES_MAX: usize = 512;

/// Lists that one key stands in: each is a row of the archive.
pub const PLACES_MAX: usize = 8;

/// Rank and length of a place.
const PLACE_BYTES: usize = 10;

/// A place in a list. [`crate::Store::list`] gives the keys of a list, the highest rank first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The opaque name of the list, of at most [`LIST_BYTES_MAX`] bytes.
    pub list: Bytes,
    pub rank: u64,
}

impl Place {
    pub(crate) fn copied(&self) -> Self {
        Self { list: Bytes::copy_from_slice(&self.list), rank: self.rank }
    }
}

/// Bytes of the places as they are stored.
pub(crate) fn bytes(places: &[Place]) -> usize {
    places.iter().map(|place| PLACE_BYTES + place.list.len()).sum()
}

pub(crate) fn put(out: &mut impl BufMut, places: &[Place]) {
    for Place { list, rank } in places {
        out.put_u64_le(*rank);
        out.put_u16_le(record::short_length(list.len()));
        out.put_slice(list);
    }
}

/// The places in `bytes`, whose checksum vouches for them.
pub(crate) fn decode(mut bytes: &[u8]) -> Vec<Place> {
    let mut next = || {
        let rank = bytes.try_get_u64_le().ok()?;
        let length = bytes.try_get_u16_le().ok()?;
        let (list, rest) = bytes.split_at_checked(usize::from(length))?;
        bytes = rest;
        Some(Place { list: Bytes::copy_from_slice(list), rank })
    };
    std::iter::from_fn(&mut next).collect()
}
