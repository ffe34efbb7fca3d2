//! Property tests of the documented promises about forwarded bytes. Generated conversations grow turn by turn, are retried, edited and
//! branched, under generated policies, through the code that the proxy runs.
//!
//! [`conversation`] (from [`material`]) and [`policy`] generate the scenarios, [`play`] runs them, and [`reading`] inspects the output
//! without using the code under test.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a panic is the failure message of a test")]

mod conversation;
mod material;
mod play;
mod policy;
mod pricing;
mod reading;
mod spelling;

use bytes::Bytes;
use conversation::{Sent, Speaker};
use play::{Exchange, play, scenario};
use proptest::prelude::*;
use reading::{Request, Shape, indexes, own_tool, shapes};
use tidegate_context::{ConversationState, Rule, TurnInput};
use tidegate_engine::{Strategy, Tokens, Verdict};
use tidegate_wire::{Dialect, Reader};

fn config() -> ProptestConfig {
    ProptestConfig {
        cases: 96,
        failure_persistence: None,
        max_shrink_iters: 2_000,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    /// Promise 1: only the contents of masked messages, texts of trimmed ones and tags change, and the tool that asks for them is added
    /// where the policy says so. Every other byte is the client's.
    #[test]
    fn only_planned_edits_change_bytes(scenario in scenario()) {
        play(&scenario, |exchange| {
            let shapes = shapes(exchange)?;
            let (masked, trimmed) = (indexes(&shapes, Shape::Masked), indexes(&shapes, Shape::Trimmed));
            let is_whole = masked.is_empty() && trimmed.is_empty();
            if scenario.policy.observe {
                prop_assert!(is_whole, "observe mode must not edit");
            } else {
                prop_assert_eq!(&masked, &exchange.plan().masked);
                prop_assert_eq!(&trimmed, &exchange.plan().trimmed);
            }
            let has_own_tool = own_tool(exchange.forwarded())?.is_some();
            let may_add_tool = scenario.policy.adds_tool() && exchange.body.has_tools;
            prop_assert_eq!(has_own_tool, may_add_tool && exchange.edited.is_some());
            let is_untouched = is_whole && !may_add_tool && exchange.sent.iter().all(|sent| !sent.tagged);
            prop_assert_eq!(is_untouched, exchange.edited.is_none());
            Ok(())
        })?;
    }

    /// Promise 2: a valid request stays valid, with the same calls and the same results.
    #[test]
    fn valid_requests_stay_valid(scenario in scenario()) {
        play(&scenario, |exchange| {
            let before = Request::read(&exchange.body.bytes)?;
            let after = Request::read(exchange.forwarded())?;
            prop_assert_eq!(before.pairs(), after.pairs());
            prop_assert_eq!(before.messages.len(), after.messages.len());
            for (before, after) in before.messages.iter().zip(&after.messages) {
                prop_assert_eq!((&before.role, &before.name), (&after.role, &after.name));
                prop_assert_eq!(&before.tool_call_id, &after.tool_call_id);
                prop_assert_eq!(before.content.is_some(), after.content.is_some(), "a content was added or removed");
                prop_assert_eq!(before.function_call.is_some(), after.function_call.is_some());
                let ids = |message: &reading::Message| message.tool_calls.iter().map(|call| call.id.clone()).collect::<Vec<_>>();
                prop_assert_eq!(ids(before), ids(after));
                prop_assert!(after.observation.is_none(), "providers reject unknown members, so the tag must be removed");
            }
            Ok(())
        })?;
    }

    /// Promise 3: instructions, user and assistant messages, results that the policy protects, and everything from the last
    /// assistant message on are never masked or trimmed.
    #[test]
    fn protected_messages_are_never_masked_or_trimmed(scenario in scenario()) {
        play(&scenario, |exchange| {
            let tail = exchange.sent.iter().rposition(|sent| sent.speaker == Speaker::Assistant).unwrap_or(0);
            for (index, shape) in shapes(exchange)?.into_iter().enumerate() {
                if !shape.is_whole() {
                    prop_assert!(index < tail, "message {} is in the unresolved end", index);
                    prop_assert!(scenario.policy.may_mask(&exchange.sent[index]), "{:?}", exchange.sent[index]);
                }
            }
            Ok(())
        })?;
    }

    /// Promise 5: messages keep their order.
    #[test]
    fn messages_keep_their_order(scenario in scenario()) {
        play(&scenario, |exchange| {
            let request = Request::read(exchange.forwarded())?;
            let serials: Vec<usize> = request.messages.iter().map(|message| message.x_serial).collect();
            prop_assert_eq!(serials, (0..exchange.sent.len()).collect::<Vec<_>>());
            Ok(())
        })?;
    }

    /// Promise 6: the forwarded bytes, counted again from scratch, match the plan and fit the documented budget. A refused request
    /// would not fit even with every allowed mask.
    #[test]
    fn forwarded_requests_fit_and_refused_ones_cannot(scenario in scenario()) {
        let recount = Reader::default();
        play(&scenario, |exchange| {
            let plan = exchange.plan();
            let budget = scenario.policy.input_budget(scenario.max_tokens());
            prop_assert_eq!(plan.budget.input, Some(Tokens(budget)));
            if scenario.policy.observe || !scenario.policy.masks {
                return Ok(());
            }
            let counted = counts(exchange, exchange.forwarded(), &recount, exchange.factor);
            // Corrected counts are rounded up at each step between a message and what it can become, which may differ by two tokens.
            let counted = counted.iter().sum::<u64>() + exchange.assessment.chat.fixed.0;
            let slack = if exchange.factor == 1.0 { 0 } else { 2 * exchange.sent.len() as u64 };
            prop_assert!(counted.abs_diff(plan.after.0) <= slack, "{} {}", counted, plan.after);
            let fits = budget > 0 && plan.after.0 <= budget;
            prop_assert_eq!(plan.verdict == Verdict::Fits, fits);
            if !fits {
                prop_assert_eq!(plan.postponed, 0, "over budget although more could be masked");
                let window = scenario.policy.window.saturating_sub(scenario.max_tokens().unwrap_or(0));
                let window = scenario.policy.max_input.map_or(window, |most| window.min(most));
                let is_refused = plan.verdict == Verdict::Refused;
                prop_assert!(!is_refused || plan.after.0 > window || window == 0, "refused although it fits the window");
                let has_waypoint = exchange.assessment.decision.waypoint.is_some();
                prop_assert!(!is_refused || !has_waypoint, "a refused request left a waypoint");
            }
            Ok(())
        })?;
    }

    /// Promise 7: another process with the same state forwards the same bytes, and so does a later retry.
    #[test]
    fn the_same_request_gives_the_same_bytes(scenario in scenario()) {
        let other = Reader::default();
        play(&scenario, |exchange| {
            let (assessment, bytes) = exchange.again(&other, exchange.memory, exchange.now);
            prop_assert_eq!(&assessment.decision, &exchange.assessment.decision);
            prop_assert_eq!(bytes.as_slice(), exchange.forwarded());
            if let Some(waypoint) = exchange.assessment.decision.waypoint.clone() {
                let mut memory = exchange.memory.clone();
                memory.add(waypoint);
                for later in [0, 1_000, 100_000_000] {
                    let (_, bytes) = exchange.again(&other, &memory, exchange.now + later);
                    prop_assert_eq!(bytes.as_slice(), exchange.forwarded());
                }
            }
            Ok(())
        })?;
    }

    /// Promise 8: the forwarded prefix only changes with a decision.
    #[test]
    fn the_prefix_is_stable(scenario in scenario()) {
        let mut history = Vec::new();
        play(&scenario, |exchange| check_stable_prefix(exchange, &mut history))?;
    }

    /// Promise 8, for a model whose counts are corrected during the conversation. Each conversation is played under several
    /// corrections, because only results about as long as their placeholder are affected.
    #[test]
    fn the_prefix_is_stable_while_token_counts_are_corrected(
        scenario in scenario(),
        factors in prop::collection::vec(0.5f64..1.5, 12),
    ) {
        for factors in factors.chunks(3) {
            let scenario = scenario.clone().with_factors(factors.to_vec());
            let mut history = Vec::new();
            play(&scenario, |exchange| check_stable_prefix(exchange, &mut history))?;
        }
    }

    /// Promise 9: a masked or trimmed message has fewer tokens than before.
    #[test]
    fn every_edit_shrinks_its_message(scenario in scenario()) {
        let recount = Reader::default();
        play(&scenario, |exchange| {
            let before = counts(exchange, &exchange.body.bytes, &recount, 1.0);
            let after = counts(exchange, exchange.forwarded(), &recount, 1.0);
            for (index, shape) in shapes(exchange)?.into_iter().enumerate() {
                let (before, after) = (before[index], after[index]);
                prop_assert!(if shape.is_whole() { after == before } else { after < before }, "{} {} {}", index, before, after);
            }
            Ok(())
        })?;
    }

    /// Promise 9: exactly those masks are postponed that would cost more in lost cache hits than keeping the observations has cost.
    #[test]
    fn masks_are_postponed_until_they_pay(scenario in scenario()) {
        let mut rule = pricing::BreakEvenRule::default();
        play(&scenario, |exchange| rule.check(exchange))?;
    }
}

/// Counts the tokens of each message with a correction factor.
fn counts(exchange: &Exchange<'_>, body: &[u8], reader: &Reader, factor: f64) -> Vec<u64> {
    let outline = reader.outline(Dialect::Chat, body).unwrap();
    let (context, model) = (exchange.resolved.context.clone(), exchange.resolved.model.clone());
    let body = Bytes::copy_from_slice(body);
    let input = TurnInput {
        strategy: Strategy::Passthrough,
        factor,
        ..TurnInput::new(body, outline, context, model)
    };
    let assessment = input.assess(&ConversationState::default(), reader, Rule::Decide).unwrap();
    assessment.chat.messages.iter().map(|message| message.tokens.0).collect()
}

/// A forwarded request without its instructions, which may change at any time.
struct ForwardedRequest {
    sent: Vec<String>,
    shapes: Vec<Shape>,
}

/// Compares a request with the earlier ones that have at least as many messages in common with it as the longest one that it
/// continues as a whole: the provider has one of them in its cache. Without a new decision, the common messages are identical to
/// those of one of them; with one, they differ only in new masks and excerpts.
fn check_stable_prefix(
    exchange: &Exchange<'_>,
    history: &mut Vec<ForwardedRequest>,
) -> Result<(), TestCaseError> {
    let is_not_instruction = |sent: &&Sent| !sent.speaker.is_instruction();
    let texts: Vec<String> =
        exchange.sent.iter().filter(is_not_instruction).map(|sent| sent.spelled.text.clone()).collect();
    let all_shapes = shapes(exchange)?;
    let shapes: Vec<Shape> = exchange
        .sent
        .iter()
        .zip(all_shapes)
        .filter(|(sent, _)| is_not_instruction(sent))
        .map(|(_, shape)| shape)
        .collect();
    let common = |past: &ForwardedRequest| {
        texts.iter().zip(&past.sent).take_while(|(now, before)| now == before).count()
    };
    let continued =
        history.iter().filter(|past| texts.starts_with(&past.sent)).map(|past| past.sent.len()).max();
    if let Some(continued) = continued
        && exchange.plan().verdict == Verdict::Fits
    {
        let candidates =
            || history.iter().map(|past| (past, common(past))).filter(|(_, count)| *count >= continued);
        if exchange.plan().cause.is_none() {
            let is_same = candidates().any(|(past, count)| shapes[..count] == past.shapes[..count]);
            prop_assert!(is_same, "the prefix changed without a decision: {:?}", shapes);
        }
        let keeps_edits = |(past, count): (&ForwardedRequest, usize)| {
            shapes[..count].iter().zip(&past.shapes).all(|(now, before)| now >= before)
        };
        prop_assert!(candidates().any(keeps_edits), "an edit was taken back: {:?}", shapes);
    }
    if exchange.assessment.decision.waypoint.is_some() {
        history.push(ForwardedRequest { sent: texts, shapes });
    }
    Ok(())
}
