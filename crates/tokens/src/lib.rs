//! Counts tokens and computes costs: the model table, the tokenizers, the counting rules of chat requests, prices, and a
//! calibration that corrects counts by the usage that providers report.
//!
//! This crate does not parse whole requests (the caller passes the parts), cache counts (the caller knows which messages it has
//! seen), compute budgets (the engine does), or learn prices and windows from the network. It is the only crate that depends on a
//! tokenizer.
//!
//! - [`ModelTable`] resolves a model name, with or without a date or a gateway's prefix, to a [`Model`].
//! - [`count`] counts the tokens of a text in an [`Encoding`]; [`estimate`] is the fallback without a tokenizer.
//! - [`chat`] has the rules for messages and calls, [`tools_tokens`] for tool definitions, and [`ImageRule`], [`audio_tokens`] and
//!   [`file_tokens`] for everything that is not text.
//! - [`Calibration`] learns how far off the counts of a model are.
//!
//! ```
//! use tidegate_engine::{ContextWindow, Tokens};
//! use tidegate_tokens::{Calibration, ModelTable, chat, count};
//!
//! let model = ModelTable::builtin().lookup("openai/gpt-4o-2024-08-06");
//! assert_eq!(model.window, ContextWindow::Known(Tokens(128_000)));
//!
//! let message = chat::message_tokens(model.encoding, "user", None) + count(model.encoding, "Hello, world!");
//! let request = message + chat::REPLY_PRIMING;
//! assert_eq!(request, Tokens(11));
//!
//! let mut calibration = Calibration::new();
//! calibration.observe(Tokens(1_000), Tokens(1_100));
//! assert_eq!(calibration.corrected(Tokens(2_000)), Tokens(2_200));
//! ```

mod attachment;
mod base64;
mod calibration;
pub mod chat;
mod encoding;
mod families;
mod image;
mod image_header;
mod model;
mod preserved_thinking;
mod table;
mod tool_schema;
mod vocabulary;

pub use attachment::{audio_tokens, file_tokens};
pub use calibration::Calibration;
pub use encoding::{Encoding, count, estimate, is_estimated, is_loaded, load};
pub use image::{Detail, ImageRule, Pixels};
pub use image_header::pixels_of_data_url;
pub use model::{Caching, Fit, Model, ModelOverride, Prices};
pub use preserved_thinking::binds_thinking;
pub use table::ModelTable;
pub use tool_schema::tools_tokens;

/// An invalid setting.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error(
        "unknown encoding `{0}`; expected one of: `o200k_base`, `o200k_harmony`, `cl100k_base`, `p50k_base`, `r50k_base`, `estimate`"
    )]
    UnknownEncoding(String),
    #[error("invalid calibration `{0}`; expected a factor and a number of reports, such as `1.3 7`")]
    InvalidCalibration(String),
}
