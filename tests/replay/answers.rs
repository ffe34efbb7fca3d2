//! The comparison of policies.

use super::command::{figures, policy, replay};
use tidegate_testkit::Trajectory;

fn runs(turns: usize) -> Vec<String> {
    let shape = Trajectory { turns, output: 400.0, system: 1_200, ..Trajectory::default() };
    (1..=4).map(|seed| shape.line(seed)).collect()
}

fn ratio(found: &serde_json::Value, price: usize, name: &str) -> f64 {
    policy(found, price, name)["ratio_to_raw"].as_f64().unwrap()
}

#[test]
fn break_even_is_the_cheapest_pace_at_every_cache_price() {
    let found = figures(None, &runs(60), &["--price", "1,0.5,0.1,0.1/1.25"]);
    assert_eq!((&found["conversations"], &found["requests"]), (&4.into(), &244.into()));
    for price in 0..4 {
        let [own, every_turn, batch] = ["masking:break_even", "masking:every_turn", "masking:batch=10"]
            .map(|name| ratio(&found, price, name));
        // A fixed batch can be cheaper by chance, but by at most two percent.
        assert!(own <= every_turn && own <= batch * 1.02 && own < 1.0, "{price}: {own} {every_turn} {batch}");
    }
    // At a tenth of the price, a rolling window costs more than it saves.
    assert!(ratio(&found, 2, "masking:every_turn") > 1.5);
    assert_eq!(ratio(&found, 0, "raw"), 1.0);
}

#[test]
fn the_table_has_a_row_for_each_policy_and_states_assumptions() {
    let output = replay(None, &runs(20), &["--price", "0.1"]);
    assert_eq!((output.code, output.err.as_str()), (Some(0), ""));
    for part in [
        "4 conversations, 84 requests, gpt-4o",
        "assuming 30s between requests",
        "shorter than",
        "10m",
        "cached input ×0.1",
    ] {
        assert!(output.out.contains(part), "{part} is not in:\n{}", output.out);
    }
    let rows = output.out.lines().map(|line| line.split_whitespace().next().unwrap_or_default());
    let rows: Vec<&str> = rows.skip_while(|first| *first != "policy").skip(1).collect();
    let names = [
        "raw",
        "masking:every_turn",
        "masking:batch=10",
        "masking:break_even",
        "masking+trim",
        "summarization",
        "hybrid",
        "window",
        "coding-agent",
    ];
    assert_eq!(rows, names);
}

#[test]
fn the_recommendation_is_the_cheapest_valid_configuration() {
    let lines = runs(60);
    let found = figures(
        None,
        &lines,
        &["--price", "0.1", "--recommend", "--keep-at-least", "5", "--only", "masking"],
    );
    let best = &found["prices"][0]["recommended"];
    let (name, own) = (best["policy"].as_str().unwrap(), best["ratio_to_raw"].as_f64().unwrap());
    for other in found["prices"][0]["policies"].as_array().unwrap() {
        let other_name = other["policy"].as_str().unwrap();
        let is_allowed = other_name.starts_with("masking") && !other_name.ends_with("@3");
        assert!(
            !is_allowed || other["ratio_to_raw"].as_f64().unwrap() >= own,
            "{other_name} is cheaper than {name}"
        );
    }
    // With the snippet as its configuration, the route has the cost that was promised.
    let snippet = best["snippet"].as_str().unwrap();
    let again = figures(Some(snippet), &lines, &["--price", "0.1", "--policy", "route:default"]);
    assert_eq!(ratio(&again, 0, "route:default"), own, "{snippet}");
    let nothing = replay(None, &lines, &["--recommend", "--peak", "10"]);
    assert!(nothing.out.contains("recommended: nothing"), "{}", nothing.out);
}

#[test]
fn a_window_below_the_configured_one_is_recommended_only_if_asked_for() {
    let lines = runs(60);
    let kept = |args: &[&str]| {
        let found =
            figures(None, &lines, &[&["--price", "0.1", "--recommend", "--only", "masking"], args].concat());
        let name = found["prices"][0]["recommended"]["policy"].as_str().unwrap().to_owned();
        name.split_once('@').map_or(10, |(_, turns)| turns.parse::<u32>().unwrap())
    };
    assert!(kept(&[]) >= 10);
    assert!(kept(&["--windows", "3,5"]) < 10);
    assert!(kept(&["--keep-at-least", "3"]) < 10);
}

#[test]
fn a_run_with_nothing_to_mask_hints_at_the_pattern_of_text_protocols() {
    let text = |role: &str, number: usize| serde_json::json!({ "role": role, "content": format!("{role} {number}: {}", "word ".repeat(60)) });
    let messages: Vec<_> =
        (0..30).flat_map(|number| [text("user", number), text("assistant", number)]).collect();
    let line = serde_json::json!({ "id": "text", "model": "gpt-4o", "messages": messages }).to_string();
    let hints =
        |line: String| figures(None, &[line], &[])["notes"].to_string().contains("observations.user_pattern");
    assert!(hints(line));
    assert!(!hints(runs(20).remove(0)));
}

#[test]
fn a_gap_longer_than_the_cache_lifetime_makes_every_request_a_miss() {
    let found = figures(None, &runs(20), &["--gap", "11m"]);
    assert_eq!(policy(&found, 0, "raw")["tokens_cached"], 0);
    assert_eq!(
        policy(&found, 0, "masking:break_even")["tokens_sent"],
        policy(&found, 0, "masking:every_turn")["tokens_sent"]
    );
}

#[test]
fn an_unknown_model_has_no_cost_but_is_compared() {
    let found = figures(None, &runs(20), &["--model", "my-own-model", "--price", "0.1"]);
    assert!(policy(&found, 0, "raw")["cost_usd"].is_null());
    assert!(ratio(&found, 0, "masking:every_turn") > 0.0);
    assert!(found["notes"].to_string().contains("`my-own-model`"), "{}", found["notes"]);
}

#[test]
fn the_built_in_summarizer_replaces_an_llm_with_a_note() {
    let config = "[summarizers.small]\nkind = \"llm\"\nmodel = \"gpt-5-mini\"\n[context]\nstrategy = \"hybrid\"\n\
                  [context.fold]\nsummarizer = \"small\"\nwhen = { turns = 5 }\n";
    let found = figures(Some(config), &runs(20), &["--policy", "route:default"]);
    assert!(found["notes"].to_string().contains("built-in one"), "{}", found["notes"]);
    assert!(policy(&found, 0, "route:default")["summaries"].as_u64() > Some(3));
}
