use super::*;
use proptest::prelude::*;

const TIMEOUT: Duration = Duration::from_secs(5);

fn target(url: &str) -> Target {
    parse(url, TIMEOUT).unwrap()
}

#[test]
fn everything_that_a_url_says_is_heard() {
    let target =
        target("postgresql://tide:p%2F%3F%40s@db.internal:6000/notes?sslmode=disable&connect_timeout=9");
    let config = &target.config;
    assert_eq!((config.get_user(), config.get_password()), (Some("tide"), Some(&b"p/?@s"[..])));
    assert_eq!((config.get_dbname(), config.get_ports()), (Some("notes"), &[6000][..]));
    assert_eq!(config.get_ssl_mode(), SslMode::Disable);
    assert_eq!(config.get_connect_timeout(), Some(&Duration::from_secs(9)));
    assert_eq!(config.get_application_name(), Some("tidegate"));
    assert_eq!(target.place, "db.internal:6000");
}

#[test]
fn the_mode_says_whether_there_is_tls_and_whom_it_trusts() {
    let read = |query: &str| {
        let target = target(&format!("postgres://u@db/x{query}"));
        (target.config.get_ssl_mode(), target.trust)
    };
    assert_eq!(read(""), (SslMode::Prefer, Trust::Anybody));
    assert_eq!(read("?sslmode=prefer"), (SslMode::Prefer, Trust::Anybody));
    assert_eq!(read("?sslmode=require"), (SslMode::Require, Trust::Anybody));
    assert_eq!(read("?sslmode=verify-full"), (SslMode::Require, Trust::Verified(None)));
    let ca = Some("/etc/my ca.pem".into());
    assert_eq!(
        read("?sslmode=verify-full&sslrootcert=%2Fetc/my%20ca.pem"),
        (SslMode::Require, Trust::Verified(ca))
    );
}

#[test]
fn of_several_hosts_one_that_takes_writes_is_wanted() {
    let several = target("postgres://u@a:1,b:2/x");
    assert_eq!(several.config.get_target_session_attrs(), TargetSessionAttrs::ReadWrite);
    assert_eq!(several.place, "a:1,b:2");
    assert_eq!(several.config.get_connect_timeout(), Some(&(TIMEOUT / 2)));
    let any = target("postgres://u@a,b/x?target_session_attrs=any");
    assert_eq!(any.config.get_target_session_attrs(), TargetSessionAttrs::Any);
    assert_eq!(any.place, "a:5432,b:5432");
    let one = target("postgres://u@[::1]/x");
    assert_eq!(one.config.get_target_session_attrs(), TargetSessionAttrs::Any);
    assert_eq!(one.place, "[::1]:5432");
}

#[test]
fn what_is_wrong_is_named_and_the_password_is_not() {
    for (url, expected) in [
        ("mysql://u:hunter2@db/x", "does not begin with `postgres://`"),
        ("u:hunter2@db", "does not begin with `postgres://`"),
        ("postgres://u:hunter2@/x", "names no host"),
        ("postgres://u:hunter2@db:port/x", "has a value for `port` that cannot be one"),
        ("postgres://u:hunter2@db:99999/x", "has a value for `port` that cannot be one"),
        ("postgres://u:hunter2@[::1/x", "cannot be"),
        ("postgres://u:hunter/2@db/x", "has an `@` where none can be"),
        ("postgres://u:hunter?2@db/x", "has an `@` where none can be"),
        ("postgres://u:hunter@2@db/x", "has an `@` where none can be"),
        ("postgres://u:hunter2@db/x?hunter2=1", "has an option that is not one of `sslmode`"),
        ("postgres://u:hunter2@db/x?sslmode=hunter2", "has an option `sslmode` that is not `disable`"),
        ("postgres://u:hunter2@db/x?sslmode=require&sslrootcert=hunter2", "has `sslrootcert`, which only"),
        ("postgres://u:hunter2@db/x?connect_timeout=hunter2", "has a value for `connect_timeout`"),
        ("postgres://u:hunter2@db/x?sslrootcert=%ffhunter2", "is not UTF-8"),
    ] {
        let text = parse(url, TIMEOUT).unwrap_err().to_string();
        assert!(text.contains(expected), "{url}: {text}");
        assert!(!text.contains("hunter"), "{text}");
    }
    assert!(!format!("{:?}", target("postgres://u:hunter2@db/x")).contains("hunter2"));
}

proptest! {
    #[test]
    fn whatever_a_password_holds_no_error_repeats_it(password in "[!-~]{8,24}") {
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
