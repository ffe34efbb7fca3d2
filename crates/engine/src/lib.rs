//! The decision engine: what to do with the messages of one request.
//!
//! Pure. It has no I/O, no async, no clock, no dependency, and it never sees a text: it knows messages by their role,
//! digest, token count, call ids and flags. Whoever calls it brings the facts and carries out the plan.

mod budget;
mod policy;
mod tokens;

pub use budget::{Budget, BudgetPolicy, OutputReserve, OverheadReserve};
pub use policy::{Keep, MaskPolicy, Pace, Strategy, Trigger};
pub use tokens::Tokens;
