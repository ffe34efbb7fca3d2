//! Messages to fold that outlive the request that brought them: a background fold runs after it, on another thread.

use tidegate_summary::{Call, MessageRef, Source, Speaker};

/// A [`Source`] that owns its texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnedSource {
    pub number: MessageRef,
    pub speaker: OwnedSpeaker,
    pub text: String,
    pub calls: Vec<Call<'static>>,
}

/// A [`Speaker`] that owns its names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OwnedSpeaker {
    User,
    Assistant,
    Observation { tool: Option<String> },
    Other(String),
}

impl OwnedSource {
    #[must_use]
    pub fn borrowed(&self) -> Source<'_> {
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
