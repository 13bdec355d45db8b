//! A segment: many events of one key, compressed, with a checksum over all that is stored and where
//! it is stored.

use bytes::{Buf, BufMut, Bytes};
use crc32fast::Hasher;

use crate::error::Error;
use crate::record::{self, Records};

/// Bytes of events, uncompressed, up to which a segment grows by being rewritten. Reading one event
/// costs at most this much decompression.
pub(crate) const SEGMENT_BYTES_MAX: usize = 64 << 10;

const HEADER_BYTES: usize = 12;
/// zstd's fastest level: segments are written once or a few times and are mostly text.
const COMPRESSION_LEVEL: i32 = 1;

/// The records of consecutive events, uncompressed.
pub(crate) struct Segment {
    pub first_seq: u64,
    pub count: u32,
    pub records: Bytes,
}

impl Segment {
    pub(crate) fn last_seq(&self) -> u64 {
        self.first_seq + u64::from(self.count) - 1
    }

    pub(crate) fn events<'a>(&'a self, key: &'a [u8]) -> Records<'a> {
        Records::new(key, self.first_seq, self.count, &self.records)
    }
}

/// What a segment's header tells without decompressing it.
pub(crate) struct Size {
    pub count: u32,
    pub records_bytes: usize,
}

pub(crate) fn size(key: &[u8], mut bytes: &[u8]) -> Result<Size, Error> {
    match (bytes.try_get_u32_le(), bytes.try_get_u32_le()) {
        (Ok(count), Ok(records_bytes)) => Ok(Size { count, records_bytes: records_bytes as usize }),
        _ => Err(Error::damaged(key, "a segment is cut short")),
    }
}

pub(crate) fn encode(
    key: &[u8],
    first_seq: u64,
    count: u32,
    records: &[u8],
) -> std::io::Result<Vec<u8>> {
    let payload = zstd::bulk::compress(records, COMPRESSION_LEVEL)?;
    let mut out = Vec::with_capacity(HEADER_BYTES + payload.len());
    out.put_u32_le(count);
    out.put_u32_le(record::length(records.len()));
    out.put_u32_le(checksum(key, first_seq, &out, &payload));
    out.put_slice(&payload);
    Ok(out)
}

pub(crate) fn decode(key: &[u8], first_seq: u64, bytes: &[u8]) -> Result<Segment, Error> {
    let damaged = |what| Error::damaged(key, what);
    let Size { count, records_bytes } = size(key, bytes)?;
    let (header, payload) =
        bytes.split_at_checked(HEADER_BYTES).ok_or_else(|| damaged("a segment is cut short"))?;
    let (sizes, mut stored) = header.split_at(HEADER_BYTES - 4);
    if stored.try_get_u32_le() != Ok(checksum(key, first_seq, sizes, payload)) {
        return Err(damaged("a segment does not match its checksum"));
    }
    // The checksum vouches for the size, so that a damaged one cannot make this allocate at will.
    let records = zstd::bulk::decompress(payload, records_bytes)
        .map_err(|_| damaged("a segment does not decompress"))?;
    Ok(Segment { first_seq, count, records: Bytes::from(records) })
}

fn checksum(key: &[u8], first_seq: u64, sizes: &[u8], payload: &[u8]) -> u32 {
    let mut hasher = Hasher::new();
    hasher.update(key);
    hasher.update(&first_seq.to_le_bytes());
    hasher.update(sizes);
    hasher.update(payload);
    hasher.finalize()
}
