//! The markers that stand for messages that are left out.

/// Markers are counted with this number, so that a real one never costs more.
pub(crate) const LONGEST_MARKER: usize = 99_999;

/// The marker of the `window` strategy.
pub(crate) fn left_out_middle(messages: usize) -> String {
    let (verb, noun) = if messages == 1 { ("is", "message") } else { ("are", "messages") };
    format!(
        "[{messages} {noun} from the middle of this conversation {verb} left out here to fit the context window.]"
    )
}

/// The marker for turns that no summary covers, because summarizing failed.
pub(crate) fn missing_turns(turns: usize) -> String {
    format!(
        "[{turns} earlier turns of this conversation are missing here: they did not fit and could not be summarized in time. \
         They are not lost, and will be summarized later.]"
    )
}
