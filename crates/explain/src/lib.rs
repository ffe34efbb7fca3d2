//! What would happen to a request, or has happened to one, and why.
//!
//! A [`Case`] is one request under the policy of one route, read, measured, decided and rewritten by the code of the running proxy, and
//! sent nowhere. [`Case::unseen`] is a saved request of a conversation that nothing is known of: `tidegate explain` shows it, and so does
//! the dashboard. [`Case::recorded`] is a turn that has been: its plan is the one that was carried out then. [`json::of`] is the object
//! that both print, [`changes`](Case::changes) what became of the messages line by line.
//!
//! This crate never reads a file, never asks a store and never prints.
//!
//! ```
//! use tidegate_config::{Flags, Source, load};
//! use tidegate_explain::{Case, Ending, Request};
//! use tidegate_context::model_table;
//! use tidegate_wire::{Dialect, Reader};
//!
//! let settings = load(Source::none(), &Flags::default(), &|_| None)?;
//! let body = br#"{"model":"gpt-4o","messages":[{"role":"user","content":"hello"}]}"#;
//! let reader = Reader::default();
//! let outline = reader.outline(Dialect::Chat, body)?;
//! let model = model_table(&settings.models).lookup("gpt-4o");
//! let route = &settings.routes[0];
//! let strategy = route.context.strategy;
//! let request = Request { body, outline: &outline, settings: &settings, route, strategy, model: &model };
//! assert_eq!(Case::unseen(&reader, request)?.ending(), Ending::AsSent);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod case;
mod changes;
pub mod fate;
pub mod figures;
pub mod folding;
pub mod json;
mod number;
mod recorded;
mod unreadable;

pub use case::{Case, Ending, Failure, Request};
pub use changes::{Change, Line, Op, What};
pub use fate::Fate;
pub use folding::Insertion;
pub use number::grouped;
pub use recorded::Past;
pub use unreadable::{EXAMPLE, located, place};
