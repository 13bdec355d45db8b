//! Blobs: large values beside the logs, one file each. A file stays as long as a key refers to it or
//! a [`BlobPin`] holds it.
//!
//! A pin is taken before the file is looked for, and a file is removed under the lock of the pins:
//! so no caller is told of a file that then goes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs::{self, DirBuilder};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use crc32fast::Hasher;

use crate::error::Error;
use crate::files::{failed, private_file, sync_directory};
use crate::shared::lock;

/// The name of a blob, made by the caller. Two blobs of one name are taken for the same.
pub type BlobId = [u8; BLOB_ID_BYTES];

pub(crate) const BLOB_ID_BYTES: usize = 32;

/// Blobs that may wait to be looked at; when there are more, all files are.
const RELEASED_MAX: usize = 4096;

const TEMPORARY: &str = "new";

/// Keeps a blob's file while it is held, whether or not a key refers to the blob.
#[derive(Debug)]
#[must_use = "without its pin a blob that no key refers to is removed"]
pub struct BlobPin {
    blobs: Arc<Blobs>,
    id: BlobId,
}

impl Drop for BlobPin {
    fn drop(&mut self) {
        self.blobs.unpin(&self.id);
    }
}

/// The files of the blobs.
#[derive(Debug)]
pub(crate) struct Blobs {
    dir: PathBuf,
    held: Mutex<Held>,
    /// The folders whose names are known to be durable.
    folders: Mutex<BTreeSet<u8>>,
    temporaries: AtomicU64,
}

#[derive(Debug, Default)]
struct Held {
    pins: BTreeMap<BlobId, u64>,
    /// Blobs that lost a pin or a reference: the archive's thread looks whether they are needed.
    released: BTreeSet<BlobId>,
    /// There were too many to note.
    lost_count: bool,
}

impl Held {
    fn release(&mut self, id: BlobId) {
        if self.released.len() < RELEASED_MAX {
            self.released.insert(id);
        } else {
            self.lost_count = true;
        }
    }
}

/// What is to be looked at.
pub(crate) enum Released {
    These(BTreeSet<BlobId>),
    Unknown,
}

impl Blobs {
    pub(crate) fn new(dir: PathBuf) -> Self {
        Self {
            dir,
            held: Mutex::default(),
            folders: Mutex::default(),
            temporaries: AtomicU64::default(),
        }
    }

    /// Stores a blob, if it is not there. It is durable afterwards.
    pub(crate) fn put(self: &Arc<Self>, id: BlobId, bytes: &[u8]) -> Result<BlobPin, Error> {
        *lock(&self.held).pins.entry(id).or_default() += 1;
        let pin = BlobPin { blobs: Arc::clone(self), id };
        let folder = self.folder(&id);
        self.make_folder(&folder, &id)?;
        let path = self.path(&id);
        if !path.try_exists().map_err(failed("look for", &path))? {
            self.write(&path, bytes)?;
        }
        // A file that was there may be one that a put of this moment, or one before a crash, has
        // renamed and not made durable.
        sync_directory(&folder)?;
        Ok(pin)
    }

    pub(crate) fn get(&self, id: &BlobId) -> Result<Option<Bytes>, Error> {
        let path = self.path(id);
        match fs::read(&path) {
            Ok(bytes) => Ok(Some(Bytes::from(bytes))),
            Err(error) if is_absent(&error) => Ok(None),
            Err(error) => Err(failed("read", &path)(error)),
        }
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), Error> {
        let number = self.temporaries.fetch_add(1, Ordering::Relaxed);
        let temporary = path.with_extension(format!("{number}.{TEMPORARY}"));
        let write = || -> io::Result<()> {
            let mut file = private_file().create(true).truncate(true).open(&temporary)?;
            file.write_all(bytes)?;
            file.sync_all()?;
            fs::rename(&temporary, path)
        };
        write().map_err(|error| {
            // What is left of it otherwise goes with the next open.
            let _ = fs::remove_file(&temporary);
            failed("write", &temporary)(error)
        })
    }

