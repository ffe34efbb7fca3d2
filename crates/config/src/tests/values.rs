use super::{loaded, unset};
use crate::{AllowHeaders, Flags, JsonSchema, Source, StoreUrl, Summarizer, load};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tidegate_engine::{FoldPace, Strategy, Tokens};

#[test]
fn without_a_file_there_is_one_default_route() {
    let settings = load(Source::none(), &Flags::default(), &unset).unwrap();
    let [route] = settings.routes.as_slice() else { panic!("{:?}", settings.routes) };
    assert_eq!(route.name, "default");
    assert_eq!(route.context.strategy, Strategy::Masking);
    let matches = |path: &str| route.matcher.paths.iter().any(|glob| glob.matches(path));
    assert!(matches("/v1/chat/completions"));
    assert!(matches("/openai/deployments/gpt/chat/completions"));
    assert!(!matches("/v1/embeddings"));
    assert!(settings.warnings.is_empty());
}

#[test]
fn paths_are_relative_to_the_directory_of_the_file() {
    let text =
        "[server.tls]\ncert = \"tls/a.pem\"\nkey = \"/etc/a.key\"\n[upstreams.default]\nca = \"ca.pem\"\n";
    let settings = load(Source::new("/etc/tidegate/proxy.toml", text), &Flags::default(), &unset).unwrap();
    let tls = settings.server.tls.unwrap();
    assert_eq!(tls.cert, Path::new("/etc/tidegate/tls/a.pem"));
    assert_eq!(tls.key, Path::new("/etc/a.key"));
    assert_eq!(settings.upstreams["default"].ca.as_deref(), Some(Path::new("/etc/tidegate/ca.pem")));
}

#[test]
fn parses_upstream_urls() {
    let url = |text: &str| {
        let settings = loaded(&format!("[upstreams.default]\nurl = \"{text}\"\n"));
        let url = &settings.upstreams["default"].url;
        (url.https, url.authority.clone(), url.path.clone())
    };
    assert_eq!(url("https://api.example.com/"), (true, "api.example.com".into(), String::new()));
    assert_eq!(url("http://127.0.0.1:8000/a/b/"), (false, "127.0.0.1:8000".into(), "/a/b".into()));
    assert_eq!(url("http://[::1]:8000"), (false, "[::1]:8000".into(), String::new()));
}

#[test]
fn parses_store_urls() {
    for (text, url) in [
        ("memory:", StoreUrl::Memory),
        ("embedded:data/dir", StoreUrl::Embedded(PathBuf::from("data/dir"))),
        ("rediss://cache:6380/1", StoreUrl::Redis("rediss://cache:6380/1".into())),
        ("redis+sentinel://a,b/main", StoreUrl::Sentinel("redis+sentinel://a,b/main".into())),
        ("redis+cluster://a,b", StoreUrl::Cluster("redis+cluster://a,b".into())),
    ] {
        let settings = loaded(&format!("[store]\nurl = \"{text}\"\n"));
        assert_eq!(settings.store.url, url);
        assert_eq!(settings.store.url.to_string(), text);
        assert!(settings.warnings.is_empty(), "{:?}", settings.warnings);
    }
}

#[test]
fn a_route_that_never_matches_is_a_warning() {
    let settings = loaded(
        "[[routes]]\nname = \"gpt\"\nmatch = { models = \"gpt-*\" }\n\
        [[routes]]\nname = \"mini\"\nmatch = { models = [\"gpt-*-mini\", \"gpt-5\"], headers = { X-Team = \"a\" } }\n\
        [[routes]]\nname = \"rest\"\n",
    );
    assert_eq!(settings.warnings, ["proxy.toml:4: route `mini` never matches, because `gpt` matches first"]);
    assert_eq!(settings.routes[1].matcher.headers[0].0, "x-team");

    let narrow = "[[routes]]\nmatch = { headers = { x-a = \"*\" } }\n[[routes]]\n";
    assert!(loaded(narrow).warnings.is_empty());
}

