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
//!     let (tokens, kind, joined) = (Tokens(tokens), Kind::of(role), role == Role::Tool);
//!     Message { role, digest: Digest([number; 32]), tokens, size: tokens, masked, kind, joined }
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
//!     pinned: Tokens::ZERO,
//! };
//! let keep = Keep::Turns(1.try_into().unwrap());
//! let mask = MaskPolicy { keep, pace: Pace::EveryTurn };
//! let policy = Policy { strategy: Strategy::Masking, mask, ..Policy::default() };
//! let decision = decide(&conversation, &Memory::default(), &policy, Timestamp(0));
//! assert_eq!(decision.plan.masked, [2]);
//! assert_eq!((decision.plan.before, decision.plan.after), (Tokens(1843), Tokens(963)));
//! ```

mod blocks;
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
mod prune;
mod tokens;
mod toll;
mod trigger;
mod turns;
mod window;

pub use blocks::{BlockFigures, BlockPolicy};
pub use budget::{Budget, BudgetPolicy, OutputReserve, OverheadReserve};
pub use decide::{Conversation, Decision, decide, truncate};
pub use digest::{BadDigest, Digest};
pub use economy::{Economy, Timestamp};
pub use fold::{Fold, FoldJob, Folded, Urgency};
pub use memory::{Memory, Waypoint};
pub use message::{Kind, Message, Role};
pub use plan::{Cause, Plan, Verdict};
pub use policy::{FoldPace, FoldPolicy, Keep, MaskPolicy, Pace, Policy, Strategy, Trigger};
pub use prune::Spared;
pub use tokens::Tokens;
pub use turns::{turns_in, unresolved_from};
pub use window::{Cut, Gap, WindowFigures, WindowPolicy};
