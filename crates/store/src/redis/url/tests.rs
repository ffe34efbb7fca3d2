use super::*;

fn address(host: &str, port: u16) -> Address {
    Address { host: host.to_owned(), port }
}

fn login(user: &str, password: &str) -> Login {
    let some = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    Login { user: some(user), password: some(password) }
}

#[test]
fn a_single_server_is_parsed() {
    let plain = parse("redis://cache").unwrap();
    let layout = Layout::Single(address("cache", 6379));
    assert_eq!(plain, Target { layout, login: Login::default(), db: 0, tls: None });
    let full = parse("rediss://tide:p%2Fq@[::1]:7000/3?ca=/etc/ca.pem&cert=c.pem&key=k.pem").unwrap();
    assert_eq!(full.layout, Layout::Single(address("::1", 7000)));
    assert_eq!((full.login, full.db), (login("tide", "p/q"), 3));
    let files =
        TlsFiles { ca: Some("/etc/ca.pem".into()), cert: Some("c.pem".into()), key: Some("k.pem".into()) };
    assert_eq!(full.tls, Some(files));
    assert_eq!(parse("redis://:secret@h").unwrap().login, login("", "secret"));
    assert_eq!(parse("redis://h/").unwrap().db, 0);
}

#[test]
fn sentinels_and_their_master_are_parsed() {
    let url = "redis+sentinel://tide:pw@a,b:1,c/main/2?sentinel_user=s&sentinel_password=t%26&tls=true";
    let target = parse(url).unwrap();
    let sentinels = vec![address("a", 26_379), address("b", 1), address("c", 26_379)];
    let layout = Layout::Sentinel { sentinels, login: login("s", "t&"), master: "main".to_owned() };
    assert_eq!(target, Target { layout, login: login("tide", "pw"), db: 2, tls: Some(TlsFiles::default()) });
}

#[test]
fn the_seeds_of_a_cluster_are_parsed() {
    let target = parse("redis+cluster://tide:pw@a,b:7001").unwrap();
    assert_eq!(target.layout, Layout::Cluster { seeds: vec![address("a", 6379), address("b", 7001)] });
    assert_eq!(target.login, login("tide", "pw"));
}

#[test]
fn errors_name_the_problem_and_not_the_password() {
    for (url, expected) in [
        ("hunter2", "has no `://`"),
        ("http://hunter2", "does not begin with"),
        ("redis://", "names no host"),
        ("redis://u:p@:6379", "names no host"),
        ("redis://u:hunter2/x@host", "an invalid port"),
        ("redis://hunter2@host", "no `:` before the password"),
        ("redis://h:99999", "an invalid port"),
        ("redis://h:0", "an invalid port"),
        ("redis://[::1", "without a `]`"),
        ("redis://[::1]hunter2", "an invalid port"),
        ("redis://u:9/hunter2@host", "an invalid database number"),
        ("redis://u:p?hunter2@host", "an unknown option"),
        ("redis://u:%hunter2@host", "two hexadecimal digits"),
        ("redis://u:%ff@host", "an escape that is not UTF-8"),
        ("redis://h?ca=x", "does not enable TLS"),
        ("redis://h?tls=true", "use `rediss://` instead"),
        ("rediss://h?tls=false", "has `tls=false`"),
        ("rediss://h?tls=hunter2", "expected `true` or `false`"),
        ("rediss://h?cert=x", "only one of"),
        ("redis://h?sentinel_user=x", "sentinel credentials"),
        ("redis+sentinel://a,b,c", "names no master"),
        ("redis+cluster://a,,b", "names no host"),
        ("redis+cluster://a/1", "only database 0"),
    ] {
        let text = parse(url).unwrap_err().to_string();
        assert!(text.contains(expected), "{url}: {text}");
        assert!(!text.contains("hunter2"), "{text}");
    }
}

#[test]
fn debug_output_omits_passwords() {
    let target = parse("redis+sentinel://u:hunter2@a/m?sentinel_password=hunter2").unwrap();
    assert!(!format!("{target:?}").contains("hunter2"));
}

#[test]
fn addresses_print_as_they_are_written() {
    assert_eq!(address("::1", 5).to_string(), "[::1]:5");
    assert_eq!(address("a.example", 5).to_string(), "a.example:5");
}
