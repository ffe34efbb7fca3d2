use super::failure::Cause;
use crate::host::heavy::Lane;

/// Runs CPU-bound work off the worker. A panic there fails the summary, not the request.
pub(super) async fn off_worker<T: Send + 'static>(
    lane: &Lane,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Cause> {
    lane.run(PASS_BYTES, work).await.map_err(|_| Cause::Crashed)
}

/// About the size of what one pass reads.
const PASS_BYTES: usize = 128 * 1024;
