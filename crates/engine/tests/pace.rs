//! The billed input cost of break-even masking, relative to the optimum, the best fixed batch, and not masking at all.
//!
//! Each run is an agent of 20 to 150 turns with log-normal tool outputs (mean 1,500 tokens); the last ten turns are kept. The optimum
//! knows the future: it is computed by dynamic programming over all schedules of the frontier.
//! `cargo test -p tidegate-engine --test pace -- --nocapture` prints the table in the README.

#![allow(clippy::unwrap_used, reason = "a panic in a test is its failure message")]

use std::fmt::Write;
use tidegate_engine::*;

const KEPT: usize = 10;
const RUNS: usize = 100;
const PLACEHOLDER: u64 = 15;
const ASSISTANT: u64 = 150;
const SYSTEM: u64 = 2_000;

const REGIMES: [(&str, f64, f64); 5] = [
    ("cached ×1", 1.0, 1.0),
    ("cached ×0.5", 1.0, 0.5),
    ("cached ×0.25", 1.0, 0.25),
    ("cached ×0.1", 1.0, 0.1),
    ("cached ×0.1, write ×1.25", 1.25, 0.1),
];

/// One agent run: the tokens of each tool output.
struct Run {
    outputs: Vec<u64>,
}

/// Computes what a run is billed for, given the mask frontier (a number of outputs) at each request.
struct Bill<'a> {
    run: &'a Run,
    write: f64,
    cached: f64,
    /// Prefix sums of the outputs, unmasked and masked.
    sent: Vec<u64>,
    masked: Vec<u64>,
}

