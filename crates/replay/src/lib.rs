//! Recorded conversations under every policy: what would be forwarded, and what it would cost.
//!
//! Every request of a conversation goes through the code of the proxy ([`tidegate_context::Turn`]), so that what is edited here is
//! what a running Tidegate would forward, byte for byte. A model of the provider's prompt cache ([`ProviderCache`]) turns that into a bill.
//!
//! - [`read_file`] knows the forms that recordings have, and gives [`Recorded`] conversations.
//! - [`Policy`] and [`Regime`] say what is compared; [`Stage`] replays one conversation, [`compare`] whole files on all cores.
//! - [`Comparison`] is the outcome; [`recommend`] names the cheapest policy within bounds, [`report`] is a page about all of it.
//!
//! It deliberately knows no network and no store, never calls a model, and invents no answers: a conversation goes on as it was
//! recorded, whatever was edited.

mod cache;
mod compare;
mod comparison;
mod conversation;
mod figures;
mod input;
mod policy;
mod price;
mod provider;
mod recommend;
mod report;
mod run;

pub use cache::{Billed, ProviderCache, Segment};
pub use compare::{Progress, compare};
pub use comparison::{Comparison, Conversation, Detailed, Sum};
pub use figures::{Fate, Figures, Turn};
pub use input::{Defaults, Found, InputError, Recorded, Unread, read_file};
pub use policy::{Kind, Policy};
pub use price::{Cost, Regime};
pub use provider::Provider;
pub use recommend::{Bounds, Recommendation, recommend};
pub use report::report;
pub use run::{Replayed, Setup, Shown, Stage};
