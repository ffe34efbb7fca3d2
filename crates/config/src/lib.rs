//! `proxy.toml`: as typed, in layers, resolved.
//!
//! [`load`] takes the text of a file, the flags of the command line and the environment, and gives either [`Settings`],
//! where every value is checked and present, or [`ConfigErrors`], which name every mistake with its line, its key, the
//! value as it was written and a hint. `Settings::resolved` says of each value where it came from.
//!
//! The policy of a route has layers, and later ones win key by key: the defaults, the profile (`profiles/`), `[context]`, the route's own
//! `[routes.context]`, the environment. The code that reads a section is its schema: key, type and default stand on one
//! line (`fold.rs` is a good example), and a key that no code asks for is an error.
//!
//! It deliberately does no I/O except reading that one file, does not look at the process environment, resolves no
//! names, opens no certificates and checks no secrets: whoever starts the proxy does.
//!
//! ```
//! use tidegate_config::{Flags, Source, load};
//!
//! let text = r#"
//!     [upstreams.default]
//!     url = "http://127.0.0.1:8000"
//!
//!     [context.mask]
//!     keep = { turns = 5 }
//! "#;
//! let settings = load(Source::new("proxy.toml", text), &Flags::default(), &|_| None)?;
//! assert_eq!(settings.routes[0].upstream.url.authority, "127.0.0.1:8000");
//!
//! let mistake = load(Source::new("proxy.toml", "[server]\nlisten_on = 1"), &Flags::default(), &|_| None);
//! assert!(mistake.unwrap_err().to_string().starts_with("proxy.toml:2: unknown key `server.listen_on`"));
//! # Ok::<(), tidegate_config::ConfigErrors>(())
//! ```

mod blocks;
mod budget;
mod choice;
mod context;
mod edited;
mod environment;
mod error;
mod expansion;
mod fold;
mod glob;
mod layers;
mod matching;
mod model;
mod origin;
mod pattern;
mod policy;
mod profile;
mod report;
mod route;
mod section;
mod server;
mod settings;
mod source;
mod store;
mod summarizer;
mod telemetry;
mod tree;
mod units;
mod upstream;
mod value;

#[cfg(test)]
mod tests;

pub use blocks::{Blocks, Limits};
pub use context::{
    AllowHeaders, Context, History, Mask, ModelWindow, Observations, Unit, strategy_name, strategy_named,
};
pub use error::{ConfigError, ConfigErrors};
pub use fold::{Fold, FoldMode, FoldRole, Prune, Window};
pub use glob::Glob;
pub use matching::{chat_route, matching_route};
pub use model::ModelSettings;
pub use origin::{Origin, Resolved};
pub use pattern::Pattern;
pub use route::{Matcher, Route};
pub use server::{Admin, Log, LogFormat, LogLevel, Server, ServerTls};
pub use settings::{Archive, Conversation, Flags, Settings, load};
pub use source::Source;
pub use store::{OnFailure, Store, StoreUrl};
pub use summarizer::{JsonSchema, LlmSummarizer, Summarizer};
pub use telemetry::{OtlpProtocol, Telemetry};
pub use upstream::{Protocol, Upstream, UpstreamUrl};
