//! Reads conversations back, through the admin API and `tidegate conversations`.
//!
//! [`talk`] has conversations and [`ask`] asks for them; every other module is one behaviour.

mod ask;
mod talk;

mod access;
mod audit;
mod diff;
mod encryption;
mod many;
mod memory;
mod memory_text;
mod reading;
mod removal;
mod restart;
mod summaries;
mod tenants;
mod terminal;
