//! Reads `proxy.toml` and resolves it to checked settings.
//!
//! [`load`] takes the text of the file, the command-line flags and the environment. It returns either [`Settings`], where every
//! value is checked and present, or [`ConfigErrors`], which list every mistake with its line, key, value and a hint.
//! `Settings::resolved` records where each value came from.
//!
//! The policy of a route has layers. Later ones win, key by key: the defaults, the profile (`profiles/`), `[context]`, the route's
//! own `[routes.context]`, the environment.
//!
//! The code that reads a section is its schema. Each key has its type and default on one line (`fold.rs` is a good example), and a
//! key that no code reads is an error.
//!
//! This crate does no I/O except to read that one file. It does not look at the process environment, resolve host names, open
//! certificates or check secrets.
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

mod environment;
mod error;
mod expansion;
mod fold;
mod glob;
mod layers;
mod limits;
mod matching;
mod model;
mod origin;
mod pattern;
mod policy;
mod policy_text;
mod profile;
mod recall;
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
mod trim;
mod units;
mod upstream;
mod value;
mod window;

#[cfg(test)]
mod tests;

pub use blocks::Blocks;
pub use context::{
    AllowHeaders, Context, History, Mask, ModelWindow, Native, Observations, Unit, strategy_from_name,
    strategy_name,
};
pub use error::{ConfigError, ConfigErrors};
pub use fold::{Fold, FoldMode, FoldPlacement, FoldRole, Prune};
pub use glob::Glob;
pub use limits::Limits;
pub use matching::{matching_route, saved_route};
pub use model::ModelSettings;
pub use origin::{Origin, Resolved};
pub use pattern::Pattern;
pub use recall::Recall;
pub use route::{Matcher, Route};
pub use server::{Admin, Log, LogFormat, LogLevel, MAX_PUBLIC_CONNECTIONS, Server, ServerTls};
pub use settings::{Anonymous, Archive, Conversation, Flags, Settings, load};
pub use source::Source;
pub use store::{OnFailure, Store, StoreUrl};
pub use summarizer::{Ceiling, JsonSchema, LlmSummarizer, Summarizer};
pub use telemetry::{OtlpProtocol, Semconv, Telemetry};
pub use trim::Trim;
pub use upstream::{Protocol, Upstream, UpstreamUrl};
pub use window::Window;