#[test]
fn parses_allowed_headers() {
    let allow =
        |list: &str| loaded(&format!("[context]\nallow_headers = {list}\n")).routes[0].context.allow_headers;
    assert_eq!(allow("[]"), AllowHeaders { strategy: false, bypass: false });
    assert_eq!(allow("[\"X-Tidegate-Bypass\"]"), AllowHeaders { strategy: false, bypass: true });
}

#[test]
fn parses_models_and_summarizers() {
    let settings = loaded(
        "[models.\"a.b\"]\nwindow = 1000\ninput = 2\ncache_ttl = \"10m\"\n\
        [summarizers.small]\nkind = \"llm\"\nmodel = \"m\"\n[summarizers.cheap]\nkind = \"extractive\"\n\
        [context.fold]\nsummarizer = \"small\"\n",
    );
    let model = &settings.models["a.b"];
    assert_eq!((model.input, model.cache_ttl), (Some(2.0), Some(Duration::from_secs(600))));
    assert_eq!(settings.summarizers["cheap"], Summarizer::Extractive);
    let Summarizer::Llm(small) = &settings.summarizers["small"] else { panic!("expected an llm summarizer") };
    assert_eq!((small.name.as_str(), small.upstream.name.as_str()), ("small", "default"));
    assert_eq!((small.json_schema, small.forward_key), (JsonSchema::Auto, false));
    assert_eq!((small.window, small.max_tool_output.get()), (None, 4000));
    assert_eq!(settings.routes[0].context.fold.summarizer, "small");
}

#[test]
fn a_summarizers_own_timeout_overrides_the_folds() {
    let settings = loaded(
        "[summarizers.slow]\nkind = \"llm\"\nmodel = \"m\"\ntimeout = \"2m\"\n\
        [summarizers.other]\nkind = \"llm\"\nmodel = \"m\"\n",
    );
    let timeout = |summarizer: &Summarizer| summarizer.timeout(Duration::from_secs(20)).as_secs();
    assert_eq!(timeout(&settings.summarizers["slow"]), 120);
    assert_eq!(timeout(&settings.summarizers["other"]), 20);
    assert_eq!(timeout(&Summarizer::Extractive), 20);
}

#[test]
fn parses_json_schema() {
    let read = |value: &str| {
        let text = format!("[summarizers.s]\nkind = \"llm\"\nmodel = \"m\"\njson_schema = {value}\n");
        match &loaded(&text).summarizers["s"] {
            Summarizer::Llm(llm) => llm.json_schema,
            Summarizer::Extractive => panic!("expected an llm summarizer"),
        }
    };
    assert_eq!(read("\"auto\""), JsonSchema::Auto);
    assert_eq!(read("true"), JsonSchema::Always);
    assert_eq!(read("false"), JsonSchema::Never);
}

#[test]
fn the_default_fold_pace_depends_on_whether_when_is_set() {
    let pace = |text: &str| loaded(text).routes[0].context.fold.pace;
    assert_eq!(pace(""), FoldPace::BreakEven);
    assert_eq!(pace("[context.fold]\nwhen = { user_turns = 3 }\n"), FoldPace::AtTrigger);
    assert_eq!(
        pace("[context.fold]\nwhen = { user_turns = 3 }\npace = \"break_even\"\n"),
        FoldPace::BreakEven
    );
}

#[test]
fn the_longest_matching_pattern_sets_the_window() {
    let text = "[context.budget.windows]\n\"gpt-*\" = 1000\n\"gpt-4o-mini\" = 2000\n[models.x]\nwindow = 5\n";
    let context = &loaded(text).routes[0].context;
    assert_eq!(context.window_of("gpt-4o-mini", true), Some(Tokens(2000)));
    assert_eq!(context.window_of("gpt-4o", true), Some(Tokens(1000)));
    assert_eq!(context.window_of("other", false), None);
}

#[test]
fn an_archive_is_a_postgresql_database_and_hides_its_password() {
    let settings = loaded("[archive]\nurl = \"postgres://me:hunter2@db/tidegate\"\n");
    assert_eq!(settings.archive.as_ref().unwrap().url, "postgres://me:hunter2@db/tidegate");
    assert!(!format!("{settings:?}").contains("hunter2"));
    assert!(load(Source::new("p", "[archive]\nurl = \"mysql://db\"\n"), &Flags::default(), &unset).is_err());
}
