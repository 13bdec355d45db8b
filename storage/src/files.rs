//! The data directory: the lock, the format's version, and the creation of files.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};

use redb::{Builder, Database};

use crate::error::Error;
use crate::options::Options;
use crate::shared::guarded;

/// The version of everything `FORMAT.md` describes.
const FORMAT: &str = "2";
const FORMAT_PREFIX: &str = "turnd-storage ";

const FORMAT_FILE: &str = "format";
const LOCK_FILE: &str = "lock";
pub(crate) const JOURNAL_FILE: &str = "journal.redb";
pub(crate) const ARCHIVE_FILE: &str = "archive.redb";
const BLOBS_DIRECTORY: &str = "blobs";

/// The opened files of a store. The lock is held as long as its file is open.
#[derive(Debug)]
pub(crate) struct Files {
    pub journal: Database,
    pub archive: Database,
    pub blobs: PathBuf,
    pub lock: File,
}

/// Opens the directory, creating what a new store lacks.
pub(crate) fn open(dir: &Path, options: &Options) -> Result<Files, Error> {
    create_directory(dir)?;
    open_locked(dir, lock(dir)?, options)
}

/// Opens the directory of a store that was created before.
pub(crate) fn open_existing(dir: &Path, options: &Options) -> Result<Files, Error> {
    let format = dir.join(FORMAT_FILE);
    if !format.is_file() {
        return Err(Error::Missing { path: format });
    }
    open_locked(dir, lock(dir)?, options)
}

fn open_locked(dir: &Path, lock: File, options: &Options) -> Result<Files, Error> {
    let complete = check_format(dir)?;
    if complete {
        remove_unfinished(dir)?;
    }
    let blobs = blobs_directory(dir, complete)?;
    let journal = database(dir, JOURNAL_FILE, options.journal_cache_bytes, complete)?;
    let archive = database(dir, ARCHIVE_FILE, options.archive_cache_bytes, complete)?;
    if !complete {
        write_format(dir)?;
    }
    Ok(Files { journal, archive, blobs, lock })
}

pub(crate) fn failed(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::File { action, path, source }
}

fn create_directory(dir: &Path) -> Result<(), Error> {
    if dir.is_dir() {
        return Ok(());
    }
    let create = DirBuilder::new().recursive(true).mode(0o700).create(dir);
    create.map_err(failed("create the data directory", dir))?;
    match dir.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => sync_directory(parent),
        Some(_) | None => sync_directory(Path::new(".")),
    }
}

fn blobs_directory(dir: &Path, complete: bool) -> Result<PathBuf, Error> {
    let path = dir.join(BLOBS_DIRECTORY);
    if !path.is_dir() {
        if complete {
            return Err(Error::Missing { path });
        }
        let create = DirBuilder::new().mode(0o700).create(&path);
        create.map_err(failed("create the directory", &path))?;
        sync_directory(dir)?;
    }
    Ok(path)
}

/// Makes the names in a directory durable. redb syncs its files only.
pub(crate) fn sync_directory(dir: &Path) -> Result<(), Error> {
    let sync = File::open(dir).and_then(|handle| handle.sync_all());
    sync.map_err(failed("sync the directory", dir))
}

pub(crate) fn private_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    options
}

