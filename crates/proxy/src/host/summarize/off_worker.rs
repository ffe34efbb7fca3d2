use super::failure::Cause;
use tokio::task::spawn_blocking;

/// Runs CPU-bound work on a blocking thread. A panic there fails the summary, not the request.
pub(super) async fn off_worker<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Cause> {
    spawn_blocking(work).await.map_err(|_| Cause::Crashed)
}
