//! The offline crates depend on no network or database library.

use std::process::Command;

#[test]
fn offline_crates_depend_on_no_network_or_database_library() {
    for package in ["tidegate-context", "tidegate-explain", "tidegate-replay"] {
        let arguments = ["tree", "--offline", "--edges", "normal", "--prefix", "none", "--package", package];
        let output = Command::new(env!("CARGO")).args(arguments).output();
        let output = output.unwrap_or_else(|error| panic!("cargo tree: {error}"));
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let tree = String::from_utf8_lossy(&output.stdout);
        assert!(tree.contains("tidegate-engine"), "{tree}");
        for forbidden in [
            "hyper",
            "redis",
            "redb",
            "tokio",
            "tokio-postgres",
            "rustls",
            "tidegate-proxy",
            "tidegate-store",
        ] {
            let is_used = tree.lines().any(|line| line.split(' ').next() == Some(forbidden));
            assert!(!is_used, "{package} depends on {forbidden}:\n{tree}");
        }
    }
}