impl<'a> Bill<'a> {
    fn new(run: &'a Run, write: f64, cached: f64) -> Bill<'a> {
        let sums = |value: fn(u64) -> u64| {
            let mut sum = 0;
            std::iter::once(0)
                .chain(run.outputs.iter().map(|&output| {
                    sum += value(output);
                    sum
                }))
                .collect()
        };
        Bill {
            run,
            write,
            cached,
            sent: sums(|output| output),
            masked: sums(|output| output.min(PLACEHOLDER)),
        }
    }

    /// The tokens of the request after `turns` turns.
    fn size(&self, turns: usize, frontier: usize) -> u64 {
        let kept = self.sent[turns] - self.sent[frontier];
        SYSTEM + ASSISTANT * turns as u64 + self.masked[frontier] + kept
    }

    /// The cost of one request. The provider's cache holds the previous request, so the common prefix is a hit.
    fn request(&self, turns: usize, before: usize, frontier: usize) -> f64 {
        let size = self.size(turns, frontier);
        let hit = if turns == 0 {
            0
        } else if frontier == before {
            self.size(turns - 1, before)
        } else {
            SYSTEM + ASSISTANT * (before as u64 + 1) + self.masked[before]
        };
        hit as f64 * self.cached + (size - hit) as f64 * self.write
    }

    /// The cost of the whole run under a rule that moves the frontier.
    fn total(&self, mut rule: impl FnMut(usize, usize) -> usize) -> f64 {
        let mut frontier = 0;
        (0..=self.run.outputs.len())
            .map(|turns| {
                let next = rule(turns, frontier);
                let cost = self.request(turns, frontier, next);
                frontier = next;
                cost
            })
            .sum()
    }

    fn optimum(&self) -> f64 {
        let count = self.run.outputs.len();
        let mut best = vec![f64::INFINITY; count + 1];
        best[0] = self.request(0, 0, 0);
        for turns in 1..=count {
            let mut next = vec![f64::INFINITY; count + 1];
            let edge = turns.saturating_sub(KEPT);
            for (before, so_far) in best.iter().enumerate().take(edge + 1) {
                for (frontier, next) in next.iter_mut().enumerate().take(edge + 1).skip(before) {
                    *next = next.min(so_far + self.request(turns, before, frontier));
                }
            }
            best = next;
        }
        best.into_iter().fold(f64::INFINITY, f64::min)
    }

    fn batch(&self, size: usize) -> f64 {
        self.total(|turns, frontier| {
            let edge = turns.saturating_sub(KEPT);
            if edge - frontier >= size { edge } else { frontier }
        })
    }

    /// The cost under the real engine, called before every assistant message.
    fn engine(&self) -> f64 {
        let mut memory = Memory::default();
        let messages = messages(self.run);
        let keep = Keep::Turns(u32::try_from(KEPT).unwrap().try_into().unwrap());
        let policy = Policy {
            strategy: Strategy::Masking,
            mask: MaskPolicy { keep, pace: Pace::BreakEven },
            ..Policy::default()
        };
        let budget = BudgetPolicy::default().budget(&Capacity::known(Tokens(100_000_000)));
        let economy = CachePricing { write: self.write, cached: self.cached, cache_life: 300_000 };
        self.total(|turns, _| {
            // The system prompt and the task, then an assistant message and a tool output per turn.
            let messages = &messages[..2 + 2 * turns];
            let conversation = Conversation {
                messages,
                cache: CacheKey::default(),
                fixed: Tokens::ZERO,
                budget,
                economy,
                marker: Tokens::ZERO,
                pinned: Tokens::ZERO,
            };
            let decision = decide(&conversation, &memory, &policy, Timestamp(turns as u64 * 10_000));
            memory.add(decision.waypoint.unwrap());
            decision.plan.masked.last().map_or(0, |&last| (last - 2) / 2 + 1)
        })
    }

    /// The cost under the textbook rule, whose price includes new messages that are read for the first time anyway.
    fn textbook_break_even(&self) -> f64 {
        let mut tally = 0.0;
        self.total(|turns, frontier| {
            let edge = turns.saturating_sub(KEPT);
            let saving =
                (self.sent[edge] - self.sent[frontier]) - (self.masked[edge] - self.masked[frontier]);
            if saving == 0 {
                return frontier;
            }
            tally += saving as f64 * self.cached;
            let front = SYSTEM + ASSISTANT * (frontier as u64 + 1) + self.masked[frontier];
            let price = (self.size(turns, edge) - front) as f64 * (self.write - self.cached);
            if tally >= price {
                tally = 0.0;
                edge
            } else {
                frontier
            }
        })
    }
}

fn messages(run: &Run) -> Vec<Message> {
    let message = |index: usize, role, tokens, masked: Option<u64>| {
        let mut digest = Digest::default();
        digest.0[..8].copy_from_slice(&(index as u64 + 1).to_le_bytes());
        Message {
            role,
            kind: Kind::of(role),
            digest,
            tokens: Tokens(tokens),
            size: Tokens(tokens),
            masked: masked.map(Tokens),
            trimmed: None,
            joined: role == Role::Tool,
        }
    };
    let mut messages = vec![message(0, Role::System, SYSTEM, None), message(1, Role::User, 0, None)];
    for &output in &run.outputs {
        messages.push(message(messages.len(), Role::Assistant, ASSISTANT, None));
        messages.push(message(messages.len(), Role::Tool, output, Some(PLACEHOLDER)));
    }
    messages
}

/// Runs with log-normal tool outputs, the same for every run of the test.
fn runs(turns: usize) -> Vec<Run> {
    let mut state = 0x9e37_79b9_7f4a_7c15 ^ turns as u64;
    let mut uniform = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    let sigma: f64 = 1.0;
    let mu = 1_500f64.ln() - sigma * sigma / 2.0;
    let mut output = move || {
        let normal = (-2.0 * uniform().max(1e-12).ln()).sqrt() * (std::f64::consts::TAU * uniform()).cos();
        (mu + sigma * normal).exp().round().max(1.0) as u64
    };
    (0..RUNS).map(|_| Run { outputs: (0..turns).map(|_| output()).collect() }).collect()
}

#[test]
fn break_even_is_near_the_optimum_at_every_price() {
    let mut table = String::from(
        "| price | turns | every turn / raw | break-even / raw | / optimum | / best batch | worst run / raw | textbook / optimum |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for (name, write, cached) in REGIMES {
        for turns in [20, 40, 60, 100, 150] {
            let runs = runs(turns);
            let bills: Vec<Bill> = runs.iter().map(|run| Bill::new(run, write, cached)).collect();
            let sum = |cost: &dyn Fn(&Bill) -> f64| bills.iter().map(cost).sum::<f64>();
            let raw = sum(&|bill| bill.total(|_, frontier| frontier));
            let every = sum(&|bill| bill.batch(1));
            let optimum = sum(&|bill| bill.optimum());
            let batch = (1..=turns).map(|size| sum(&|bill| bill.batch(size))).fold(f64::INFINITY, f64::min);
            let textbook = sum(&|bill| bill.textbook_break_even());
            let engine: Vec<f64> = bills.iter().map(Bill::engine).collect();
            let worst =
                bills.iter().zip(&engine).map(|(bill, cost)| cost / bill.total(|_, frontier| frontier));
            let worst = worst.fold(0.0, f64::max);
            let mean: f64 = engine.iter().sum();
            writeln!(
                table,
                "| {name} | {turns} | {:.2} | {:.3} | {:.3} | {:.3} | {worst:.2} | {:.3} |",
                every / raw,
                mean / raw,
                mean / optimum,
                mean / batch,
                textbook / optimum,
            )
            .unwrap();
            let case = format!("{name}, {turns} turns\n{table}");
            assert!(mean <= optimum * 1.06, "more than 6 % above the optimum: {case}");
            assert!(mean <= batch * 1.02, "more than 2 % above the best fixed batch: {case}");
            assert!(mean <= raw * 1.04, "more expensive than not masking: {case}");
            assert!(worst <= 1.20, "one run is much more expensive than not masking: {case}");
        }
    }
    println!("{table}");
}

/// The worked example of the README.
#[test]
fn results_of_equal_length_are_masked_fourteen_at_a_time() {
    let run = Run { outputs: vec![1_500; 60] };
    let messages = messages(&run);
    let budget = BudgetPolicy::default().budget(&Capacity::known(Tokens(100_000_000)));
    let economy = CachePricing { write: 1.0, cached: 0.1, cache_life: 300_000 };
    let policy = Policy { strategy: Strategy::Masking, ..Policy::default() };
    let mut memory = Memory::default();
    let mut moves = Vec::new();
    for turns in 0..=run.outputs.len() {
        let conversation = Conversation {
            messages: &messages[..2 + 2 * turns],
            cache: CacheKey::default(),
            fixed: Tokens::ZERO,
            budget,
            economy,
            marker: Tokens::ZERO,
            pinned: Tokens::ZERO,
        };
        let decision = decide(&conversation, &memory, &policy, Timestamp(turns as u64 * 10_000));
        memory.add(decision.waypoint.unwrap());
        if decision.plan.cause == Some(Cause::BreakEven) {
            moves.push((turns, decision.plan.masked.len()));
        }
    }
    assert_eq!(moves, [(24, 14), (38, 28), (52, 42)]);
}
