//! Messages to fold that outlive the request that brought them: a background fold runs after it, and off its thread.

use tidegate_summary::{Call, MessageRef, Source, Speaker};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OwnedSource {
    pub(crate) number: MessageRef,
    pub(crate) speaker: OwnedSpeaker,
    pub(crate) text: String,
    pub(crate) calls: Vec<Call<'static>>,
}

/// A [`Speaker`] with its own names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OwnedSpeaker {
    User,
    Assistant,
    Observation { tool: Option<String> },
    Other(String),
}

impl OwnedSource {
    pub(crate) fn borrowed(&self) -> Source<'_> {
        let call = |call| {
            let Call { tool, arguments }: &Call<'static> = call;
            Call { tool: tool.as_ref().into(), arguments: arguments.as_ref().into() }
        };
        Source {
            number: self.number,
            speaker: match &self.speaker {
                OwnedSpeaker::User => Speaker::User,
                OwnedSpeaker::Assistant => Speaker::Assistant,
                OwnedSpeaker::Observation { tool } => Speaker::Observation { tool: tool.as_deref() },
                OwnedSpeaker::Other(role) => Speaker::Other(role),
            },
            text: self.text.as_str().into(),
            calls: self.calls.iter().map(call).collect(),
        }
    }
}
