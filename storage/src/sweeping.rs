//! Removing the files of blobs that no key refers to: of those that lost a pin or a reference, and
//! after an open of all.

use std::collections::BTreeSet;

use redb::{Database, ReadableDatabase};

use crate::blobs::{self, BLOB_ID_BYTES, BlobId, Released};
use crate::error::Error;
use crate::shared::Shared;
use crate::tables::BLOB_KEYS;

/// Where a look at all files is: one folder at a time, so that moves go on in between.
pub(crate) struct Sweep {
    next_folder: Option<u8>,
}

impl Default for Sweep {
    fn default() -> Self {
        Self { next_folder: Some(0) }
    }
}

impl Sweep {
    pub(crate) fn is_done(&self) -> bool {
        self.next_folder.is_none()
    }

    /// Looks at what was released and at one folder. A failure costs room on the disk until the
    /// next open, and nothing else.
    pub(crate) fn go_on(&mut self, shared: &Shared) {
        let outcome = match shared.blobs.take_released() {
            Released::These(ids) => ids.iter().try_for_each(|id| remove_unused(shared, id)),
            Released::Unknown => {
                self.next_folder = Some(0);
                Ok(())
            }
        };
        let outcome = outcome.and(match self.next_folder {
            None => Ok(()),
            Some(folder) => {
                self.next_folder = folder.checked_add(1);
                sweep_folder(shared, folder)
            }
        });
        if let Err(error) = outcome {
            tracing::error!(%error, "blobs that nobody needs are kept");
        }
    }
}

fn sweep_folder(shared: &Shared, folder: u8) -> Result<(), Error> {
    let ids = shared.blobs.in_folder(folder)?;
    if ids.is_empty() {
        return Ok(());
    }
    let referenced = archived_references(&shared.archive, folder)?;
    let unused = ids.iter().filter(|id| !referenced.contains(*id));
    unused.into_iter().try_for_each(|id| remove_unused(shared, id))
}

fn remove_unused(shared: &Shared, id: &BlobId) -> Result<(), Error> {
    shared.blobs.remove_unused(id, || {
        // In this order: what leaves the journal is in the archive by then.
        Ok(shared.index().refers_to(id) || is_archived(&shared.archive, id)?)
    })
}

fn is_archived(archive: &Database, id: &BlobId) -> Result<bool, Error> {
    let read = || -> Result<bool, redb::Error> {
        let mut references =
            archive.begin_read()?.open_table(BLOB_KEYS)?.range((id, [].as_slice())..)?;
        let first = references.next().transpose()?;
        Ok(first.is_some_and(|(reference, _)| reference.value().0 == id))
    };
    read().map_err(|source| Error::database("look for references to a blob", source))
}

/// The blobs of a folder that the archive's keys refer to. A damaged reference may be to any of
/// them, so then none is removed.
fn archived_references(archive: &Database, folder: u8) -> Result<BTreeSet<BlobId>, Error> {
    let mut first = [0; BLOB_ID_BYTES];
    let [byte, ..] = &mut first;
    *byte = folder;
    let mut sound = true;
    let mut read = || -> Result<BTreeSet<BlobId>, redb::Error> {
        let mut referenced = BTreeSet::new();
        let table = archive.begin_read()?.open_table(BLOB_KEYS)?;
        for entry in table.range((&first, [].as_slice())..)? {
            let (reference, checksum) = entry?;
            let (id, key) = reference.value();
            sound &= blobs::reference_checksum(id, key) == checksum.value();
            if !id.starts_with(&[folder]) {
                break;
            }
            referenced.insert(*id);
        }
        Ok(referenced)
    };
    let referenced = read();
    let referenced =
        referenced.map_err(|source| Error::database("read references to blobs", source))?;
    if !sound {
        return Err(Error::damaged(b"the references to blobs", "one does not match its checksum"));
    }
    Ok(referenced)
}
