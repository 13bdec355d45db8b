//! Documents: small named values beside the logs, in the archive.

use bytes::{BufMut, Bytes};
use crc32fast::Hasher;
use redb::{Database, ReadableDatabase, WriteTransaction};

use crate::error::Error;
use crate::tables::DOCUMENTS;

/// The largest document. Larger values belong into files: redb rounds them up to a power of two of
/// pages.
pub const DOCUMENT_BYTES_MAX: usize = 1 << 20;

pub(crate) fn get(archive: &Database, name: &str) -> Result<Option<Bytes>, Error> {
    let read = || -> Result<_, redb::Error> {
        let bytes = archive.begin_read()?.open_table(DOCUMENTS)?.get_owned(name)?;
        Ok(bytes.map(|bytes| decode(name, bytes.value())))
    };
    read().map_err(|source| Error::database("read a document", source))?.transpose()
}

pub(crate) fn list(archive: &Database, prefix: &str) -> Result<Vec<(String, Bytes)>, Error> {
    let read = || -> Result<_, redb::Error> {
        let mut found = Vec::new();
        for entry in archive.begin_read()?.open_table(DOCUMENTS)?.range_owned(prefix..)? {
            let (name, bytes) = entry?;
            if !name.value().starts_with(prefix) {
                break;
            }
            let document = decode(name.value(), bytes.value());
            found.push(document.map(|bytes| (name.value().to_owned(), bytes)));
        }
        Ok(found)
    };
    let found = read().map_err(|source| Error::database("list documents", source))?;
    found.into_iter().collect()
}

/// Puts, or with `None` removes, a document.
pub(crate) fn change(
    txn: &WriteTransaction,
    name: &str,
    bytes: Option<&Bytes>,
) -> Result<(), redb::Error> {
    let mut table = txn.open_table(DOCUMENTS)?;
    match bytes {
        Some(bytes) => {
            let mut value = table.insert_reserve(name, bytes.len() + 4)?;
            let mut out = value.as_mut();
            out.put_u32_le(checksum(name, bytes));
            out.put_slice(bytes);
        }
        None => {
            table.remove(name)?;
        }
    }
    Ok(())
}

fn decode(name: &str, bytes: &[u8]) -> Result<Bytes, Error> {
    match bytes.split_first_chunk() {
        Some((stored, body)) if u32::from_le_bytes(*stored) == checksum(name, body) => {
            Ok(Bytes::copy_from_slice(body))
        }
        Some(_) | None => Err(Error::damaged(name.as_bytes(), "it does not match its checksum")),
    }
}

fn checksum(name: &str, body: &[u8]) -> u32 {
    let mut hasher = Hasher::new();
    hasher.update(name.as_bytes());
    hasher.update(body);
    hasher.finalize()
}
