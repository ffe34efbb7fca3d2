//! Drives a turn without a network and without a store: for `replay`, `explain` and the dashboard.

use crate::{
    Action, Author, CompletedFold, Event, FoldFailure, FoldRequest, MeasureError, Outcome, SavedFold, Splice,
    Turn,
};
use tidegate_engine::FoldBackoff;
use tidegate_wire::Reader;

/// Drives a turn to its end. The built-in summarizer stands in for every summarizer.
pub fn drive_offline(turn: &mut Turn, reader: &Reader) -> Result<Box<Outcome>, MeasureError> {
    drive_offline_with(turn, reader, Splice::Wanted, &mut fold_offline)
}

/// The same with another way to fold.
pub fn drive_offline_with(
    turn: &mut Turn,
    reader: &Reader,
    splice: Splice,
    fold: &mut dyn FnMut(&FoldRequest) -> Result<SavedFold, FoldFailure>,
) -> Result<Box<Outcome>, MeasureError> {
    let mut event = Event::Begin;
    loop {
        event = match turn.advance(event) {
            Action::Measure(measurement) => {
                Event::Measured(measurement.run(reader, measurement.look_up(reader), splice))
            }
            Action::Fold(request) => match fold(&request) {
                Ok(fold) => Event::Folded(Box::new(CompletedFold { fold, stands_in_for: None })),
                Err(failure) => Event::FoldFailed(failure),
            },
            Action::Done(outcome) => return Ok(outcome),
            Action::Untouched(error) => return Err(error),
        };
    }
}

/// Makes a summary with the built-in summarizer, unless the conversation has it already.
pub fn fold_offline(request: &FoldRequest) -> Result<SavedFold, FoldFailure> {
    if let Some(known) = request.state().fold(request.job.covers) {
        return Ok(known.clone());
    }
    request.check(FoldBackoff::default())?;
    let summary = request.material().extract();
    request.finish(summary, Author::default()).map(|finished| finished.fold)
}
