//! The archive's directory: one head for each key, and the index of the keys that owe something.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::{Buf, BufMut, Bytes};
use crc32fast::Hasher;
use redb::{Database, ReadTransaction, ReadableDatabase, ReadableTable};

use crate::error::Error;
use crate::place::{self, Place};
use crate::record;
use crate::tables::{HEADS, OWING, SEGMENTS};

const FLAG_OWES: u8 = 1;

/// The head of a key as it is stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredHead {
    /// The seq of the key's last event; 0 if it has none.
    pub last_seq: u64,
    /// What the last append gave as [`crate::Head::summary`].
    pub summary: Bytes,
    /// What the last append gave as [`crate::Head::owes`].
    pub owes: bool,
    /// What the last append gave as [`crate::Head::places`].
    pub places: Vec<Place>,
}

pub(crate) fn encode(key: &[u8], head: &StoredHead) -> Vec<u8> {
    let places_bytes = place::bytes(&head.places);
    let mut body = Vec::with_capacity(15 + places_bytes + head.summary.len());
    body.put_u64_le(head.last_seq);
    body.put_u8(if head.owes { FLAG_OWES } else { 0 });
    body.put_u16_le(record::short_length(places_bytes));
    place::put(&mut body, &head.places);
    body.put_slice(&head.summary);
    body.put_u32_le(checksum(key, &body));
    body
}

pub(crate) fn decode(key: &[u8], bytes: &[u8]) -> Result<StoredHead, Error> {
    let read = || {
        let (body, mut stored) = bytes.split_last_chunk::<4>().map(|(a, b)| (a, b.as_slice()))?;
        if stored.try_get_u32_le().ok()? != checksum(key, body) {
            return None;
        }
        let mut fields = body;
        let last_seq = fields.try_get_u64_le().ok()?;
        let owes = fields.try_get_u8().ok()? & FLAG_OWES != 0;
        let places_bytes = fields.try_get_u16_le().ok()?;
        let (places, summary) = fields.split_at_checked(usize::from(places_bytes))?;
        let summary = Bytes::copy_from_slice(summary);
        Some(StoredHead { last_seq, summary, owes, places: place::decode(places) })
    };
    read().ok_or_else(|| Error::damaged(key, "its head does not match its checksum"))
}

fn checksum(key: &[u8], body: &[u8]) -> u32 {
    let mut hasher = Hasher::new();
    hasher.update(key);
    hasher.update(body);
    hasher.finalize()
}

/// The archived head of a key.
pub(crate) fn head(archive: &Database, key: &[u8]) -> Result<Option<StoredHead>, Error> {
    let txn = archive.begin_read().map_err(|error| Error::database("read a head", error))?;
    head_in(&txn, key)
}

pub(crate) fn head_in(txn: &ReadTransaction, key: &[u8]) -> Result<Option<StoredHead>, Error> {
    let failed = |source| Error::database("read a head", source);
    let heads = txn.open_table(HEADS).map_err(|error| failed(redb::Error::from(error)))?;
    if let Some(bytes) = heads.get(key).map_err(|error| failed(error.into()))? {
        return decode(key, bytes.value()).map(Some);
    }
    // A key without a head must have no segments either: else the head's row is what is damaged.
    let segments = txn.open_table(SEGMENTS).map_err(|error| failed(error.into()))?;
    let mut of_key =
        segments.range((key, 0)..=(key, u64::MAX)).map_err(|error| failed(error.into()))?;
    match of_key.next() {
        None => Ok(None),
        Some(_) => Err(Error::damaged(key, "its head is missing")),
    }
}

/// The keys that owe something: `latest`, which the journal knows, over the archived ones.
pub(crate) fn owing(
    archive: &Database,
    mut latest: BTreeMap<Arc<[u8]>, bool>,
) -> Result<Vec<Arc<[u8]>>, Error> {
    let failed = |source| Error::database("read what is owed", source);
    if !read_owing(archive, &mut latest).map_err(failed)? {
        tracing::error!("the index of the keys that owe is damaged: reading every head");
        read_heads(archive, &mut latest).map_err(failed)?;
    }
    Ok(latest.into_iter().filter_map(|(key, owes)| owes.then_some(key)).collect())
}

/// Reads the index. Returns whether all of it is sound.
fn read_owing(
    archive: &Database,
    latest: &mut BTreeMap<Arc<[u8]>, bool>,
) -> Result<bool, redb::Error> {
    let mut sound = true;
    for entry in archive.begin_read()?.open_table(OWING)?.iter()? {
        let (key, hash) = entry?;
        if record::key_hash(key.value()) == hash.value() {
            latest.entry(Arc::from(key.value())).or_insert(true);
        } else {
            sound = false;
        }
    }
    Ok(sound)
}

/// Reads what the index is made from. A damaged head answers for itself when it is asked for.
fn read_heads(
    archive: &Database,
    latest: &mut BTreeMap<Arc<[u8]>, bool>,
) -> Result<(), redb::Error> {
    for entry in archive.begin_read()?.open_table(HEADS)?.iter()? {
        let (key, bytes) = entry?;
        if decode(key.value(), bytes.value()).is_ok_and(|head| head.owes) {
            latest.entry(Arc::from(key.value())).or_insert(true);
        }
    }
    Ok(())
}
