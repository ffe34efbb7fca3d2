//! Keeps tests that measure time apart from tests that keep every core busy.
//!
//! All suites run in one process, so that any two tests can run side by side. A test that holds neither guard runs beside both
//! kinds.

use tokio::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

static CORES: RwLock<()> = RwLock::const_new(());

/// For a test that keeps every core busy for seconds. Waits until no test holds a guard.
pub(crate) async fn busy() -> RwLockWriteGuard<'static, ()> {
    CORES.write().await
}

/// For a test that fails if something takes a few hundred milliseconds too long. Waits until no busy test runs.
pub(crate) async fn quiet() -> RwLockReadGuard<'static, ()> {
    CORES.read().await
}
