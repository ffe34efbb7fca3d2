//! The database file: creating it, opening it, and reopening it after a failure.

use super::error::{io_error, not_ours, open_error};
use super::tables::{META, Tables};
use crate::StoreError;
use redb::{Database, DatabaseError, ReadableDatabase, TableError};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};

/// Opens a database in an open file. Tests substitute a failing disk.
pub(super) type Opener = fn(File) -> Result<Database, DatabaseError>;

/// The name of the database in its directory.
const FILE_NAME: &str = "conversations.redb";

/// The version of the table layout. A file with a higher number was written by a newer version and is left alone.
const FORMAT: u64 = 1;

/// The size of the page cache. Frequently read data is cached in front of the store, and a sidecar has little memory to spare;
/// the library's default is a gigabyte.
pub(super) const CACHE_BYTES: usize = 32 << 20;

/// A database that can be reopened: after a failed write, the library refuses all operations until it is.
#[derive(Debug)]
pub(super) struct DatabaseFile {
    path: PathBuf,
    opener: Opener,
    /// `None` while closed. Readers hold a shared lock, so closing waits for them.
    open: RwLock<Option<Database>>,
}

impl DatabaseFile {
    pub(super) fn open(directory: &Path, opener: Opener) -> Result<DatabaseFile, StoreError> {
        create_directory(directory)
            .map_err(|error| io_error(&format!("cannot create `{}`", directory.display()), &error))?;
        let path = directory.join(FILE_NAME);
        if !path.try_exists().map_err(|error| io_error(&format!("`{}`", path.display()), &error))? {
            create(directory, &path, opener)?;
        }
        let database = open(&path, opener)?;
        check_format(&path, &database)?;
        add_tables(&database)?;
        Ok(DatabaseFile { path, opener, open: RwLock::new(Some(database)) })
    }

    pub(super) fn with<T>(
        &self,
        work: impl FnOnce(&Database) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        // The value is only ever replaced as a whole, so a poisoned lock still guards a valid one.
        let open = self.open.read().unwrap_or_else(PoisonError::into_inner);
        match open.as_ref() {
            Some(database) => work(database),
            None => Err(StoreError::Failed(format!("`{}` is closed", self.path.display()))),
        }
    }

    /// Closes and opens the database. If opening fails, it stays closed and can be reopened later.
    pub(super) fn reopen(&self) -> Result<(), StoreError> {
        let mut open = self.open.write().unwrap_or_else(PoisonError::into_inner);
        // The old database holds the file lock.
        *open = None;
        *open = Some(self::open(&self.path, self.opener)?);
        Ok(())
    }

    pub(super) fn is_open(&self) -> bool {
        self.open.read().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Waits for readers, then closes the file.
    pub(super) fn close(&self) {
        *self.open.write().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

pub(super) fn open_database(file: File) -> Result<Database, DatabaseError> {
    Database::builder().set_cache_size(CACHE_BYTES).create_file(file)
}

/// Creates a database under a temporary name, and gives it its final name when it is complete. A process killed meanwhile would
/// otherwise leave a file that is not a database, and that we would refuse to delete.
fn create(directory: &Path, path: &Path, opener: Opener) -> Result<(), StoreError> {
    let unfinished = directory.join(format!("{FILE_NAME}.{}.new", std::process::id()));
    let failed = |error: io::Error| io_error(&format!("cannot create `{}`", path.display()), &error);
    match fs::remove_file(&unfinished) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
        Ok(()) | Err(_) => {}
    }
    let file = options().create_new(true).open(&unfinished).map_err(failed)?;
    let database = opener(file).map_err(|error| open_error(&unfinished, error))?;
    let transaction = database.begin_write()?;
    drop(Tables::open(&transaction)?);
    transaction.open_table(META)?.insert("format", FORMAT)?;
    transaction.commit()?;
    drop(database);
    // Unlike a rename, a hard link cannot replace a file that another process has created meanwhile.
    match fs::hard_link(&unfinished, path) {
        Ok(()) => fs::remove_file(&unfinished).map_err(failed)?,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            fs::remove_file(&unfinished).map_err(failed)?;
        }
        // Not every file system supports hard links.
        Err(_) => fs::rename(&unfinished, path).map_err(failed)?,
    }
    // Without this, a power failure may lose the name of the file, and with it everything acknowledged since.
    #[cfg(unix)]
    File::open(directory).and_then(|directory| directory.sync_all()).map_err(failed)?;
    Ok(())
}

fn open(path: &Path, opener: Opener) -> Result<Database, StoreError> {
    let file = options()
        .open(path)
        .map_err(|error| io_error(&format!("cannot open `{}` for writing", path.display()), &error))?;
    opener(file).map_err(|error| open_error(path, error))
}

/// Creates the tables that the version which created the file did not have.
fn add_tables(database: &Database) -> Result<(), StoreError> {
    let transaction = database.begin_write()?;
    drop(Tables::open(&transaction)?);
    Ok(transaction.commit()?)
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
             the file away to start empty"
        ))),
        None => Err(not_ours(&path, "it has no format")),
    }
}

/// Only the owner may read the file: it holds conversations.
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
