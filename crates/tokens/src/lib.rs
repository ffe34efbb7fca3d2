//! What a request costs: the model table, the tokenizers, the counting rules of a chat request, prices, and the
//! calibration that corrects the counts by what the provider reports.
//!
//! Deliberately not here: JSON of whole requests (the caller takes a request apart and asks for the pieces), a cache of
//! counts (the caller knows which messages it has seen), budgets (the engine's), and anything that learns a price or a window from
//! the network. This is the only crate that names a tokenizer.
//!
//! - [`ModelTable`] resolves a name, dated or prefixed as it may be, to a [`Model`].
//! - [`count`] is the number of tokens of a text in an [`Encoding`]; [`estimate`] is the fallback.
//! - [`chat`] holds the rules for messages and calls, [`tools_tokens`] those for tool definitions, [`ImageRule`],
//!   [`audio_tokens`] and [`file_tokens`] those for what is not text.
//! - [`Calibration`] learns how far the counts of a model are off.
//!
//! ```
//! use tidegate_engine::Tokens;
//! use tidegate_tokens::{Calibration, ModelTable, chat, count};
//!
//! let model = ModelTable::builtin().lookup("openai/gpt-4o-2024-08-06");
//! assert_eq!(model.window, Some(Tokens(128_000)));
//!
//! let message = chat::message_tokens(model.encoding, "user", None) + count(model.encoding, "Hello, world!");
//! let request = message + chat::REPLY_PRIMING;
//! assert_eq!(request, Tokens(11));
//!
//! let calibration = Calibration::new();
//! calibration.observe("my-model", Tokens(1_000), Tokens(1_100));
//! assert_eq!(calibration.corrected("my-model", Tokens(2_000)), Tokens(2_200));
//! ```

mod attachment;
mod calibration;
pub mod chat;
mod encoding;
mod families;
mod image;
mod image_header;
mod model;
mod table;
mod tool_schema;

pub use attachment::{audio_tokens, file_tokens};
pub use calibration::Calibration;
pub use encoding::{Encoding, count, estimate, is_loaded};
pub use image::{Detail, ImageRule, Pixels};
pub use image_header::pixels_of_data_url;
pub use model::{Caching, Fit, Model, ModelOverride, Prices};
pub use table::ModelTable;
pub use tool_schema::tools_tokens;

/// What can go wrong here: only what an operator wrote.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("`{0}` is not an encoding: use `o200k_base`, `cl100k_base` or `estimate`")]
    UnknownEncoding(String),
}
