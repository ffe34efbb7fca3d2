//! With a key, conversations are encrypted on disk.

use super::ask::run_on_directory;
use super::scene::{question, stored};
use std::path::Path;
use tempfile::TempDir;
use tidegate_testkit::MockUpstream;

const VARIABLE: &str = "TIDEGATE_STORE_KEY";
const CANARY: &str = "canary-7f3a the launch code is swordfish";

/// Returns whether any file below the directory contains the text.
fn contains_text(directory: &Path, text: &str) -> bool {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries.into_iter().any(|path| {
        if path.is_dir() {
            return contains_text(&path, text);
        }
        let bytes = std::fs::read(&path).unwrap();
        bytes.windows(text.len()).any(|window| window == text.as_bytes())
    })
}

/// Sends one conversation with these encryption keys, and stops the process.
async fn record(data: &TempDir, keys: Option<&str>, name: &str) {
    let upstream = MockUpstream::start().await;
    let mut setup = stored("", &upstream, data);
    if let Some(keys) = keys {
        setup = setup.env(VARIABLE, keys);
    }
    let tidegate = setup.start().await;
    question(&tidegate, &upstream, "sk-ada", name, CANARY).await;
    tidegate.stop().await;
}

#[tokio::test]
async fn content_on_disk_is_readable_only_with_the_key() {
    let (old, new) = ("01".repeat(32), "02".repeat(32));
    let data = TempDir::new().unwrap();
    record(&data, Some(&old), "before").await;
    assert!(!contains_text(data.path(), "swordfish"), "the question or its answer is readable on disk");
    let show = |name, keys: &str| {
        let keys = keys.to_owned();
        let data = &data;
        async move { run_on_directory(data, &["show", name], &[(VARIABLE, &keys)]).await }
    };
    assert!(show("before", &old).await.out.contains(CANARY));

    let rotated = format!("{new},{old}");
    record(&data, Some(&rotated), "after").await;
    for name in ["before", "after"] {
        let output = show(name, &rotated).await;
        assert!(output.code == Some(0) && output.out.contains(CANARY), "{name}: {output:?}");
    }
    assert!(show("after", &new).await.out.contains(CANARY), "the new key is not used");
    assert!(!contains_text(data.path(), "swordfish"));

    let without = run_on_directory(&data, &["show", "before"], &[]).await;
    assert_eq!(without.code, Some(0), "{without:?}");
    assert!(
        without.out.contains("2 cannot be read: 2 encrypted with a key that is not configured"),
        "{}",
        without.out
    );
    assert!(!without.out.contains("swordfish"));
    let export = run_on_directory(&data, &["export", "before"], &[]).await;
    assert_eq!((export.code, export.out.as_str()), (Some(0), ""), "{export:?}");
    assert!(export.err.contains("can be read"), "{}", export.err);
    let unusable = run_on_directory(&data, &["show", "before"], &[(VARIABLE, "short")]).await;
    assert_eq!(unusable.code, Some(1), "{unusable:?}");
    assert!(unusable.err.contains(VARIABLE) && unusable.err.contains("openssl rand"), "{}", unusable.err);
}

#[tokio::test]
async fn without_a_key_content_is_stored_in_clear_text() {
    let data = TempDir::new().unwrap();
    record(&data, None, "plain").await;
    assert!(contains_text(data.path(), "swordfish"), "the search does not find clear text");
}

const PINNED: &str = "canary-91bc the harbour is called Ostrich";

#[tokio::test]
async fn pinned_memory_is_encrypted() {
    let (old, new) = ("01".repeat(32), "02".repeat(32));
    let data = TempDir::new().unwrap();
    record(&data, Some(&old), "n").await;
    let set = run_on_directory(&data, &["memory", "n", "--set", PINNED], &[(VARIABLE, &old)]).await;
    assert_eq!((set.code, set.err.as_str()), (Some(0), ""), "{set:?}");
    assert!(!contains_text(data.path(), "Ostrich"), "the memory is readable on disk");
    for keys in [&old, &format!("{new},{old}")] {
        let output = run_on_directory(&data, &["memory", "n"], &[(VARIABLE, keys)]).await;
        assert_eq!((output.code, output.out), (Some(0), format!("{PINNED}\n")));
    }

    for (env, reason) in
        [(&[][..], "encrypted with a key that is not configured"), (&[(VARIABLE, new.as_str())], "encrypted")]
    {
        let without = run_on_directory(&data, &["memory", "n"], env).await;
        assert_eq!((without.code, without.out.as_str()), (Some(1), ""), "{without:?}");
        assert!(without.err.contains("cannot be read") && without.err.contains(reason), "{}", without.err);
        let shown = run_on_directory(&data, &["show", "n"], env).await;
        assert!(shown.code == Some(0) && shown.out.contains("memory\n  cannot be read: "), "{shown:?}");
        assert!(!shown.out.contains("Ostrich"));
    }

    let replaced = run_on_directory(&data, &["memory", "n", "--set", PINNED], &[]).await;
    assert_eq!(replaced.code, Some(0), "{replaced:?}");
    assert!(contains_text(data.path(), "Ostrich"), "the search does not find clear text");
}
