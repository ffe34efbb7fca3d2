//! Counts are equal to those of the reference tokenizer.

use proptest::prelude::*;
use tidegate_engine::Tokens;
use tidegate_tokens::{Encoding, count};
use tiktoken_rs::{CoreBPE, cl100k_base_singleton, o200k_base_singleton, o200k_harmony_singleton};

fn encodings() -> [(Encoding, &'static CoreBPE); 3] {
    [
        (Encoding::O200k, o200k_base_singleton()),
        (Encoding::O200kHarmony, o200k_harmony_singleton()),
        (Encoding::Cl100k, cl100k_base_singleton()),
    ]
}

#[track_caller]
fn check(text: &str) {
    for (encoding, reference) in encodings() {
        let expected = Tokens(reference.encode_ordinary(text).len() as u64);
        assert_eq!(count(encoding, text), expected, "{encoding} of {text:?}");
    }
}

#[test]
fn prose() {
    check("");
    check("The tide comes in, and it doesn't ask; WE'LL see what's left of the shore by 10:45, won't we?");
    check(
        "Größe, naïveté, Ærøskøbing. Съешь ещё этих мягких французских булок. Ξεσκεπάζω την ψυχοφθόρα βδελυγμία.",
    );
}

#[test]
fn code_and_json() {
    check(
        "fn main() {\n\tlet xs: Vec<u64> = (0..1_000).map(|x| x * x).collect();\r\n    println!(\"{xs:?}\");\n}\n\n\n",
    );
    check(
        r#"{"id":"call_9f3","arguments":"{\"city\":\"Z\\u00fcrich\",\"days\":[1,2,3]}","t":1.25e-9,"n":null}"#,
    );
    check("https://example.com/a//b?c=d&e=%20f#g <div class='x'>&amp;</div> 0xDEADBEEF ../../etc 1234567890");
}

#[test]
fn scripts_without_spaces_and_emoji() {
    check("吾輩は猫である。名前はまだ無い。人之初，性本善。안녕하세요 세계");
    check("👩‍👩‍👧‍👦🏳️‍🌈 ok 👍🏽👍🏽 e\u{301}\u{302} \u{200b}\u{feff}ﬁ ǅ ʰABC नमस्ते สวัสดี");
}

#[test]
fn runs_of_white_space() {
    for run in [" ", "\n", "\t", "\r\n", " \n", "\u{a0}", "\u{3000} "] {
        for length in [1, 2, 3, 7, 64, 129] {
            let run = run.repeat(length);
            check(&run);
            check(&format!("a{run}b{run}"));
            check(&format!("{run}1{run}\n!"));
        }
    }
}

#[test]
fn text_that_looks_like_a_special_token() {
    for text in [
        "<|endoftext|>",
        "<|im_start|>user<|im_sep|>",
        "a<|endofprompt|>b",
        "<|fim_prefix|> <|",
        "[INST]</s>",
    ] {
        check(text);
    }
}

#[test]
fn runs_of_one_character() {
    for character in ["a", "A", "0", "=", "é", "字", "🙂", "\0"] {
        check(&character.repeat(1_000));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn any_text(text in any::<String>()) {
        check(&text);
    }

    #[test]
    fn text_of_awkward_pieces(text in proptest::collection::vec(
        prop_oneof![
            Just(" "), Just("  "), Just("\n"), Just("\r"), Just("\t"), Just("'s"), Just("'LL"), Just("ʰ"), Just("A"), Just("bc"),
            Just("ǅ"), Just("\u{301}"), Just("12"), Just("3"), Just("/"), Just("!="), Just("字"), Just("\u{a0}"), Just("🙂"),
        ],
        0..60,
    )) {
        check(&text.concat());
    }
}
