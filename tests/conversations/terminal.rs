//! The content of a conversation cannot control the terminal.

use super::ask::{conversations, json, output_of, until_counted};
use super::scene::{in_memory, question};
use tidegate_testkit::MockUpstream;

#[tokio::test]
async fn escape_sequences_are_printed_escaped() {
    let upstream = MockUpstream::start().await;
    let tidegate = in_memory("", &upstream).start().await;
    let hostile = "clear \u{1b}[2J title \u{1b}]0;owned\u{7} back\r csi \u{9b}31m turn \u{202e}txt.exe";
    question(&tidegate, &upstream, "sk-ada", "hostile", hostile).await;
    until_counted(&tidegate, 1).await;
    let page = json(&tidegate, "/api/conversations/hostile/messages").await;
    assert_eq!(page["messages"][0]["message"]["content"], hostile, "the API changed the text");
    for args in [&["show", "hostile"][..], &["show", "hostile", "--full"]] {
        let shown = output_of(&tidegate, args).await;
        let is_control = |letter: char| (letter.is_control() && letter != '\n') || letter == '\u{202e}';
        assert!(!shown.contains(is_control), "{shown:?}");
        assert!(
            shown.contains("clear \\u{1b}[2J title \\u{1b}]0;owned\\u{7} back\\u{d} csi \\u{9b}31m"),
            "{shown}"
        );
    }
}

#[tokio::test]
async fn help_has_examples_and_wrong_usage_is_refused() {
    let help = conversations(&["--help"], &[]).await;
    assert_eq!(help.code, Some(0));
    for text in [
        "list",
        "show",
        "export",
        "memory",
        "delete",
        "Examples:",
        "Exit codes:",
        "the first 6 or more of them",
    ] {
        assert!(help.out.contains(text), "{text} in {}", help.out);
    }
    let export = conversations(&["export", "--help"], &[]).await;
    assert!(export.out.contains("NAME#2") && export.out.contains("incomplete"), "{}", export.out);
    let memory = conversations(&["memory", "--help"], &[]).await;
    for text in ["--set", "--file", "--clear", "## Your Memory", "64 KiB", "Examples:"] {
        assert!(memory.out.contains(text), "{text} in {}", memory.out);
    }
    for wrong in [
        &["memory"][..],
        &["memory", "x", "--set", "a", "--clear"],
        &["memory", "x", "--set", "a", "--file", "b"],
        &["show", "x", "--turns", "--json"],
    ] {
        assert_eq!(conversations(wrong, &[]).await.code, Some(2), "{wrong:?}");
    }
    for wrong in [&["shwo"][..], &["show"], &["list", "--limit", "0"], &["show", "x", "--json", "--full"]] {
        assert_eq!(conversations(wrong, &[]).await.code, Some(2), "{wrong:?}");
    }
}
