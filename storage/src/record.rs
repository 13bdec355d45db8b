//! An event as it is stored, in journal rows and in segments alike: length, checksum, bytes.
//!
//! The checksum covers the key and the seq as well, so that bytes in the wrong place are as damaged
//! as wrong bytes.

use bytes::{Buf, BufMut};
use crc32fast::Hasher;

use crate::error::Error;

/// Bytes of a record beside its event.
pub(crate) const RECORD_BYTES: usize = 8;

/// The checksum of one key's records, with the key already taken in.
pub(crate) struct Checksum(Hasher);

impl Checksum {
    pub(crate) fn of(key: &[u8]) -> Self {
        let mut hasher = Hasher::new();
        hasher.update(key);
        Self(hasher)
    }

    fn event(&self, seq: u64, event: &[u8]) -> u32 {
        let mut hasher = self.0.clone();
        hasher.update(&seq.to_le_bytes());
        hasher.update(event);
        hasher.finalize()
    }
}

/// The checksum of a key: what stands for it where the key itself may be damaged.
pub(crate) fn key_hash(key: &[u8]) -> u32 {
    crc32fast::hash(key)
}

pub(crate) fn put(out: &mut impl BufMut, checksum: &Checksum, seq: u64, event: &[u8]) {
    out.put_u32_le(length(event.len()));
    out.put_u32_le(checksum.event(seq, event));
    out.put_slice(event);
}

/// A length as it is stored. Appends and documents are bounded far below 4 GiB where they come in.
pub(crate) fn length(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

/// The same in two bytes, for what is bounded below 64 KiB.
pub(crate) fn short_length(bytes: usize) -> u16 {
    u16::try_from(bytes).unwrap_or(u16::MAX)
}

/// Reads the records of one key in order.
pub(crate) struct Records<'a> {
    key: &'a [u8],
    checksum: Checksum,
    seq: u64,
    left: u32,
    rest: &'a [u8],
    bytes: usize,
}

/// One record of [`Records`]: `offset` is where the event starts in the bytes given to
/// [`Records::new`].
pub(crate) struct Record<'a> {
    pub seq: u64,
    pub offset: usize,
    pub event: &'a [u8],
}

impl<'a> Records<'a> {
    pub(crate) fn new(key: &'a [u8], first_seq: u64, count: u32, records: &'a [u8]) -> Self {
        Self {
            key,
            checksum: Checksum::of(key),
            seq: first_seq,
            left: count,
            rest: records,
            bytes: records.len(),
        }
    }

    fn read(&mut self) -> Result<Record<'a>, Error> {
        let damaged = |what| Error::damaged(self.key, what);
        let mut rest = self.rest;
        let (Ok(length), Ok(checksum)) = (rest.try_get_u32_le(), rest.try_get_u32_le()) else {
            return Err(damaged("an event is cut short"));
        };
        let Some((event, after)) = rest.split_at_checked(length as usize) else {
            return Err(damaged("an event is cut short"));
        };
        if self.checksum.event(self.seq, event) != checksum {
            return Err(damaged("an event does not match its checksum"));
        }
        let record = Record { seq: self.seq, offset: self.bytes - rest.len(), event };
        self.rest = after;
        self.seq += 1;
        self.left -= 1;
        Ok(record)
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<Record<'a>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.left == 0 {
            return None;
        }
        let record = self.read();
        if record.is_err() {
            self.left = 0;
        }
        Some(record)
    }
}
