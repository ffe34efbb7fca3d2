//! Puts what the model has recalled before back into a request. From here on the request is like any other.

use crate::host::heavy::Lane;
use crate::host::identity::Identity;
use crate::host::shared::Gateway;
use bytes::Bytes;
use std::collections::HashMap;
use std::sync::Arc;
use tidegate_config::Context;
use tidegate_context::{Exchange, put_back as put_into};
use tidegate_engine::Digest;
use tidegate_wire::{Dialect, ExtraKind, Outline};

/// Larger requests are copied and read off the worker.
const INLINE_BYTES: usize = 64 * 1024;

/// Whether the model of a request may have recalled something before.
pub(crate) fn may_have_recalled(context: &Context, outline: &Outline) -> bool {
    let has_tools = || outline.extras.iter().any(|extra| extra.kind == ExtraKind::Tools);
    context.recall.tool && !context.observe && outline.dialect == Dialect::Chat && has_tools()
}

/// Returns the request with what its model has recalled; `None` if that is nothing, or cannot be read at the moment.
pub(crate) async fn put_back(
    gateway: &Arc<Gateway>,
    identity: &Identity,
    (body, outline): (&Bytes, &Outline),
    lane: &Lane,
) -> Option<(Bytes, Outline)> {
    let stored = gateway.conversations.exchanges(identity.key).await.ok()?;
    if stored.is_empty() {
        return None;
    }
    let work = {
        let (gateway, body, outline) = (gateway.clone(), body.clone(), outline.clone());
        move || {
            let exchange = |(after, text): &(Digest, String)| {
                Some((*after, serde_json::from_str::<Exchange>(text).ok()?))
            };
            let exchanges: HashMap<Digest, Exchange> = stored.iter().filter_map(exchange).collect();
            let whole = put_into(&gateway.reader, &body, &outline, &exchanges)?;
            let mut read = gateway.reader.outline(outline.dialect, &whole).ok()?;
            // The path may name the model instead of the body.
            read.model = outline.model;
            Some((whole, read))
        }
    };
    if body.len() <= INLINE_BYTES { work() } else { lane.run(body.len(), work).await.ok().flatten() }
}
