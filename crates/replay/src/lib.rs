//! Replays recorded conversations under every policy: what would be forwarded, and what it would cost.
//!
//! Every request goes through the proxy's own code ([`tidegate_context::Turn`]), so that the edits are
//! what a running Tidegate would forward, byte for byte. A model of the provider's prompt cache
//! ([`ProviderCache`]) turns that into a bill.
//!
//! - [`read_file`] reads the supported recording formats and returns [`Recorded`] conversations.
//! - [`Policy`] and [`Regime`] define what is compared; [`Stage`] replays one conversation, [`compare`] whole
//!   files on all cores.
//! - [`measure_need`] tells how often an answer used what was masked or trimmed.
//! - [`Comparison`] is the result; [`recommend`] names the cheapest policy within bounds, and [`report`]
//!   renders an HTML page.
//!
//! It deliberately uses no network and no store, never calls a model, and invents no responses: a
//! conversation continues as it was recorded, whatever was edited.

mod cache;
mod compare;
mod comparison;
mod conversation;
mod figures;
mod input;
mod need;
mod policy;
mod price;
mod provider;
mod recommend;
mod report;
mod run;

pub use cache::{Billed, ProviderCache, Segment};
pub use compare::{Progress, compare};
pub use comparison::{Comparison, ConversationDetail, ConversationFigures, RequestTotals};
pub use figures::{Fate, Figures, Turn};
pub use input::{Defaults, InputError, InputItem, InputLine, Recorded, read_file};
pub use need::{Need, measure_need};
pub use policy::{Kind, Policy};
pub use price::{Cost, Regime};
pub use provider::Provider;
pub use recommend::{Bounds, Recommendation, recommend};
pub use report::report;
pub use run::{Replayed, Setup, Shown, Stage};
