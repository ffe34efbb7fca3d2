//! Recalls what is known of a conversation, with deadlines: in one round trip to the store, unless a conversation without a name has to be
//! looked for. It cannot fail; it degrades.

use crate::host::identity::Identity;
use crate::host::shared::Gateway;
use crate::reply::refusal::Refusal;
use tidegate_config::OnFailure;
use tidegate_store::Recalled;

/// Recalls a conversation. Refuses the request only if the store is unavailable and `store.on_failure` is `refuse`.
pub(crate) async fn recall(
    gateway: &Gateway,
    identity: Option<&mut Identity>,
    on_failure: OnFailure,
) -> Result<Recalled, Refusal> {
    let Some(identity) = identity else { return Ok(Recalled::default()) };
    let recalled = match &mut identity.branch {
        Some(branch) => gateway.conversations.recall_branch(identity.key, branch).await,
        None => gateway.conversations.recall(identity.key).await,
    };
    match (recalled.degraded, on_failure) {
        // A store that takes no writes would forget this turn, which this operator does not want.
        (Some(degraded), OnFailure::Refuse) => Err(Refusal::Store(degraded)),
        (Some(_), OnFailure::Forward) | (None, _) => Ok(recalled),
    }
}
