//! The decision engine: decides which messages of a request to mask, fold or drop.
//!
//! The engine is pure. It has no I/O, no async, no clock and no dependencies, and it never sees a text: a [`Message`] is a role, a
//! digest, token counts and flags. The caller provides these facts and carries out the [`Plan`].
//!
//! [`decide()`] takes a [`Conversation`], the [`Memory`] of earlier decisions, a [`Policy`] and the time. It always returns a usable
//! plan, the [`Waypoint`] to store if the request is sent, and a [`FoldJob`] if a summary is due. [`truncate()`] is the fallback for
//! a summary that could not be made.
//!
//! # The passes
//!
//! Each strategy runs some of these passes, in this order:
//!
//! | pass | does | strategies |
//! | --- | --- | --- |
//! | fold | replaces a covered prefix with its summary, and asks for a new summary when one is due | summarization, hybrid |
//! | mask | replaces the content of old observations with a placeholder | masking, hybrid |
//! | trim | replaces the content of long observations with an excerpt, if the policy trims | masking, summarization, hybrid |
//! | blocks | asks for a summary when the history exceeds its own limit | summarization, hybrid |
//! | prune | chooses which covered messages can stay next to a new summary | summarization, hybrid |
//! | window | keeps a head and a tail, and drops the middle | window |
//!
//! # Invariants
//!
//! They hold for every strategy and every input, and `tests/` states each as a property.
//!
//! - **Deterministic.** The same arguments give the same decision. A retry gets the same plan, even later.
//! - **Replay before decide.** A decision is repeated until there is a [`Cause`] for a new one. In between, the forwarded request
//!   is the previous one plus new messages.
//! - **Content-addressed.** A decision is found by a [`Digest`] only, so a branch never uses another branch's decision.
//! - **Nothing sacred is lost.** Instructions, the last user turn and the unresolved tail are never edited.
//! - **Calls stay whole.** No cut separates a call from its results.
//! - **No drop without fold.** A message leaves only if the summary in the same plan covers it. The exceptions are `truncate` and
//!   the window strategy, whose plans count the missing messages in a marker.
//! - **Never worse.** A mask or an excerpt that would not shrink its message is not made, and a summary that would not shrink the request is
//!   not used, unless a block limit requires it.
//!
//! # Example
//!
//! ```
//! use tidegate_engine::*;
//!
//! let message = |role, number: u8, tokens, masked| {
//!     let (tokens, kind, joined) = (Tokens(tokens), Kind::of(role), role == Role::Tool);
//!     Message { role, digest: Digest([number; 32]), tokens, size: tokens, masked, trimmed: None, kind, joined }
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
//!     cache: CacheKey::default(),
//!     fixed: Tokens(3),
//!     budget: BudgetPolicy::default().budget(&Capacity::known(Tokens(128_000))),
//!     economy: CachePricing::WITHOUT_CACHE,
//!     marker: Tokens(20),
//!     pinned: Tokens::ZERO,
//! };
//! let keep = Keep::Turns(1.try_into().unwrap());
//! let mask = MaskPolicy { keep, pace: Pace::EveryTurn };
//! let policy = Policy { strategy: Strategy::Masking, mask, ..Policy::default() };
//!
//! let decision = decide(&conversation, &Memory::default(), &policy, Timestamp(0));
//!
//! // The first tool result is older than one turn. The second one is in the unresolved tail.
//! assert_eq!(decision.plan.masked, [2]);
//! assert_eq!((decision.plan.before, decision.plan.after), (Tokens(1843), Tokens(963)));
//! ```

mod binding;
mod blocks;
mod budget;
mod context_window;
mod decide;
mod digest;
mod economy;
mod edits;
mod excerpt;
mod fold;
mod fold_backoff;
mod fold_job;
mod fold_pace;
mod horizon;
mod mask;
mod memory;
mod message;
mod plan;
mod policy;
mod prune;
mod reference;
mod role_order;
mod tokens;
mod trigger;
mod trim;
mod truncate;
mod turns;
mod window;

pub use blocks::{BlockFigures, BlockPolicy};
pub use budget::{
    Accuracy, AnswerRoom, Budget, BudgetPolicy, Capacity, OutputReserve, OverheadReserve, RefuseAt,
};
pub use context_window::ContextWindow;
pub use decide::{Conversation, Decision, decide};
pub use digest::{Digest, InvalidDigest};
pub use economy::{CacheKey, CacheKind, CachePricing, Timestamp};
pub use excerpt::{Excerpt, MAX_EXCERPTS, Passage, places};
pub use fold::{Fold, Folded};
pub use fold_backoff::FoldBackoff;
pub use fold_job::{FoldJob, Need, Urgency};
pub use horizon::Horizon;
pub use memory::{Memory, Recalled, Trail, Waypoint};
pub use message::{Kind, Message, Role};
pub use plan::{Cause, Plan, Verdict};
pub use policy::{
    FoldPace, FoldPolicy, Keep, MaskPolicy, Pace, Policy, Strategy, SummaryLimit, Trigger, TrimPolicy,
};
pub use prune::PruneRange;
pub use reference::{InvalidReference, Reference};
pub use role_order::RoleOrder;
pub use tokens::Tokens;
pub use trim::Skipped;
pub use truncate::truncate;
pub use turns::{count_turns, unresolved_from};
pub use window::{Cut, Gap, WindowFigures, WindowPolicy};
