//! When long observations become excerpts.

#![allow(clippy::unwrap_used, reason = "a panic in a test is its failure message")]

use tidegate_engine::*;

const CACHED: CachePricing = CachePricing { write: 1.0, cached: 0.1, cache_life: 300_000 };
const MASKED: u64 = 20;
const EXCERPT: u64 = 400;

/// A run: one word per message. `u` and `a` are messages of 20 tokens, `t700` a result of 700 tokens. Results of 1,500 tokens and more
/// can be trimmed.
fn messages(script: &str) -> Vec<Message> {
    let message = |(index, word): (usize, &str)| {
        let (kind, length) = word.split_at(1);
        let tokens = Tokens(length.parse().unwrap_or(20));
        let role = match kind {
            "u" => Role::User,
            "a" => Role::Assistant,
            _ => Role::Tool,
        };
        let is_result = role == Role::Tool;
        let mut digest = Digest::default();
        digest.0[..8].copy_from_slice(&(index as u64 + 1).to_le_bytes());
        Message {
            role,
            kind: Kind::of(role),
            digest,
            tokens,
            size: tokens,
            masked: is_result.then_some(Tokens(MASKED)),
            trimmed: (is_result && tokens >= Tokens(1500)).then_some(Tokens(EXCERPT)),
            joined: is_result,
        }
    };
    script.split_whitespace().enumerate().map(message).collect()
}

struct Run {
    messages: Vec<Message>,
    memory: Memory,
    policy: Policy,
    economy: CachePricing,
    window: u64,
    now: u64,
}

impl Run {
    fn new(script: &str, economy: CachePricing) -> Run {
        let policy =
            Policy { strategy: Strategy::Masking, trim: Some(TrimPolicy::default()), ..Policy::default() };
        Run {
            messages: messages(script),
            memory: Memory::default(),
            policy,
            economy,
            window: 1_000_000,
            now: 0,
        }
    }

    /// Sends the first `end` messages.
    fn request(&mut self, end: usize) -> Plan {
        let conversation = Conversation {
            messages: &self.messages[..end],
            cache: CacheKey::default(),
            fixed: Tokens(3_000),
            budget: BudgetPolicy::default().budget(&Capacity::known(Tokens(self.window))),
            economy: self.economy,
            marker: Tokens::ZERO,
            pinned: Tokens::ZERO,
        };
        self.now += 1_000;
        let decision = decide(&conversation, &self.memory, &self.policy, Timestamp(self.now));
        self.memory.add(decision.waypoint.unwrap());
        decision.plan
    }

    /// Sends a request before every assistant message and at the end, and returns what each trims.
    fn play(&mut self) -> Vec<Vec<usize>> {
        let ends = (1..self.messages.len()).filter(|&end| self.messages[end].role == Role::Assistant);
        let ends: Vec<usize> = ends.chain([self.messages.len()]).collect();
        ends.into_iter().map(|end| self.request(end).trimmed).collect()
    }
}

fn trimmed(script: &str) -> Vec<Vec<usize>> {
    Run::new(script, CACHED).play()
}

#[test]
fn a_long_result_is_trimmed_when_it_has_been_answered_once() {
    let none = Vec::new();
    assert_eq!(trimmed("u a t4000 a t4000 a t9"), [none.clone(), none.clone(), vec![2], vec![2, 4]]);
    assert_eq!(trimmed("u a t1400 a t1400 a t9"), [none.clone(), none.clone(), none.clone(), none]);
}

#[test]
fn an_answered_result_is_trimmed_before_the_users_next_question() {
    assert_eq!(trimmed("u a t4000 a u a t9").last().unwrap(), &[2]);
    let mut two = Run::new("u a t4000 a t4000 a t9", CachePricing::WITHOUT_CACHE);
    two.policy.trim = Some(TrimPolicy { after: Keep::Turns(2.try_into().unwrap()), ..TrimPolicy::default() });
    assert_eq!(two.play(), [vec![], vec![], vec![], vec![2]]);
}

/// Everything after it in the same turn has been read and would have to be read again.
#[test]
fn a_result_before_much_else_is_skipped_and_later_ones_are_trimmed() {
    let played = trimmed("u a t1600 t1400 t1400 t1400 a t9 a t5000 a t9 a t9");
    assert_eq!(played[2], Vec::<usize>::new(), "{played:?}");
    assert_eq!(played.last().unwrap(), &[9], "{played:?}");
}

/// However many results it does not pay to trim any more, trimming goes on.
#[test]
fn many_skipped_results_do_not_keep_later_ones_from_being_trimmed() {
    let many = "t1600 ".repeat(20);
    let played = trimmed(&format!("u a {many} t1400 t1400 t1400 a t9 a t5000 a t9 a t9"));
    assert_eq!(played.last().unwrap(), &[17, 18, 19, 20, 21, 28], "{played:?}");
}

#[test]
fn a_skipped_result_is_trimmed_when_the_cache_is_cold() {
    let mut run = Run::new("u a t1600 t1400 t1400 t1400 a t9 a t5000 a t9 a t9 a t9", CACHED);
    run.play();
    run.now += 1_000_000;
    run.messages
        .extend(messages("u").into_iter().map(|message| Message { digest: Digest([9; 32]), ..message }));
    let plan = run.request(run.messages.len());
    assert_eq!((plan.trimmed, plan.cause), (vec![2, 9], Some(Cause::Free)));
}

#[test]
fn without_a_cache_everything_answered_is_trimmed() {
    let mut run = Run::new("u a t1600 t1400 t1400 t1400 a t5000 a t9", CachePricing::WITHOUT_CACHE);
    assert_eq!(run.play().last().unwrap(), &[2, 7]);
}

/// An excerpt is masked later, and then it is not trimmed any more.
#[test]
fn a_mask_replaces_an_excerpt() {
    let mut run = Run::new(&("u".to_owned() + &" a t4000".repeat(6)), CachePricing::WITHOUT_CACHE);
    run.policy.mask = MaskPolicy { keep: Keep::Turns(3.try_into().unwrap()), pace: Pace::EveryTurn };
    run.play();
    let plan = run.request(run.messages.len());
    assert_eq!((plan.masked, plan.trimmed), (vec![2, 4, 6], vec![8, 10]));
    let read = 3_000 + 20 + 6 * 20 + 3 * MASKED + 2 * EXCERPT + 4_000;
    assert_eq!(plan.after, Tokens(read));
}

#[test]
fn a_request_that_does_not_fit_is_trimmed_whatever_it_costs() {
    let mut run = Run::new("u a t1600 t1400 t1400 t1400 a t1400", CACHED);
    assert_eq!(run.play().last().unwrap(), &Vec::<usize>::new());
    let mut run = Run::new("u a t1600 t1400 t1400 t1400 a t1400", CACHED);
    // 10,260 tokens do not fit, 9,060 do.
    run.window = 9_500 + 2_048 + 1_024;
    let plan = run.request(run.messages.len());
    assert_eq!((plan.trimmed, plan.verdict), (vec![2], Verdict::Fits));
}

#[test]
fn a_retry_trims_what_the_first_attempt_did() {
    let mut run = Run::new("u a t4000 a t4000 a t4000 a t9", CACHED);
    let mut before = Vec::new();
    for end in [1, 3, 5, 7, 9] {
        let plan = run.request(end);
        assert!(plan.trimmed.starts_with(&before), "an excerpt was taken back");
        let retry = run.request(end);
        assert_eq!((&retry.trimmed, retry.cause), (&plan.trimmed, None));
        before = plan.trimmed;
    }
}
