use super::{loaded, unset};
use crate::{AllowHeaders, Ceiling, Flags, JsonSchema, Source, StoreUrl, Summarizer, load};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tidegate_engine::{CacheKind, FoldPace, Keep, Strategy, SummaryLimit, Tokens};

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
        "[models.\"a.b\"]\nwindow = 1000\ninput = 2\ncache = \"explicit\"\ncache_ttl = \"10m\"\n\
        [summarizers.small]\nkind = \"llm\"\nmodel = \"m\"\n[summarizers.cheap]\nkind = \"extractive\"\n\
        [context.fold]\nsummarizer = \"small\"\n",
    );
    let model = &settings.models["a.b"];
    assert_eq!((model.input, model.cache_ttl), (Some(2.0), Some(Duration::from_secs(600))));
    assert_eq!(model.cache, Some(CacheKind::Explicit));
    assert_eq!(settings.summarizers["cheap"], Summarizer::Extractive);
    let Summarizer::Llm(small) = &settings.summarizers["small"] else { panic!("expected an llm summarizer") };
    assert_eq!((small.name.as_str(), small.upstream.name.as_str()), ("small", "default"));
    assert_eq!((small.json_schema, small.forward_key), (JsonSchema::Auto, false));
    assert_eq!((small.window, small.max_tool_output.get()), (None, 4000));
    assert_eq!((small.max_concurrent.get(), small.max_concurrent_per_tenant.get()), (32, 16));
    assert_eq!((small.max_queued.get(), small.max_cost_usd_per_hour), (256, None));
    assert_eq!(settings.routes[0].context.fold.summarizer, "small");
}

#[test]
fn parses_the_limits_of_summarizers() {
    let settings = loaded(
        "[summarizers.small]\nkind = \"llm\"\nmodel = \"m\"\nmax_concurrent = 3\nmax_concurrent_per_tenant = 2\n\
        max_queued = 1\nmax_cost_usd_per_hour = 2.5\n",
    );
    let Summarizer::Llm(small) = &settings.summarizers["small"] else { panic!("expected an llm summarizer") };
    assert_eq!((small.max_concurrent.get(), small.max_concurrent_per_tenant.get()), (3, 2));
    assert_eq!((small.max_queued.get(), small.max_cost_usd_per_hour), (1, Some(Ceiling(2_500_000_000))));
}

#[test]
fn trim_is_on_where_its_section_or_the_profile_has_it() {
    let trim = |text: &str| loaded(text).routes[0].context.trim.clone();
    assert_eq!(trim(""), None);
    for profile in ["agent", "story", "assistant", "budgeted-chat", "rolling-memory"] {
        assert_eq!(trim(&format!("[context]\nprofile = \"{profile}\"\n")), None, "{profile}");
    }
    let section = trim("[context.trim]\n").unwrap();
    assert_eq!((section.min_tokens, section.keep_tokens), (Tokens(1500), Tokens(400)));
    assert_eq!(trim("[context]\nprofile = \"coding-agent\"\n"), Some(section));
    assert_eq!(trim("[context]\nprofile = \"coding-agent\"\n[context.trim]\nenabled = false\n"), None);
    let own = trim("[context.trim]\nmin_tokens = 3000\nexclude_tools = \"plan\"\n").unwrap();
    assert_eq!((own.min_tokens, own.exclude_tools.len()), (Tokens(3000), 1));
}

#[test]
fn placeholders_have_hints_where_the_model_can_ask_for_the_result() {
    let hint = |text: &str| loaded(text).routes[0].context.mask.hint;
    assert_eq!(hint(""), 0);
    assert_eq!(hint("[context.recall]\ntool = true\n"), 60);
    assert_eq!(
        hint("[context]\nprofile = \"agent\"\n[context.recall]\ntool = true\n"),
        0,
        "its text is fixed"
    );
    assert_eq!(hint("[context.mask]\nhint = { identifiers = 20 }\n"), 20);
}

#[test]
fn a_model_can_recall_a_limited_number_of_times() {
    let max_calls = |text: &str| loaded(text).routes[0].context.recall.max_calls.get();
    assert_eq!(max_calls(""), 4);
    let section =
        "[context.recall]\nauto = true\ntool = false\nmax_tokens = 2000\nmax_calls = 9\ntimeout = \"5s\"\n";
    assert_eq!(max_calls(section), 9);
    assert_eq!(loaded(section).routes[0].context.recall.timeout, Duration::from_secs(5));
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
fn what_stays_by_default_is_less_than_what_fires() {
    let keep = |text: &str| loaded(&format!("[context.fold]\n{text}\n")).routes[0].context.fold.keep;
    assert_eq!(keep(""), Keep::Ratio(0.5));
    assert_eq!(keep("when = { tokens = 9000 }"), Keep::Ratio(0.5));
    assert_eq!(keep("when = { budget_ratio = 0.3 }"), Keep::Ratio(0.18));
    assert_eq!(
        keep("when = { budget_ratio = 0.9, user_turns = 3 }"),
        Keep::Turns(NonZeroU32::new(4).unwrap())
    );
    assert_eq!(keep("keep = { ratio = 0.25 }"), Keep::Ratio(0.25));
}

#[test]
fn a_summarys_size_is_a_number_or_a_share() {
    let limit = |text: &str| loaded(&format!("[context.fold]\n{text}\n")).routes[0].context.fold.max_tokens;
    assert_eq!(limit(""), SummaryLimit::Share { ratio: 0.10, min: Tokens(1500) });
    assert_eq!(limit("max_tokens = 700"), SummaryLimit::Tokens(Tokens(700)));
    let share = SummaryLimit::Share { ratio: 0.2, min: Tokens(100) };
    assert_eq!(limit("max_tokens = { ratio = 0.2, min = 100 }"), share);
    for wrong in ["{ ratio = 0.2 }", "{ min = 5 }", "{ ratio = 2.0, min = 5 }", "\"all\"", "0"] {
        let text = format!("[context.fold]\nmax_tokens = {wrong}\n");
        assert!(load(Source::new("p", text), &Flags::default(), &unset).is_err(), "{wrong}");
    }
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

#[test]
fn a_store_has_a_maximum_size_unless_it_is_redis() {
    let size = |text: &str| loaded(text).store.max_size;
    assert_eq!(size(""), Some(10 << 30));
    assert_eq!(size("[store]\nurl = \"memory:\""), Some(256 << 20));
    assert_eq!(size("[store]\nmax_size = \"20MiB\""), Some(20 << 20));
    assert_eq!(size("[store]\nurl = \"redis://h\""), None);
    let settings = loaded("[store]\nurl = \"redis://h\"\nmax_size = \"20MiB\"");
    let [warning] = &settings.warnings[..] else { panic!("{:?}", settings.warnings) };
    assert!(warning.contains("`store.max_size`") && warning.contains("`maxmemory`"), "{warning}");
}
