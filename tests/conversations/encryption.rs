//! With a key, nobody who reads the disk reads a conversation.

use crate::ask::told_by_store;
use crate::talk::{question, stored};
use std::path::Path;
use tempfile::TempDir;
use tidegate_testkit::MockUpstream;

const VARIABLE: &str = "TIDEGATE_STORE_KEY";
const CANARY: &str = "canary-7f3a the launch code is swordfish";

/// Whether the text is in any file below the directory.
fn holds(directory: &Path, text: &str) -> bool {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries.into_iter().any(|path| {
        if path.is_dir() {
            return holds(&path, text);
        }
        let bytes = std::fs::read(&path).unwrap();
        bytes.windows(text.len()).any(|window| window == text.as_bytes())
    })
}

/// Has one conversation under these keys, and stops.
async fn have(data: &TempDir, keys: Option<&str>, name: &str) {
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
async fn the_disk_holds_no_word_and_the_key_reads_them() {
    let (old, new) = ("01".repeat(32), "02".repeat(32));
    let data = TempDir::new().unwrap();
    have(&data, Some(&old), "before").await;
    assert!(!holds(data.path(), "swordfish"), "the question or its answer is readable on the disk");
    let show = |name, keys: &str| {
        let keys = keys.to_owned();
        let data = &data;
        async move { told_by_store(data, &["show", name], &[(VARIABLE, &keys)]).await }
    };
    assert!(show("before", &old).await.out.contains(CANARY));

    let rotated = format!("{new},{old}");
    have(&data, Some(&rotated), "after").await;
    for name in ["before", "after"] {
        let said = show(name, &rotated).await;
        assert!(said.code == Some(0) && said.out.contains(CANARY), "{name}: {said:?}");
    }
    assert!(show("after", &new).await.out.contains(CANARY), "the new key encrypts");
    assert!(!holds(data.path(), "swordfish"));

    let without = told_by_store(&data, &["show", "before"], &[]).await;
    assert_eq!(without.code, Some(0), "{without:?}");
    assert!(
        without.out.contains("2 cannot be read: 2 encrypted with a key that is not given"),
        "{}",
        without.out
    );
    assert!(!without.out.contains("swordfish"));
    let export = told_by_store(&data, &["export", "before"], &[]).await;
    assert_eq!((export.code, export.out.as_str()), (Some(0), ""), "{export:?}");
    assert!(export.err.contains("can be read"), "{}", export.err);
    let unusable = told_by_store(&data, &["show", "before"], &[(VARIABLE, "short")]).await;
    assert_eq!(unusable.code, Some(1), "{unusable:?}");
    assert!(unusable.err.contains(VARIABLE) && unusable.err.contains("openssl rand"), "{}", unusable.err);
}

#[tokio::test]
async fn without_a_key_it_is_there_in_the_clear() {
    let data = TempDir::new().unwrap();
    have(&data, None, "plain").await;
    assert!(holds(data.path(), "swordfish"), "or the test above proves nothing");
}
