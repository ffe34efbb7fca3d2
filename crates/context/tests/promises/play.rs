//! Runs a generated conversation through the code that the proxy runs, including retries and branches.

use crate::conversation::{Sent, Turn, messages, turn};
use crate::policy::{Policy, Resolved, policy};
use crate::spelling::{Dice, Part, object};
use bytes::Bytes;
use proptest::prelude::*;
use std::ops::Range;
use tidegate_context::{Assessment, ConversationState, TurnInput, drive_offline};
use tidegate_engine::{Memory, Plan, Timestamp};
use tidegate_wire::{Dialect, Reader, assemble};

#[derive(Clone, Debug)]
pub(crate) struct Scenario {
    pub(crate) policy: Policy,
    turns: Vec<Turn>,
    seed: u64,
    /// Where the client goes back, changes a message and continues, before it returns to the main conversation.
    branch: Option<Branch>,
    max_tokens: Option<u64>,
    /// Bit masks of the requests that are sent twice, and of those after which the provider's cache goes cold.
    retried: u32,
    pauses: u32,
    /// The correction factors of the token counts, used in turn by the requests.
    factors: Vec<f64>,
}

#[derive(Clone, Debug)]
struct Branch {
    /// The request after which it branches off.
    after: prop::sample::Index,
    message: prop::sample::Index,
    requests: usize,
}

pub(crate) fn scenario() -> impl Strategy<Value = Scenario> {
    let branch = (any::<prop::sample::Index>(), any::<prop::sample::Index>(), 1usize..5)
        .prop_map(|(after, message, requests)| Branch { after, message, requests });
    let factors = prop_oneof![3 => Just(1.0), 1 => Just(1.37), 1 => Just(0.6)];
    (
        policy(),
        prop::collection::vec(turn(), 1..20),
        any::<u64>(),
        prop::option::weighted(0.4, branch),
        prop::option::weighted(0.3, 1u64..1500),
        any::<u32>(),
        any::<u32>(),
        factors,
    )
        .prop_map(|(policy, turns, seed, branch, max_tokens, retried, pauses, factor)| Scenario {
            policy,
            turns,
            seed,
            branch,
            max_tokens,
            retried: retried & retried.rotate_left(7),
            pauses: pauses & pauses.rotate_left(5) & pauses.rotate_left(11),
            factors: vec![factor],
        })
}

impl Scenario {
    /// Uses another correction factor for every request, as happens with an unknown model.
    pub(crate) fn with_factors(self, factors: Vec<f64>) -> Scenario {
        Scenario { factors, ..self }
    }

    pub(crate) fn max_tokens(&self) -> Option<u64> {
        self.max_tokens
    }
}

/// A request and its result.
pub(crate) struct Exchange<'a> {
    pub(crate) scenario: &'a Scenario,
    pub(crate) resolved: &'a Resolved,
    pub(crate) sent: &'a [Sent],
    pub(crate) body: &'a Body,
    pub(crate) assessment: &'a Assessment,
    /// The forwarded body, or `None` if it is the client's own.
    pub(crate) edited: Option<Vec<u8>>,
    /// The memory before this request.
    pub(crate) memory: &'a Memory,
    pub(crate) now: u64,
    pub(crate) factor: f64,
    /// Whether it repeats the previous request.
    pub(crate) is_retry: bool,
    /// Whether it belongs to the branch or follows it.
    pub(crate) is_after_branch: bool,
}

impl Exchange<'_> {
    pub(crate) fn plan(&self) -> &Plan {
        &self.assessment.decision.plan
    }

    pub(crate) fn forwarded(&self) -> &[u8] {
        self.edited.as_deref().unwrap_or(&self.body.bytes)
    }

    /// Runs the request again with another reader, memory and time.
    pub(crate) fn again(&self, reader: &Reader, memory: &Memory, now: u64) -> (Assessment, Vec<u8>) {
        let (assessment, edited) =
            run_turn(self.resolved, &self.body.bytes, reader, memory, now, self.factor);
        (assessment, edited.unwrap_or_else(|| self.body.bytes.clone()))
    }
}

/// The body of a request, the ranges of its messages, and whether it has tools.
#[derive(Clone, Debug)]
pub(crate) struct Body {
    pub(crate) bytes: Vec<u8>,
    pub(crate) messages: Vec<Range<usize>>,
    pub(crate) has_tools: bool,
}

