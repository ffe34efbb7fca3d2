//! What is known of a conversation: one round trip to the store, with a deadline. It cannot fail; it degrades.

use crate::gate::Gate;
use crate::identify::Identity;
use crate::reply::Refusal;
use tidegate_config::OnFailure;
use tidegate_store::Recalled;

/// A request is only refused where the operator prefers that to an answer without memory.
pub(crate) async fn recall(
    gate: &Gate,
    identity: Option<&Identity>,
    on_failure: OnFailure,
) -> Result<Recalled, Refusal> {
    let Some(identity) = identity else { return Ok(Recalled::default()) };
    let recalled = gate.conversations.recall(identity.key).await;
    match (recalled.degraded, on_failure) {
        // What takes no writes would forget this turn, which is what the operator does not want.
        (Some(degraded), OnFailure::Refuse) => Err(Refusal::Store { reason: degraded.reason() }),
        (Some(_), OnFailure::Forward) | (None, _) => Ok(recalled),
    }
}