    /// Makes the blob's folder, and its name durable, at its first use.
    fn make_folder(&self, folder: &Path, id: &BlobId) -> Result<(), Error> {
        let mut folders = lock(&self.folders);
        if folders.contains(&first_byte(id)) {
            return Ok(());
        }
        if !folder.is_dir() {
            let made = DirBuilder::new().mode(0o700).create(folder);
            made.map_err(failed("create the directory", folder))?;
        }
        sync_directory(&self.dir)?;
        folders.insert(first_byte(id));
        Ok(())
    }

    fn unpin(&self, id: &BlobId) {
        let mut held = lock(&self.held);
        if let Some(pins) = held.pins.get_mut(id) {
            *pins -= 1;
            if *pins == 0 {
                held.pins.remove(id);
                held.release(*id);
            }
        }
    }

    /// Notes blobs that lost a reference.
    pub(crate) fn release(&self, ids: impl IntoIterator<Item = BlobId>) {
        let mut held = lock(&self.held);
        ids.into_iter().for_each(|id| held.release(id));
    }

    /// What was noted since the last call.
    pub(crate) fn take_released(&self) -> Released {
        let mut held = lock(&self.held);
        let released = std::mem::take(&mut held.released);
        if std::mem::take(&mut held.lost_count) {
            Released::Unknown
        } else {
            Released::These(released)
        }
    }

    /// Removes the file of a blob, unless it is pinned or referred to.
    pub(crate) fn remove_unused(
        &self,
        id: &BlobId,
        is_referenced: impl FnOnce() -> Result<bool, Error>,
    ) -> Result<(), Error> {
        let held = lock(&self.held);
        if held.pins.contains_key(id) || is_referenced()? {
            return Ok(());
        }
        remove(&self.path(id));
        Ok(())
    }

    /// The blobs in the folder of this first byte. Temporary files that nobody writes go.
    pub(crate) fn in_folder(&self, first: u8) -> Result<Vec<BlobId>, Error> {
        let folder = self.dir.join(hex(&[first]));
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if is_absent(&error) => return Ok(Vec::new()),
            Err(error) => return Err(failed("list", &folder)(error)),
        };
        let mut found = Vec::new();
        for entry in entries {
            let path = entry.map_err(failed("list", &folder))?.path();
            let id = path.file_prefix().and_then(|name| parse(name.as_encoded_bytes()));
            // Whatever is not named like a blob is left alone.
            let Some(id) = id else { continue };
            match path.extension() {
                None => found.push(id),
                Some(extension) if extension == TEMPORARY => {
                    let held = lock(&self.held);
                    if !held.pins.contains_key(&id) {
                        remove(&path);
                    }
                }
                Some(_) => {}
            }
        }
        Ok(found)
    }

    /// Makes removals durable.
    pub(crate) fn sync(dir: &Path) -> Result<(), Error> {
        for entry in fs::read_dir(dir).map_err(failed("list", dir))? {
            sync_directory(&entry.map_err(failed("list", dir))?.path())?;
        }
        sync_directory(dir)
    }

    fn folder(&self, id: &BlobId) -> PathBuf {
        self.dir.join(hex(&[first_byte(id)]))
    }

    fn path(&self, id: &BlobId) -> PathBuf {
        self.folder(id).join(hex(id))
    }
}

/// The checksum of a reference.
pub(crate) fn reference_checksum(id: &BlobId, key: &[u8]) -> u32 {
    let mut hasher = Hasher::new();
    hasher.update(id);
    hasher.update(key);
    hasher.finalize()
}

fn first_byte(id: &BlobId) -> u8 {
    let [first, ..] = id;
    *first
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn parse(name: &[u8]) -> Option<BlobId> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let (pairs, []) = name.as_chunks::<2>() else {
        return None;
    };
    let bytes: Option<Vec<u8>> =
        pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?)).collect();
    bytes?.try_into().ok()
}

/// A file that cannot be removed stays until the next open looks at it again.
fn remove(path: &Path) {
    match fs::remove_file(path) {
        Ok(()) => {}
        Err(error) if is_absent(&error) => {}
        Err(error) => tracing::warn!(path = %path.display(), %error, "cannot remove a blob"),
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}
