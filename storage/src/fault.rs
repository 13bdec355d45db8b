//! A disk in memory that records what is done to it and fails where it is told to, for tests of
//! crashes and of failing hardware.

use std::io;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use redb::{BackendError, Builder, StorageBackend};

use crate::error::Error;
use crate::options::Options;
use crate::shared::{guarded, lock};
use crate::store::Store;

/// The files of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FileName {
    Journal,
    Archive,
}

/// Something that was done to a file, in the order of both files.
#[derive(Clone, Debug)]
pub enum Op {
    Write {
        file: FileName,
        offset: u64,
        data: Vec<u8>,
    },
    SetLen {
        file: FileName,
        len: u64,
    },
    /// All that was done to the file before is durable.
    Sync {
        file: FileName,
    },
}

/// The kinds of operation that can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Read,
    Write,
    SetLen,
    Sync,
}

/// Which operations fail: the `nth` of a kind, counted from 1 over both files, and all later ones
/// if `for_ever`.
#[derive(Clone, Copy, Debug)]
pub struct Failure {
    pub kind: Kind,
    pub nth: u64,
    pub for_ever: bool,
    /// The error number of the operating system.
    pub errno: i32,
}

/// The contents of both files.
#[derive(Clone, Debug, Default)]
pub struct Image {
    pub journal: Vec<u8>,
    pub archive: Vec<u8>,
}

impl Image {
    pub fn file(&mut self, file: FileName) -> &mut Vec<u8> {
        match file {
            FileName::Journal => &mut self.journal,
            FileName::Archive => &mut self.archive,
        }
    }

    /// Does to the image what was done to the disk.
    pub fn apply(&mut self, op: &Op) {
        match op {
            Op::Write { file, offset, data } => write(self.file(*file), *offset, data),
            Op::SetLen { file, len } => self.file(*file).resize(index(*len), 0),
            Op::Sync { .. } => {}
        }
    }
}

/// The disk. Clones share it.
///
/// Blobs are not on it, but in a directory of the caller's choice.
#[derive(Clone, Debug, Default)]
pub struct Disk(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    image: Image,
    ops: Vec<Op>,
    counts: [u64; 4],
    failure: Option<Failure>,
    lies_about_syncs: bool,
    blobs: Option<PathBuf>,
}

impl Disk {
    pub fn new(image: Image) -> Self {
        let state = State { image, ..State::default() };
        Self(Arc::new(Mutex::new(state)))
    }

    /// Where the blobs are from the next open on. Without this, putting one is an error.
    pub fn keep_blobs_in(&self, directory: &Path) {
        self.state().blobs = Some(directory.to_owned());
    }

    /// Opens a store on the disk. One at a time: the disk has no locks.
    pub fn open(&self, options: Options) -> Result<Store, Error> {
        let database = |file, cache_bytes| {
            let backend = DiskFile { disk: self.clone(), file };
            guarded(b"a file", || {
                let opened =
                    Builder::new().set_cache_size(cache_bytes).create_with_backend(backend);
                opened.map_err(|error| Error::database("open the database", error))
            })
        };
        let journal = database(FileName::Journal, options.journal_cache_bytes)?;
        let archive = database(FileName::Archive, options.archive_cache_bytes)?;
        let blobs = self.state().blobs.clone();
        // No directory can be made below this.
        let blobs = blobs.unwrap_or_else(|| PathBuf::from("/dev/null"));
        Store::start(journal, archive, blobs, None, options)
    }

    /// What was done so far.
    pub fn ops(&self) -> Vec<Op> {
        self.state().ops.clone()
    }

    /// How much was done so far.
    pub fn ops_count(&self) -> usize {
        self.state().ops.len()
    }

    /// How often each kind of operation was asked for.
    pub fn count(&self, kind: Kind) -> u64 {
        let counts = self.state().counts;
        counts.get(kind as usize).copied().unwrap_or(0)
    }

    /// The contents of the files as a program that is still running sees them.
    pub fn image(&self) -> Image {
        self.state().image.clone()
    }

    pub fn fail(&self, failure: Option<Failure>) {
        self.state().failure = failure;
    }

    /// From here on a sync is answered, and nothing is made durable.
    pub fn lie_about_syncs(&self) {
        self.state().lies_about_syncs = true;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.0)
    }
}

impl State {
    fn check(&mut self, kind: Kind) -> io::Result<()> {
        let Some(count) = self.counts.get_mut(kind as usize) else {
            return Ok(());
        };
        *count += 1;
        match self.failure {
            Some(failure)
                if failure.kind == kind
                    && (*count == failure.nth || (failure.for_ever && *count > failure.nth)) =>
            {
                Err(io::Error::from_raw_os_error(failure.errno))
            }
            Some(_) | None => Ok(()),
        }
    }

    fn apply(&mut self, op: Op) {
        self.image.apply(&op);
        self.ops.push(op);
    }
}

#[derive(Debug)]
struct DiskFile {
    disk: Disk,
    file: FileName,
}

impl StorageBackend for DiskFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.disk.state().image.file(self.file).len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let mut state = self.disk.state();
        state.check(Kind::Read)?;
        let start = index(offset);
        let bytes = state.image.file(self.file).get(start..start + out.len());
        let bytes = bytes.ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))?;
        out.copy_from_slice(bytes);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut state = self.disk.state();
        state.check(Kind::SetLen)?;
        state.apply(Op::SetLen { file: self.file, len });
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.disk.state();
        state.check(Kind::Sync)?;
        if !state.lies_about_syncs {
            state.apply(Op::Sync { file: self.file });
        }
        Ok(())
    }

    /// A write that fails leaves half of its bytes behind.
    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut state = self.disk.state();
        let checked = state.check(Kind::Write);
        let written = match &checked {
            Ok(()) => data,
            Err(_) => data.split_at(data.len() / 2).0,
        };
        state.apply(Op::Write { file: self.file, offset, data: written.to_vec() });
        checked
    }

    fn try_lock_range(&self, _: Bound<u64>, _: Bound<u64>) -> Result<bool, BackendError> {
        Ok(true)
    }

    fn try_lock_shared_range(&self, _: Bound<u64>, _: Bound<u64>) -> Result<bool, BackendError> {
        Ok(true)
    }

    fn unlock_range(&self, _: Bound<u64>, _: Bound<u64>) -> Result<(), BackendError> {
        Ok(())
    }
}

fn write(file: &mut Vec<u8>, offset: u64, data: &[u8]) {
    let start = index(offset);
    let end = start + data.len();
    if file.len() < end {
        file.resize(end, 0);
    }
    if let Some(place) = file.get_mut(start..end) {
        place.copy_from_slice(data);
    }
}

/// Files here are in memory, so their offsets fit.
fn index(offset: u64) -> usize {
    usize::try_from(offset).unwrap_or(usize::MAX)
}
