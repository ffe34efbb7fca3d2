//! Drives a turn with this process's reader, store and summarizers.

use crate::host::fold::Folder;
use crate::host::heavy::Lane;
use crate::host::shared::Gateway;
use std::sync::Arc;
use tidegate_context::{
    Action, Event, MeasureError, Measured, Measurement, Outcome, Splice, Turn, TurnInput,
};
use tidegate_tokens::is_loaded;

/// Larger requests are measured off the worker, because they would block the worker for hundreds of microseconds.
pub(crate) const MAX_UNREAD: usize = 4 * 1024;
const MAX_MESSAGES: usize = 2_000;
const MAX_BYTES: usize = 2 * 1024 * 1024;

/// Drives a turn to its end. An error means that the request is forwarded untouched.
pub(crate) async fn drive(mut turn: Turn, folder: &Folder) -> Result<Box<Outcome>, MeasureError> {
    let mut event = Event::Begin;
    loop {
        event = match turn.advance(event) {
            Action::Measure(measurement) => {
                Event::Measured(measure(&folder.worker.gateway, measurement, &folder.lane).await)
            }
            Action::Fold(request) => match folder.fold(&request).await {
                Ok(completed) => Event::Folded(Box::new(completed)),
                Err(failure) => Event::FoldFailed(failure),
            },
            Action::Done(outcome) => return Ok(outcome),
            Action::Untouched(error) => return Err(error),
        };
    }
}

/// Measures a light request at once, and a heavy one off the worker.
async fn measure(
    gateway: &Arc<Gateway>,
    measurement: Measurement,
    lane: &Lane,
) -> Result<Box<Measured>, MeasureError> {
    let lookup = match is_light(measurement.input()).then(|| measurement.look_up(&gateway.reader)) {
        Some(lookup) if lookup.uncached_bytes <= MAX_UNREAD => {
            return measurement.run(&gateway.reader, lookup, Splice::Wanted);
        }
        lookup => lookup,
    };
    let bytes = lookup.as_ref().map_or(measurement.input().body.len(), |lookup| lookup.uncached_bytes);
    let gateway = gateway.clone();
    let heavy = move || {
        let lookup = lookup.unwrap_or_else(|| measurement.look_up(&gateway.reader));
        measurement.run(&gateway.reader, lookup, Splice::Wanted)
    };
    lane.run(bytes, heavy).await.unwrap_or(Err(MeasureError::Crashed))
}

/// Whether even walking through the messages is cheap enough for a worker.
pub(crate) fn is_light(input: &TurnInput) -> bool {
    input.body.len() <= MAX_BYTES
        && input.outline.messages.len() <= MAX_MESSAGES
        && is_loaded(input.model.encoding)
}
