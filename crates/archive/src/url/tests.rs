use super::*;
use proptest::prelude::*;

const TIMEOUT: Duration = Duration::from_secs(5);

fn target(url: &str) -> Target {
    parse(url, TIMEOUT).unwrap()
}

#[test]
fn every_part_of_a_url_is_parsed() {
    let target =
        target("postgresql://tide:p%2F%3F%40s@db.internal:6000/notes?sslmode=disable&connect_timeout=9");
    let config = &target.config;
    assert_eq!((config.get_user(), config.get_password()), (Some("tide"), Some(&b"p/?@s"[..])));
    assert_eq!((config.get_dbname(), config.get_ports()), (Some("notes"), &[6000][..]));
    assert_eq!(config.get_ssl_mode(), SslMode::Disable);
    assert_eq!(config.get_connect_timeout(), Some(&Duration::from_secs(9)));
    assert_eq!(config.get_application_name(), Some("tidegate"));
    assert_eq!(target.server, "db.internal:6000");
}

#[test]
fn sslmode_selects_encryption_and_verification() {
    let parsed = |query: &str| {
        let target = target(&format!("postgres://u@db/x{query}"));
        (target.config.get_ssl_mode(), target.trust)
    };
    assert_eq!(parsed(""), (SslMode::Prefer, Trust::AnyCertificate));
    assert_eq!(parsed("?sslmode=prefer"), (SslMode::Prefer, Trust::AnyCertificate));
    assert_eq!(parsed("?sslmode=require"), (SslMode::Require, Trust::AnyCertificate));
    assert_eq!(parsed("?sslmode=verify-full"), (SslMode::Require, Trust::Verified(None)));
    let ca = Some("/etc/my ca.pem".into());
    assert_eq!(
        parsed("?sslmode=verify-full&sslrootcert=%2Fetc/my%20ca.pem"),
        (SslMode::Require, Trust::Verified(ca))
    );
}

#[test]
fn several_hosts_default_to_a_writable_one() {
    let several = target("postgres://u@a:1,b:2/x");
    assert_eq!(several.config.get_target_session_attrs(), TargetSessionAttrs::ReadWrite);
    assert_eq!(several.server, "a:1,b:2");
    assert_eq!(several.config.get_connect_timeout(), Some(&(TIMEOUT / 2)));
    let any = target("postgres://u@a,b/x?target_session_attrs=any");
    assert_eq!(any.config.get_target_session_attrs(), TargetSessionAttrs::Any);
    assert_eq!(any.server, "a:5432,b:5432");
    let one = target("postgres://u@[::1]/x");
    assert_eq!(one.config.get_target_session_attrs(), TargetSessionAttrs::Any);
    assert_eq!(one.server, "[::1]:5432");
}

#[test]
fn errors_name_the_problem_and_not_the_password() {
    for (url, expected) in [
        ("mysql://u:hunter2@db/x", "does not begin with `postgres://`"),
        ("u:hunter2@db", "does not begin with `postgres://`"),
        ("postgres://u:hunter2@/x", "names no host"),
        ("postgres://u:hunter2@db:port/x", "has an invalid `port`"),
        ("postgres://u:hunter2@db:99999/x", "has an invalid `port`"),
        ("postgres://u:hunter2@[::1/x", "has an invalid `host`"),
        ("postgres://u:hunter/2@db/x", "has an unescaped `@`"),
        ("postgres://u:hunter?2@db/x", "has an unescaped `@`"),
        ("postgres://u:hunter@2@db/x", "has an unescaped `@`"),
        ("postgres://u:hunter2@db/x?hunter2=1", "has an unknown option; expected one of `sslmode`"),
        ("postgres://u:hunter2@db/x?sslmode=hunter2", "has an invalid `sslmode`; expected `disable`"),
        ("postgres://u:hunter2@db/x?sslmode=require&sslrootcert=hunter2", "has `sslrootcert` without"),
        ("postgres://u:hunter2@db/x?connect_timeout=hunter2", "has an invalid `connect_timeout`"),
        ("postgres://u:hunter2@db/x?sslrootcert=%ffhunter2", "an escape that is not UTF-8"),
    ] {
        let text = parse(url, TIMEOUT).unwrap_err().to_string();
        assert!(text.contains(expected), "{url}: {text}");
        assert!(!text.contains("hunter"), "{text}");
    }
    assert!(!format!("{:?}", target("postgres://u:hunter2@db/x")).contains("hunter2"));
}

proptest! {
    #[test]
    fn no_error_quotes_a_password(password in "[!-~]{8,24}") {
        for url in [format!("postgres://u:{password}@db:5432/x"), format!("postgres://db/x?{password}")] {
            if let Err(error) = parse(&url, TIMEOUT) {
                let text = error.to_string();
                for start in 0..=password.len() - 5 {
                    let piece = &password[start..start + 5];
                    prop_assert!(!text.contains(piece), "{piece}: {text}");
                }
            }
        }
    }
}
