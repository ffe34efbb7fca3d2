//! Development only: servers and tools for the tests and benchmarks of Tidegate.
//!
//! - [`MockUpstream`]: an OpenAI upstream on loopback. It records requests byte for byte and counts connections. An
//!   [`Answer`] makes it stream, stall or break at any byte. Without one it behaves like OpenAI's API, well enough for
//!   the official SDKs.
//! - [`TcpProxy`]: a TCP proxy that pauses, delays, cuts and refuses connections.
//! - [`RedisServer`], [`RedisCluster`] and [`Sentinels`]: real Redis servers that tests freeze, kill and restart.
//! - [`PostgresServer`]: a real PostgreSQL server that tests freeze, kill and restart with its data.
//! - [`OtlpReceiver`]: a collector that keeps the spans and metrics it receives over gRPC and HTTP.
//! - [`Unreachable`]: an address that never answers.
//! - [`Trajectory`]: generated agent conversations, and [`Habit`]: how clients send them.
//! - [`dialogue::Dialogue`]: generated dialogues in six languages, to measure what a memory keeps.
//! - The binaries `mock-upstream` and `load`, for the SDK suites and `tests/bench`, and `trajectories`.
//!
//! The mock deliberately does not validate HTTP beyond finding the end of a request: that is up to the test. This crate
//! never leaves loopback, and nothing that ships depends on it.
//!
//! ```
//! use tidegate_testkit::{Answer, MockUpstream};
//! use tokio::io::{AsyncReadExt, AsyncWriteExt};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> std::io::Result<()> {
//! let upstream = MockUpstream::start().await;
//! upstream.then(Answer::json(429, r#"{"error":{}}"#).header("Retry-After", "1"));
//!
//! let mut client = tokio::net::TcpStream::connect(upstream.address()).await?;
//! client.write_all(b"GET /v1/models HTTP/1.1\r\nHOST: x\r\n\r\n").await?;
//! let mut answer = [0; 12];
//! client.read_exact(&mut answer).await?;
//!
//! assert_eq!(&answer, b"HTTP/1.1 429");
//! assert_eq!(upstream.next_request().await.headers, [("HOST".to_owned(), "x".to_owned())]);
//! # Ok(())
//! # }
//! ```

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "this crate runs in tests only, where a panic is the failure message"
)]

mod answer;
mod chat;
mod coding;
mod habits;
mod http1;
mod http2;
mod incoming;
mod loopback;
pub mod messages_api;
mod multipart;
mod openai;
mod otlp;
mod override_header;
mod postgres;
mod recorded;
mod redis;
pub mod responses_api;
mod schema;
mod step;
mod tcp_proxy;
mod tls;
mod trajectory;
mod unreachable;
mod upstream;

pub mod dialogue;
pub mod flags;

pub use answer::Answer;
pub use coding::Coding;
pub use habits::{Breakpoints, Habit};
pub use loopback::{until, until_ok};
pub use otlp::{Fact, OtlpReceiver, SpanEvent, SpanFacts, SpanKind};
pub use postgres::PostgresServer;
pub use recorded::{Arrival, Recorded, Recording, Version};
pub use redis::{RedisCluster, RedisServer, Sentinels};
pub use step::{Ending, Framing, Gate, Step, Timing, filler};
pub use tcp_proxy::TcpProxy;
pub use trajectory::Trajectory;
pub use unreachable::Unreachable;
pub use upstream::{Listen, MockUpstream, default_ca_pem};
