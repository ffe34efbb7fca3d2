//! The decision engine: what to do with the messages of one request.
//!
//! Pure. It has no I/O, no async, no clock, no dependency, and it never sees a text: it knows messages by their role,
//! digest, token count and flags. Whoever calls it brings the facts and carries out the plan.
//!
//! [`decide`] takes a [`Conversation`], the [`Memory`] of earlier decisions, a [`Policy`] and the time, and always returns
//! a usable [`Plan`], with the [`Waypoint`] to remember if the request is sent, and a [`FoldJob`] if something would be better
//! summarized. The same input gives the same plan.
//!
//! ```
//! use tidegate_engine::*;
//!
//! let message = |role, number: u8, tokens, masked| {
//!     Message { role, digest: Digest([number; 32]), tokens: Tokens(tokens), masked, kind: Kind::of(role), joined: role == Role::Tool }
//! };
//! let messages = [
//!     message(Role::User, 1, 20, None),
//!     message(Role::Assistant, 2, 10, None),
//!     message(Role::Tool, 3, 900, Some(Tokens(20))),
//!     message(Role::Assistant, 4, 10, None),
//!     message(Role::Tool, 5, 900, Some(Tokens(20))),
//! ];
//! let conversation = Conversation {
//!     messages: &messages,
//!     fixed: Tokens(3),
//!     budget: BudgetPolicy::default().budget(Some(Tokens(128_000)), None),
//!     economy: Economy::WITHOUT_CACHE,
//!     marker: Tokens(20),
//! };
//! let keep = Keep::Turns(1.try_into().unwrap());
//! let fold = FoldPolicy::default();
//! let policy = Policy { strategy: Strategy::Masking, mask: MaskPolicy { keep, pace: Pace::EveryTurn }, fold };
//! let decision = decide(&conversation, &Memory::default(), &policy, Timestamp(0));
//! assert_eq!(decision.plan.masked, [2]);
//! assert_eq!((decision.plan.before, decision.plan.after), (Tokens(1843), Tokens(963)));
//! ```

mod budget;
mod decide;
mod digest;
mod economy;
mod fold;
mod mask;
mod memory;
mod message;
mod plan;
mod policy;
mod tokens;
mod turns;

pub use budget::{Budget, BudgetPolicy, OutputReserve, OverheadReserve};
pub use decide::{Conversation, Decision, decide, truncate};
pub use digest::Digest;
pub use economy::{Economy, Timestamp};
pub use fold::{Fold, FoldJob, FoldPolicy, Folded, Urgency};
pub use memory::{Memory, Waypoint};
pub use message::{Kind, Message, Role};
pub use plan::{Cause, Plan, Verdict};
pub use policy::{Keep, MaskPolicy, Pace, Policy, Strategy, Trigger};
pub use tokens::Tokens;
pub use turns::unresolved_from;
