//! Each profile does what the document that it reproduces says.
//!
//! One directory per profile, each with a README.md that maps every rule of the document to its test. [`scene`] starts the
//! processes and reads what reached the upstream.

mod operator;
mod scene;
mod summarizer;

mod agent;
mod assistant;
mod budgeted_chat;
mod rolling_memory;
mod story;
