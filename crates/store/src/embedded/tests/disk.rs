//! A file that fails, counts syncs or blocks on demand.

use redb::backends::FileBackend;
use redb::{BackendError, Database, DatabaseError, StorageBackend};
use std::fs::File;
use std::io;
use std::ops::Bound;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The switches of one disk. Each test has its own, because tests run concurrently.
#[derive(Debug)]
pub(super) struct Switches {
    pub(super) is_full: AtomicBool,
    pub(super) syncs: AtomicUsize,
    /// While locked, every sync waits.
    pub(super) gate: Mutex<()>,
}

static DISKS: [Switches; 2] = [const {
    Switches { is_full: AtomicBool::new(false), syncs: AtomicUsize::new(0), gate: Mutex::new(()) }
}; 2];

pub(super) fn switches<const DISK: usize>() -> &'static Switches {
    &DISKS[DISK]
}

pub(super) fn open<const DISK: usize>(file: File) -> Result<Database, DatabaseError> {
    let disk = Disk { file: FileBackend::new(file)?, switches: switches::<DISK>() };
    Database::builder().create_with_backend(disk)
}

#[derive(Debug)]
struct Disk {
    file: FileBackend,
    switches: &'static Switches,
}

impl Disk {
    fn check_space(&self) -> io::Result<()> {
        match self.switches.is_full.load(Ordering::Relaxed) {
            true => Err(io::ErrorKind::StorageFull.into()),
            false => Ok(()),
        }
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.file.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.check_space()?;
        self.file.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        let _open = self.switches.gate.lock().unwrap();
        self.switches.syncs.fetch_add(1, Ordering::Relaxed);
        self.check_space()?;
        self.file.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.check_space()?;
        self.file.write(offset, data)
    }

    fn close(&self) -> io::Result<()> {
        self.file.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.file.try_lock_range(start, end)
    }

    fn try_lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.file.try_lock_shared_range(start, end)
    }

    fn lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.lock_range(start, end)
    }

    fn lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.lock_shared_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.unlock_range(start, end)
    }

    fn query_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.file.query_lock_range(start, end)
    }
}
