//! What an erasure takes out of the archive. Everything here may be done again: a crash repeats it
//! until the journal lets go of the erasure.

use redb::{Database, ReadableDatabase, ReadableTable};

use crate::blobs::{BLOB_ID_BYTES, BlobId};
use crate::directory;
use crate::error::Error;
use crate::record;
use crate::row;
use crate::tables::{ArchiveTables, KEY_BLOBS, SEGMENTS};

/// Segments, and references to blobs, that one transaction removes of a key: a few ten
/// milliseconds.
const ROWS_MAX: usize = 512;

const FIRST_BLOB: BlobId = [u8::MIN; BLOB_ID_BYTES];
const LAST_BLOB: BlobId = [u8::MAX; BLOB_ID_BYTES];

/// Whether the key has more rows than one transaction should remove.
pub(crate) fn is_long(archive: &Database, key: &[u8]) -> Result<bool, Error> {
    let count = || -> Result<bool, redb::Error> {
        let txn = archive.begin_read()?;
        let mut segments = txn.open_table(SEGMENTS)?.range((key, 0)..=(key, u64::MAX))?;
        let blobs = txn.open_table(KEY_BLOBS)?;
        let mut blobs = blobs.range((key, &FIRST_BLOB)..=(key, &LAST_BLOB))?;
        Ok(segments.nth(ROWS_MAX).is_some() || blobs.nth(ROWS_MAX).is_some())
    };
    count().map_err(|source| Error::database("count what is erased", source))
}

impl ArchiveTables<'_> {
    /// Removes the first rows of a long log. Returns the blobs that lost a reference.
    pub(crate) fn erase_some(&mut self, key: &[u8]) -> Result<Vec<BlobId>, redb::Error> {
        let of_key = self.segments.range((key, 0)..=(key, u64::MAX))?.take(ROWS_MAX);
        let first_seqs: Result<Vec<u64>, _> =
            of_key.map(|entry| entry.map(|(id, _)| id.value().1)).collect();
        for first_seq in first_seqs? {
            self.segments.remove((key, first_seq))?;
        }
        let of_key = self.key_blobs.range((key, &FIRST_BLOB)..=(key, &LAST_BLOB))?.take(ROWS_MAX);
        let blobs: Result<Vec<BlobId>, _> =
            of_key.map(|entry| entry.map(|(id, _)| *id.value().1)).collect();
        let blobs = blobs?;
        for id in &blobs {
            self.key_blobs.remove((key, id))?;
            self.blob_keys.remove((id, key))?;
        }
        Ok(blobs)
    }

    /// Removes a log that is not long, its head, and what stands for it elsewhere. Returns the blobs
    /// that lost a reference.
    pub(crate) fn erase(&mut self, key: &[u8]) -> Result<Vec<BlobId>, redb::Error> {
        let blobs = self.erase_some(key)?;
        self.owing.remove(key)?;
        let Some(head) = self.heads.remove(key)?.map(|bytes| directory::decode(key, bytes.value()))
        else {
            return Ok(blobs);
        };
        match head {
            Ok(head) => {
                for place in &head.places {
                    self.places.remove((place.list.as_ref(), !place.rank, key))?;
                }
            }
            // Nothing else says where the key stood.
            Err(_) => self.places.retain(|(_, _, of_key), ()| of_key != key)?,
        }
        Ok(blobs)
    }

    /// Takes an erased key out of quarantine. A run that may be of another key with the same
    /// checksum goes on standing for that one, without its bytes.
    pub(crate) fn pardon(&mut self, key: &[u8]) -> Result<(), redb::Error> {
        let hash = record::key_hash(key);
        let mut unclear = Vec::new();
        let mut of_others = false;
        self.quarantine.retain_in((hash, 0, 0)..=(hash, u64::MAX, u32::MAX), |id, bytes| {
            match row::owner(bytes) {
                Some(owner) if owner == key => return false,
                Some(_) => of_others = true,
                None => unclear.push(id),
            }
            true
        })?;
        for id in &unclear {
            self.quarantine.insert(*id, [].as_slice())?;
        }
        if of_others || !unclear.is_empty() {
            self.pardoned.insert(key, ())?;
        } else {
            self.pardoned.remove(key)?;
        }
        Ok(())
    }
}
