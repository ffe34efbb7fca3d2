//! Which requests a client sends, before it rewrites them.

use super::Habit;
use crate::Trajectory;
use crate::trajectory::Random;
use serde_json::{Value, json};

/// A request before its client's habits of rewriting.
pub(super) struct Draft {
    /// How many requests its agent has made before.
    pub(super) number: usize,
    pub(super) messages: Vec<Value>,
}

#[derive(Default)]
pub(super) struct Schedule {
    is_shared: bool,
    is_regenerated: bool,
}

impl Schedule {
    pub(super) fn of(habits: &[Habit]) -> Schedule {
        Schedule {
            is_shared: habits.contains(&Habit::SubAgents),
            is_regenerated: habits.contains(&Habit::Regenerated),
        }
    }

    pub(super) fn drafts(&self, run: &Trajectory, seed: u64, random: &mut Random) -> Vec<Draft> {
        if !self.is_shared {
            return self.of_one(run, seed, random);
        }
        let mut agents: Vec<_> = (0..AGENTS)
            .map(|agent| {
                let run = Trajectory { turns: run.turns.div_ceil(AGENTS as usize).max(8), ..run.clone() };
                let mut drafts = self.of_one(&run, seed.wrapping_mul(AGENTS).wrapping_add(agent), random);
                let instructions = run.messages(seed)[0].clone();
                for draft in &mut drafts {
                    draft.messages[0] = instructions.clone();
                    draft.messages[1] =
                        json!({ "role": "user", "content": format!("Look after pier {agent}.") });
                }
                drafts.into_iter().peekable()
            })
            .collect();
        let mut drafts = Vec::new();
        while agents.iter_mut().any(|agent| agent.peek().is_some()) {
            let agent = random.below(agents.len());
            drafts.extend(agents[agent].next());
        }
        drafts
    }

    /// One request before each assistant message.
    fn of_one(&self, run: &Trajectory, seed: u64, random: &mut Random) -> Vec<Draft> {
        let all = run.messages(seed);
        let mut drafts: Vec<Draft> = Vec::new();
        for (index, message) in all.iter().enumerate() {
            if message["role"] != "assistant" {
                continue;
            }
            let messages = all[..index].to_vec();
            if self.is_regenerated && drafts.len() > 1 && random.below(6) == 0 {
                drafts.push(Draft { number: drafts.len(), messages: with_other_answer(messages.clone()) });
            }
            drafts.push(Draft { number: drafts.len(), messages });
        }
        drafts
    }
}

const AGENTS: u64 = 4;

/// The request as it would be had the model answered something else before.
fn with_other_answer(mut messages: Vec<Value>) -> Vec<Value> {
    if let Some(answer) = messages.iter_mut().rev().find(|message| message["role"] == "assistant") {
        answer["content"] = json!("Let us first think about the weather.");
    }
    messages
}