fn lock(dir: &Path) -> Result<File, Error> {
    let path = dir.join(LOCK_FILE);
    let file = private_file().create(true).truncate(false).open(&path);
    let file = file.map_err(failed("open", &path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(Error::Locked { dir: dir.to_owned() }),
        Err(TryLockError::Error(source)) => Err(failed("lock", &path)(source)),
    }
}

/// Whether the store was created to the end. Refuses every version but this one.
fn check_format(dir: &Path) -> Result<bool, Error> {
    let path = dir.join(FORMAT_FILE);
    let mut found = Vec::new();
    // A bound, because the file may be anything.
    let read = File::open(&path).and_then(|file| file.take(256).read_to_end(&mut found));
    match read {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(failed("read", &path)(error)),
    }
    let found = String::from_utf8_lossy(&found);
    let found = found.trim_end();
    let version = found.strip_prefix(FORMAT_PREFIX).unwrap_or(found);
    if version != FORMAT {
        return Err(Error::Format {
            dir: dir.to_owned(),
            found: version.escape_debug().to_string(),
            supported: FORMAT.to_owned(),
        });
    }
    Ok(true)
}

/// The last act of creating a store: from here on a missing file is a loss, not a beginning.
fn write_format(dir: &Path) -> Result<(), Error> {
    let path = dir.join(FORMAT_FILE);
    let write = |path: &Path| -> io::Result<()> {
        let mut file = private_file().create(true).truncate(true).open(path)?;
        writeln!(file, "{FORMAT_PREFIX}{FORMAT}")?;
        file.sync_all()
    };
    let temporary = new_name(&path);
    write(&temporary).map_err(failed("write", &temporary))?;
    rename(&temporary, &path)?;
    sync_directory(dir)
}

/// Removes what a compaction that was cut short has left.
fn remove_unfinished(dir: &Path) -> Result<(), Error> {
    for name in [JOURNAL_FILE, ARCHIVE_FILE] {
        let path = new_name(&dir.join(name));
        match fs::remove_file(&path) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed("remove", &path)(error)),
        }
    }
    Ok(())
}

fn database(dir: &Path, name: &str, cache_bytes: usize, complete: bool) -> Result<Database, Error> {
    let path = dir.join(name);
    if !path.exists() {
        if complete {
            return Err(Error::Missing { path });
        }
        replace(dir, name, cache_bytes, |_| Ok(()))?;
    }
    open_database(dir, name, cache_bytes)
}

pub(crate) fn open_database(dir: &Path, name: &str, cache_bytes: usize) -> Result<Database, Error> {
    let path = dir.join(name);
    guarded(name.as_bytes(), || match Builder::new().set_cache_size(cache_bytes).open(&path) {
        Ok(database) => Ok(database),
        Err(redb::DatabaseError::DatabaseAlreadyOpen) => Err(Error::Locked { dir: dir.to_owned() }),
        Err(error) => Err(Error::database("open the database", error)),
    })
}

/// Creates a database, filled by `fill`, under another name, and gives it its own name when it is
/// whole: one that a crash cut short could not be opened again.
pub(crate) fn replace(
    dir: &Path,
    name: &str,
    cache_bytes: usize,
    fill: impl FnOnce(&mut Database) -> Result<(), Error>,
) -> Result<(), Error> {
    let path = dir.join(name);
    let temporary = new_name(&path);
    let create = || -> io::Result<(File, File)> {
        let handle = private_file().create(true).truncate(true).open(&temporary)?;
        keep_owner(&path, &handle)?;
        Ok((handle.try_clone()?, handle))
    };
    let (to_sync, handle) = create().map_err(failed("create", &temporary))?;
    let created = Builder::new().set_cache_size(cache_bytes).create_file(handle);
    let mut database = created.map_err(|error| Error::database("create the database", error))?;
    fill(&mut database)?;
    drop(database);
    to_sync.sync_all().map_err(failed("sync", &temporary))?;
    rename(&temporary, &path)?;
    sync_directory(dir)
}

/// The new file is the old one's owner's, whoever writes it: else a server could not open what its
/// administrator compacted.
fn keep_owner(old: &Path, new: &File) -> io::Result<()> {
    let old = match fs::metadata(old) {
        Ok(old) => old,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let owned = new.metadata()?;
    if (old.uid(), old.gid()) != (owned.uid(), owned.gid()) {
        fchown(new, Some(old.uid()), Some(old.gid()))?;
    }
    Ok(())
}

fn rename(from: &Path, to: &Path) -> Result<(), Error> {
    fs::rename(from, to).map_err(failed("rename", from))
}

fn new_name(path: &Path) -> PathBuf {
    path.with_added_extension("new")
}
