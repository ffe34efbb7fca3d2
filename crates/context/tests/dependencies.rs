//! The crates that work offline have nothing below them that talks to a network or a database.

use std::process::Command;

#[test]
fn offline_crates_have_no_network_and_no_database_below_them() {
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
            let is_there = tree.lines().any(|line| line.split(' ').next() == Some(forbidden));
            assert!(!is_there, "{forbidden} is below {package}:\n{tree}");
        }
    }
}
