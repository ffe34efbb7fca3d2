//! Explains what Tidegate would do to a request, or has done to one, and why.
//!
//! A [`Case`] is one request under the policy of one route, processed by the same code as in the running proxy but not sent.
//! [`Case::unseen`] explains a saved request without an earlier conversation; `tidegate explain` and the dashboard use it.
//! [`Case::recorded`] explains a past turn with the plan that was carried out. [`json::of`] is the JSON form of a case, and
//! [`changes`](Case::changes) its changes as a line-by-line diff.
//!
//! This crate never reads files, accesses a store or prints.
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
pub mod recalling;
mod recorded;
mod unreadable;

pub use case::{Case, Ending, Failure, Request};
pub use changes::{Change, Line, Op, What};
pub use fate::Fate;
pub use folding::Insertion;
pub use number::grouped;
pub use recorded::Past;
pub use unreadable::{EXAMPLE, located, place};