fn body(scenario: &Scenario, sent: &[Sent]) -> Body {
    let mut dice = Dice::new(scenario.seed);
    let mut array = String::from("[");
    let mut messages = Vec::new();
    for (index, message) in sent.iter().enumerate() {
        array.push_str(if index > 0 { "," } else { "" });
        array.push_str(dice.space());
        let start = array.len();
        array.push_str(&message.spelled.text);
        messages.push(start..array.len());
        array.push_str(dice.space());
    }
    array.push(']');
    let mut dice = Dice::new(!scenario.seed);
    let mut members = vec![
        (Part::Other, "model", "\"tide-1\"".into()),
        (Part::Content, "messages", array),
        (Part::Other, "temperature", "0.30000000000000000001".into()),
        (Part::Other, "seed", "123456789012345678901234567890".into()),
        (Part::Other, "x_twice", "2e9".into()),
        (Part::Other, "x_twice", "{\"messages\":[{\"role\":\"tool\",\"content\":\"no\"}]}".into()),
    ];
    let has_tools = dice.one_in(2);
    if has_tools {
        let tool = r#"{"type":"function","function":{"name":"search","parameters":{"type":"object","properties":{}}}}"#;
        members.push((Part::Other, "tools", format!("[{tool} ]")));
    }
    members.extend(scenario.max_tokens.map(|max| (Part::Other, "max_tokens", max.to_string())));
    let whole = object(&mut dice, members);
    let start = whole.content.unwrap().start;
    let messages = messages.into_iter().map(|place| place.start + start..place.end + start).collect();
    Body { bytes: whole.text.into_bytes(), messages, has_tools }
}

/// Runs the whole conversation and calls `check` with each request.
pub(crate) fn play(
    scenario: &Scenario,
    mut check: impl FnMut(&Exchange<'_>) -> Result<(), TestCaseError>,
) -> Result<(), TestCaseError> {
    let resolved = scenario.policy.resolve();
    let reader = Reader::default();
    let mut memory = Memory::default();
    let mut now = 1_000_000;
    let main = messages(&scenario.turns, scenario.seed, None);
    let requests = requests(scenario, &main);
    for (number, (sent, is_after_branch)) in requests.iter().enumerate() {
        let body = body(scenario, sent);
        let factor = scenario.factors[number % scenario.factors.len()];
        let times = if scenario.retried >> (number % 32) & 1 == 1 { 2 } else { 1 };
        for time in 0..times {
            let (assessment, edited) = run_turn(&resolved, &body.bytes, &reader, &memory, now, factor);
            check(&Exchange {
                scenario,
                resolved: &resolved,
                sent,
                body: &body,
                assessment: &assessment,
                edited,
                memory: &memory,
                now,
                factor,
                is_retry: time > 0,
                is_after_branch: *is_after_branch,
            })?;
            // A refused request leaves no waypoint.
            if let Some(waypoint) = assessment.decision.waypoint {
                memory.add(waypoint);
            }
            now += if scenario.pauses >> (number % 32) & 1 == 1 { 400_000 } else { 2_000 };
        }
    }
    Ok(())
}

/// Returns the requests in order: the history before each assistant message, sometimes including that message as a prefill, then
/// the whole conversation. The branch is inserted among them.
fn requests(scenario: &Scenario, main: &[Sent]) -> Vec<(Vec<Sent>, bool)> {
    let mut dice = Dice::new(scenario.seed);
    let ends = |all: &[Sent], dice: &mut Dice| {
        let mut ends = Vec::new();
        for (index, message) in all.iter().enumerate() {
            if message.speaker == crate::conversation::Speaker::Assistant {
                ends.push(index);
                if dice.one_in(10) {
                    ends.push(index + 1);
                }
            }
        }
        ends.push(all.len());
        ends.dedup();
        ends
    };
    let main_ends = ends(main, &mut dice);
    let mut requests: Vec<(Vec<Sent>, bool)> =
        main_ends.iter().map(|&end| (main[..end].to_vec(), false)).collect();
    if let Some(branch) = &scenario.branch {
        let after = branch.after.index(requests.len());
        let end = main_ends[after];
        let edited = branch.message.index(end);
        let side = messages(&scenario.turns, scenario.seed, Some(edited));
        let side_ends = main_ends[after..].iter().take(branch.requests);
        let side: Vec<_> = side_ends.map(|&end| (side[..end].to_vec(), true)).collect();
        requests[after + 1..].iter_mut().for_each(|(_, is_after_branch)| *is_after_branch = true);
        requests.splice(after + 1..after + 1, side);
    }
    requests
}

fn run_turn(
    resolved: &Resolved,
    body: &[u8],
    reader: &Reader,
    memory: &Memory,
    now: u64,
    factor: f64,
) -> (Assessment, Option<Vec<u8>>) {
    let outline = reader.outline(Dialect::Chat, body).unwrap();
    let state = ConversationState::new(memory.clone(), Vec::new(), None);
    let (context, model) = (resolved.context.clone(), resolved.model.clone());
    let body = Bytes::copy_from_slice(body);
    let input =
        TurnInput { factor, now: Timestamp(now), ..TurnInput::new(body.clone(), outline, context, model) };
    let outcome = drive_offline(&mut tidegate_context::Turn::new(input, state), reader).unwrap();
    let edited = outcome.pieces.map(|pieces| assemble(&body, &pieces));
    (outcome.assessment, edited)
}
