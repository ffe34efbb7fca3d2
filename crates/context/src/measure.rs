use crate::plateau::plateau;
use crate::{Assessment, ConversationState, Rule, TurnInput};
use std::sync::Arc;
use thiserror::Error;
use tidegate_wire::{BadEdit, CacheLookup, Piece, Reader, Unreadable};

/// The CPU work of a turn: read, count, decide, splice. It can run on any thread.
#[derive(Clone, Debug)]
pub struct Measurement {
    pub(crate) input: Arc<TurnInput>,
    pub(crate) state: Arc<ConversationState>,
    pub(crate) rule: Rule,
}

/// A measured request.
#[derive(Debug)]
pub struct Measured {
    pub(crate) assessment: Assessment,
    pub(crate) pieces: Option<Vec<Piece>>,
    pub(crate) stop_hint: Option<u32>,
}

/// Whether the driver needs the forwarded bytes, or only the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Splice {
    Wanted,
    Unwanted,
}

/// Why a request is forwarded untouched.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum MeasureError {
    /// The upstream judges a message that cannot be read.
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
    /// Always a mistake of ours.
    #[error("the plan does not fit the request: {0}")]
    Plan(#[from] BadEdit),
    #[error("measuring the request panicked")]
    Crashed,
    /// Always a mistake of the driver's.
    #[error("the turn got an event that it did not wait for")]
    UnexpectedEvent,
}

impl Measurement {
    #[must_use]
    pub fn input(&self) -> &TurnInput {
        &self.input
    }

    /// Finds which messages were measured before.
    #[must_use]
    pub fn look_up(&self, reader: &Reader) -> CacheLookup {
        self.input.look_up(reader)
    }

    pub fn run(
        &self,
        reader: &Reader,
        lookup: CacheLookup,
        splice: Splice,
    ) -> Result<Box<Measured>, MeasureError> {
        let Measurement { input, state, rule } = self;
        let assessment = input.assess_known(state, lookup, reader, *rule)?;
        let pieces = match splice {
            Splice::Wanted => assessment.pieces(input, state)?,
            Splice::Unwanted => None,
        };
        let window = input.context.limits.plateau_window;
        let stop_hint =
            window.and_then(|window| plateau(&input.body, &input.outline, &assessment.chat, window.get()));
        Ok(Box::new(Measured { assessment, pieces, stop_hint }))
    }
}

impl Measured {
    #[must_use]
    pub fn assessment(&self) -> &Assessment {
        &self.assessment
    }
}
