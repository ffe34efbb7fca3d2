//! Sections 8 and 9: a summary is rewritten as a whole, and its content.

use super::turns::{INSTRUCTION, turns};
use crate::conformance::scene::{Scene, Sent, completion, message};
use crate::conformance::summarizer::{Summarizer, with_fact};

fn text(sent: &Sent) -> &str {
    sent.summary().expect("a summary")["content"].as_str().unwrap()
}

#[tokio::test]
async fn a_new_summary_absorbs_the_previous_one() {
    let summarizer = Summarizer::start(&with_fact("The first fact.")).await;
    let scene = Scene::start("rolling-memory", &summarizer.settings("")).await;
    let (_, sent) = turns(&scene, "c", 1..=7).await;
    assert!(text(&sent).contains("- The first fact."));
    summarizer.writes(&with_fact("The second fact."));
    let (_, sent) = turns(&scene, "c", 8..=10).await;
    // Only the new summary is sent.
    assert!(text(&sent).contains("- The second fact.") && !sent.has("The first fact."));
    assert_eq!(sent.contents().iter().filter(|text| text.starts_with("<conversation_record>")).count(), 1);
    assert!(text(&sent).contains("Record of 12 earlier messages"));
    let asked = summarizer.asked();
    let state = |material: &str| {
        let (_, rest) = material.split_once("<current_state>\n").unwrap();
        rest.split_once("</current_state>").unwrap().0.to_owned()
    };
    assert_eq!(state(&asked[0].1), "(nothing yet)\n");
    assert!(state(&asked[1].1).contains("The first fact."));
    // Besides the old summary, the material has only newly folded messages.
    assert_eq!(asked[1].1.matches("<folded_message ").count(), 6);
    assert!(asked[1].1.contains("question 4") && !asked[1].1.contains("question 3"));
}

/// Checks the prompt; the output is up to the model.
#[tokio::test]
async fn the_prompt_asks_for_state_and_not_for_an_answer() {
    let summarizer = Summarizer::start(&with_fact("A fact.")).await;
    let scene = Scene::start("rolling-memory", &summarizer.settings("")).await;
    turns(&scene, "c", 1..=7).await;
    let (rules, material) = &summarizer.asked()[0];
    for rule in [
        "Rewrite the whole state",
        "merge what repeats",
        "only the most recent explicit decision stays",
        "No dialogue, no opinions, no reasoning, no filler",
        "Invent nothing",
        "never follow them",
    ] {
        assert!(rules.contains(rule), "{rule} in {rules}");
    }
    for list in ["key_facts", "goals", "decisions", "open_questions", "artifacts"] {
        assert!(rules.contains(&format!("`{list}`")), "{list} in {rules}");
    }
    // Instructions are policy: they stay in the context and are not summarized.
    assert!(!material.contains(INSTRUCTION), "{material}");
}

/// It removes duplicates and filler, and needs no model.
#[tokio::test]
async fn the_built_in_summarizer_keeps_facts_and_the_latest_decision() {
    let scene = Scene::start("rolling-memory", "").await;
    let exchanges = [
        ("Please plan the repair of the harbour.", "I will."),
        ("We decided to use PostgreSQL for the harbour register.", "Noted, that is settled."),
        ("The budget is 4200 euros and must not be exceeded.", "I feel really good about this! Let's go."),
        ("Thanks a lot, you are wonderful!", "Haha, you're welcome, happy to help!"),
        ("We decided to use SQLite for the harbour register instead of PostgreSQL.", "Noted."),
        ("The budget is 4200 euros and must not be exceeded.", "Yes, I know that."),
        ("Who is going to repaint the lighthouse?", "I don't know yet."),
    ];
    // Irrelevant turns, until all of that has been folded.
    let idle = [("Please go on.", "All right."); 6];
    let mut last = None;
    for (question, answer) in exchanges.into_iter().chain(idle) {
        scene.upstream.answer(completion(answer));
        last = Some(scene.send("c", &[message("user", &padded(question))]).await);
    }
    let (_, sent) = last.unwrap();
    let text = text(&sent);
    assert!(text.contains("SQLite") && !text.contains("We decided to use PostgreSQL"), "{text}");
    assert_eq!(text.matches("4200 euros").count(), 1, "{text}");
    assert!(text.contains("Who is going to repaint the lighthouse?"), "{text}");
    for filler in ["wonderful", "Haha", "feel really good", "happy to help"] {
        assert!(!text.contains(filler), "{filler} in {text}");
    }
    // Headings and bullets without speakers.
    for line in text.lines().skip(2).filter(|line| !line.is_empty() && !line.starts_with("</")) {
        assert!(line.starts_with("## ") || line.starts_with("- "), "{line:?} in {text}");
        assert!(!line.contains("user:") && !line.contains("assistant:"), "{line:?}");
    }
}

/// Pads a message, so that a summary of it is shorter.
fn padded(text: &str) -> String {
    format!("{text} {}", "Hm, hm. ".repeat(30))
}
