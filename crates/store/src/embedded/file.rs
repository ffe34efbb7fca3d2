//! The database file: where it is, how it comes to be, and how it is opened again after a failure.

use super::fault::{from_io, not_ours, while_opening};
use super::tables::{META, Tables};
use crate::StoreError;
use redb::{Database, DatabaseError, ReadableDatabase, TableError};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};

/// Makes a database of an open file. Tests put a failing disk here.
pub(super) type Opener = fn(File) -> Result<Database, DatabaseError>;

/// The name of the database in its directory.
const NAME: &str = "conversations.redb";

/// What the tables look like. A file with a higher number was written by a later version and is left alone.
const FORMAT: u64 = 1;

/// Pages in memory. What is read often is in front of the store already, and a sidecar has little to spare; the
/// library's own default is a gigabyte.
const CACHE_BYTES: usize = 32 << 20;

/// An open database that can be opened anew: after a failed write the library refuses everything until it is.
#[derive(Debug)]
pub(super) struct DatabaseFile {
    path: PathBuf,
    opener: Opener,
    /// Nothing while it is closed. Whoever reads holds the lock shared, so that closing waits for them.
    open: RwLock<Option<Database>>,
}

impl DatabaseFile {
    pub(super) fn open(directory: &Path, opener: Opener) -> Result<DatabaseFile, StoreError> {
        create_directory(directory)
            .map_err(|error| from_io(&format!("`{}` cannot be created", directory.display()), &error))?;
        let path = directory.join(NAME);
        if !path.try_exists().map_err(|error| from_io(&format!("`{}`", path.display()), &error))? {
            create(directory, &path, opener)?;
        }
        let database = open(&path, opener)?;
        check_format(&path, &database)?;
        Ok(DatabaseFile { path, opener, open: RwLock::new(Some(database)) })
    }

    pub(super) fn with<T>(
        &self,
        work: impl FnOnce(&Database) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        // The value behind the lock is only ever replaced as a whole, so a poisoned lock holds a whole one.
        let open = self.open.read().unwrap_or_else(PoisonError::into_inner);
        match open.as_ref() {
            Some(database) => work(database),
            None => Err(StoreError::Failed(format!("`{}` is closed", self.path.display()))),
        }
    }

    /// Closes and opens. If that fails it stays closed, and may be tried again.
    pub(super) fn reopen(&self) -> Result<(), StoreError> {
        let mut open = self.open.write().unwrap_or_else(PoisonError::into_inner);
        // The old one holds the lock on the file.
        *open = None;
        *open = Some(self::open(&self.path, self.opener)?);
        Ok(())
    }

    pub(super) fn is_open(&self) -> bool {
        self.open.read().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Waits for those who read, then gives the file back.
    pub(super) fn close(&self) {
        *self.open.write().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

pub(super) fn open_database(file: File) -> Result<Database, DatabaseError> {
    Database::builder().set_cache_size(CACHE_BYTES).create_file(file)
}

/// A new database gets its name only when it is complete: a process killed while it makes one would otherwise leave a
/// file that is no database, and that nobody may delete.
fn create(directory: &Path, path: &Path, opener: Opener) -> Result<(), StoreError> {
    let unfinished = directory.join(format!("{NAME}.{}.new", std::process::id()));
    let failed = |error: io::Error| from_io(&format!("`{}` cannot be created", path.display()), &error);
    match fs::remove_file(&unfinished) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
        Ok(()) | Err(_) => {}
    }
    let file = options().create_new(true).open(&unfinished).map_err(failed)?;
    let database = opener(file).map_err(|error| while_opening(&unfinished, error))?;
    let transaction = database.begin_write()?;
    drop(Tables::open(&transaction)?);
    transaction.open_table(META)?.insert("format", FORMAT)?;
    transaction.commit()?;
    drop(database);
    // A second name cannot replace what another process may have put there meanwhile, as a rename would.
    match fs::hard_link(&unfinished, path) {
        Ok(()) => fs::remove_file(&unfinished).map_err(failed)?,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            fs::remove_file(&unfinished).map_err(failed)?;
        }
        // Not every file system has second names.
        Err(_) => fs::rename(&unfinished, path).map_err(failed)?,
    }
    // Without this the name itself may be lost with the power, and with it everything acknowledged since.
    #[cfg(unix)]
    File::open(directory).and_then(|directory| directory.sync_all()).map_err(failed)?;
    Ok(())
}

fn open(path: &Path, opener: Opener) -> Result<Database, StoreError> {
    let file = options()
        .open(path)
        .map_err(|error| from_io(&format!("`{}` cannot be opened for writing", path.display()), &error))?;
    opener(file).map_err(|error| while_opening(path, error))
}

fn check_format(path: &Path, database: &Database) -> Result<(), StoreError> {
    let path = path.display().to_string();
    let meta = match database.begin_read()?.open_table(META) {
        Ok(meta) => meta,
        Err(TableError::Storage(error)) => return Err(error.into()),
        Err(other) => return Err(not_ours(&path, &other.to_string())),
    };
    match meta.get("format")?.map(|format| format.value()) {
        Some(FORMAT) => Ok(()),
        Some(format) => Err(StoreError::Corrupt(format!(
            "`{path}` has format {format} and this version reads {FORMAT}; run the version that wrote it, or move \
             the file away to start afresh"
        ))),
        None => Err(not_ours(&path, "it has no format")),
    }
}

/// Conversations are nobody else's business on this machine.
fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

fn create_directory(directory: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(directory)
}
