//! One turn of a conversation, as a state machine without I/O.
//!
//! A [`Turn`] takes a request from "these are its bytes" to "this is what to forward": measure the messages, decide, fold what
//! should be summarized, decide again, and splice. It never does anything itself. [`Turn::advance`] takes an [`Event`] and
//! returns the next [`Action`]; whoever drives it does the work and reports back:
//!
//! | action | what the driver does | the event it reports |
//! | --- | --- | --- |
//! | [`Action::Measure`] | runs the [`Measurement`], on any thread | [`Event::Measured`] |
//! | [`Action::Fold`] | has the [`FoldRequest`] summarized | [`Event::Folded`] or [`Event::FoldFailed`] |
//! | [`Action::Done`] | forwards or refuses as the [`Outcome`] says | – |
//! | [`Action::Untouched`] | forwards the client's own bytes | – |
//!
//! The proxy drives it with a store, summarizers and a network; `replay`, `explain` and the dashboard drive it with none of
//! them ([`drive_offline`]). All of them get the same bytes, because there is no second implementation.
//!
//! An [`Outcome`] has one set of [`Figures`]. Response headers, the access log, spans, metrics, turn records and the archive are
//! all written from it.
//!
//! This crate never does I/O, never waits, and has no clock, no store and no async. It decides nothing about messages either:
//! the engine does.
//!
//! ```
//! use std::sync::Arc;
//! use tidegate_config::{Flags, Source, load};
//! use tidegate_context::{Action, ConversationState, Ending, Turn, TurnInput, drive_offline, model_table};
//! use tidegate_wire::{Dialect, Reader};
//!
//! let settings = load(Source::none(), &Flags::default(), &|_| None)?;
//! let body = r#"{"model":"gpt-4o","messages":[{"role":"user","content":"hello"}]}"#;
//! let reader = Reader::default();
//! let outline = reader.outline(Dialect::Chat, body.as_bytes())?;
//! let model = model_table(&settings.models).lookup("gpt-4o");
//! let input = TurnInput::new(body.into(), outline, settings.routes[0].context.clone(), model);
//! let mut turn = Turn::new(input, ConversationState::default());
//! let outcome = drive_offline(&mut turn, &reader)?;
//! assert_eq!(outcome.ending, Ending::Forward);
//! assert!(outcome.pieces.is_none(), "there is nothing to edit");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod assess;
mod blocks;
mod cache_life;
mod edits;
mod excerpt;
mod exchange;
mod figures;
mod fold;
mod fold_failure;
mod fold_state;
mod input;
mod limits;
mod lookup;
mod markers;
mod measure;
mod offline;
mod outcome;
mod pinned_message;
mod placement;
mod plateau;
mod policy;
mod ranking;
mod recall;
mod recall_reply;
mod record;
mod renderer;
mod savings;
mod source;
mod state;
mod summary_message;
mod turn;

pub use assess::{Assessment, Rule};
pub use blocks::BlockSizes;
pub use excerpt::PlacedExcerpt;
pub use exchange::{Exchange, Recalled, put_back};
pub use figures::{Figures, LeftOut, MadeFold};
pub use fold::{CompletedFold, FinishedFold, FoldRequest, Material, SavedFold};
pub use fold_failure::FoldFailure;
pub use fold_state::{Author, FoldState};
pub use input::{TurnInput, needs_turn, promises};
pub use limits::{LimitReached, dollars, nanodollars, summaries_cost};
pub use lookup::{BadArguments, Original, RecallRequest, recall_tool, search_originals, unknown_reference};
pub use measure::{MeasureError, Measured, Measurement, Splice};
pub use offline::{drive_offline, drive_offline_with, fold_offline};
pub use outcome::{DueFold, Ending, Outcome};
pub use pinned_message::PinnedMessage;
pub use placement::{OwnKind, Place};
pub use policy::model_table;
pub use ranking::shared_words;
pub use recall::Unrecalled;
pub use recall_reply::{RecallReply, RecallResult};
pub use record::{RecalledExcerpt, TurnRecord, decode_turn, decode_turns, encode_turn};
pub use savings::{Cost, Unedited};
pub use source::{OwnedSource, OwnedSpeaker};
pub use state::ConversationState;
pub use summary_message::SummaryMessage;
pub use tidegate_wire::Dialect;
pub use turn::{Action, Event, FoldWait, Turn, is_awaited};
