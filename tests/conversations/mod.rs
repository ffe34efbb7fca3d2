//! Reads conversations back, through the admin API and `tidegate conversations`.
//!
//! [`scene`] starts processes and sends conversations, and [`ask`] reads them; every other module is one behaviour.

mod ask;
mod scene;

mod access;
mod answers;
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
