use super::failure::Cause;
use tokio::task::spawn_blocking;

/// Runs work that counts or reads text on a blocking thread. A panic there costs the summary and not the request.
pub(super) async fn off_worker<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Cause> {
    spawn_blocking(work).await.map_err(|_| Cause::Crashed)
}
