use super::{environment, loaded, shown, unset};
use crate::{Flags, LogLevel, Settings, Source, StoreUrl, load};
use std::num::NonZeroU32;
use tidegate_engine::{Keep, Pace, Strategy, SummaryLimit, Tokens, Trigger};

fn count(count: u32) -> NonZeroU32 {
    NonZeroU32::new(count).unwrap()
}

const TWO_ROUTES: &str = r#"
[context]
strategy = "passthrough"
[context.budget]
output_reserve = { cap = 4096 }
[context.mask]
keep = { turns = 3 }
pace = { batch = 5 }
[context.fold]
when = { tokens = 9000 }

[[routes]]
name = "tools"
match = { models = "gpt-*" }
[routes.context]
strategy = "masking"
[routes.context.budget.output_reserve]
min = 100
[routes.context.mask]
keep = { tokens = 20000 }
[[routes]]
"#;

#[test]
fn a_route_overrides_the_shared_policy_key_by_key() {
    let settings = loaded(TWO_ROUTES);
    let (tools, rest) = (&settings.routes[0].context, &settings.routes[1].context);
    assert_eq!((tools.strategy, rest.strategy), (Strategy::Masking, Strategy::Passthrough));
    assert_eq!(tools.mask.policy.keep, Keep::Tokens(Tokens(20_000)));
    assert_eq!(rest.mask.policy.keep, Keep::Turns(count(3)));
    assert_eq!(tools.mask.policy.pace, Pace::Batch(count(5)));
    assert_eq!(
        (tools.budget.output_reserve.cap, tools.budget.output_reserve.min),
        (Some(Tokens(4096)), Tokens(100))
    );
    assert_eq!(
        (rest.budget.output_reserve.cap, rest.budget.output_reserve.min),
        (Some(Tokens(4096)), Tokens(0))
    );
    assert_eq!(settings.routes[1].name, "route-2");
}

#[test]
fn every_value_has_its_origin() {
    let settings = loaded(TWO_ROUTES);
    assert_eq!(shown(&settings, "routes[0].context.strategy"), "\"masking\" (proxy.toml:16)");
    assert_eq!(shown(&settings, "routes[1].context.strategy"), "\"passthrough\" (proxy.toml:3)");
    assert_eq!(shown(&settings, "routes[0].context.mask.keep"), "{ tokens = 20000 } (proxy.toml:20)");
    assert_eq!(shown(&settings, "routes[0].context.mask.pace"), "{ batch = 5 } (proxy.toml:8)");
    assert_eq!(shown(&settings, "routes[0].context.budget.output_reserve.cap"), "4096 (proxy.toml:5)");
    assert_eq!(shown(&settings, "routes[0].context.budget.output_reserve.ratio"), "0.2 (default)");
    assert_eq!(shown(&settings, "routes[0].match.models"), "\"gpt-*\" (proxy.toml:14)");
    assert_eq!(shown(&settings, "routes[1].upstream"), "\"default\" (default)");
    assert_eq!(shown(&settings, "server.max_body"), "\"32MiB\" (default)");
    assert_eq!(shown(&settings, "upstreams.default.url"), "\"https://api.openai.com\" (default)");
    let mut paths: Vec<&str> = settings.resolved.iter().map(|resolved| resolved.path.as_str()).collect();
    let all = paths.len();
    paths.sort_unstable();
    paths.dedup();
    assert_eq!(paths.len(), all, "a path is resolved twice");
}

#[test]
fn the_environment_overrides_every_route() {
    let env = environment(&[
        ("AGENT_CONTEXT_STRATEGY", "passthrough"),
        ("AGENT_CONTEXT_MASKING_WINDOW", "7"),
        ("AGENT_CONTEXT_RESERVED", "1000"),
        ("AGENT_CONTEXT_SUMMARY_TURNS", "20"),
        ("AGENT_CONTEXT_MAX_TURNS", ""),
    ]);
    let settings = load(Source::new("proxy.toml", TWO_ROUTES), &Flags::default(), &env).unwrap();
    for route in &settings.routes {
        let context = &route.context;
        assert_eq!(context.strategy, Strategy::Passthrough);
        assert_eq!(context.mask.policy.keep, Keep::Turns(count(7)));
        let reserve = context.budget.output_reserve;
        assert_eq!((reserve.cap, reserve.ratio, reserve.min), (Some(Tokens(1000)), 1.0, Tokens(1000)));
        let when = Trigger { tokens: Some(Tokens(9000)), turns: Some(count(20)), ..Trigger::default() };
        assert_eq!(context.fold.when, when);
        assert_eq!(context.limits.max_turns, None);
    }
    assert_eq!(
        shown(&settings, "routes[0].context.mask.keep"),
        "{ turns = 7 } (AGENT_CONTEXT_MASKING_WINDOW)"
    );
    let when = "{ tokens = 9000, turns = 20 } (AGENT_CONTEXT_SUMMARY_TURNS)";
    assert_eq!(shown(&settings, "routes[1].context.fold.when"), when);
}

#[test]
fn a_condition_from_the_environment_is_added_to_the_defaults() {
    let env = environment(&[("AGENT_CONTEXT_SUMMARY_TOKENS", "5000"), ("CONTEXT_MAX_OUTPUT_TOKENS", "512")]);
    let settings = load(Source::none(), &Flags::default(), &env).unwrap();
    let context = &settings.routes[0].context;
    let when = Trigger { budget_ratio: Some(0.85), tokens: Some(Tokens(5000)), ..Trigger::default() };
    assert_eq!(context.fold.when, when);
    let when = "{ budget_ratio = 0.85, tokens = 5000 } (AGENT_CONTEXT_SUMMARY_TOKENS)";
    assert_eq!(shown(&settings, "routes[0].context.fold.when"), when);
    let reserve = context.budget.output_reserve;
    assert_eq!((reserve.cap, reserve.ratio), (Some(Tokens(512)), 0.20));
}

#[test]
fn flags_override_the_file() {
    let flags = Flags {
        listen: Some(("0.0.0.0:80".into(), "--listen")),
        admin: Some(("localhost:81".into(), "TIDEGATE_ADMIN")),
        upstream: Some(("http://127.0.0.1:9/base/".into(), "--upstream")),
        store: Some(("redis://:secret@cache".into(), "--store")),
        observe: None,
    };
    let text = "[server]\nlisten = \"nonsense\"\n[upstreams.default]\nidle_timeout = \"9s\"\n";
    let settings = load(Source::new("proxy.toml", text), &flags, &unset).unwrap();
    assert_eq!(settings.server.listen.port(), 80);
    assert!(settings.admin.listen.ip().is_loopback());
    let upstream = &settings.routes[0].upstream;
    assert_eq!((upstream.url.path.as_str(), upstream.idle_timeout.as_secs()), ("/base", 9));
    assert_eq!(settings.store.url, StoreUrl::Redis("redis://:secret@cache".into()));
    assert_eq!(settings.store.url.to_string(), "redis://***@cache");
    assert_eq!(shown(&settings, "admin.listen"), "\"localhost:81\" (TIDEGATE_ADMIN)");
    assert_eq!(shown(&settings, "store.url"), "\"redis://***@cache\" (--store)");
    assert!(!format!("{settings:?}{:?}", settings.warnings).contains("secret\""), "{settings:?}");
}

#[test]
fn observing_on_the_command_line_or_in_the_environment_holds_for_every_route() {
    let text = "[context]\nobserve = false\n[[routes]]\nname = \"a\"\n[routes.context]\nobserve = false\n[[routes]]\nname = \"b\"\n";
    let load = |flags: &Flags, env: &dyn Fn(&str) -> Option<String>| {
        load(Source::new("proxy.toml", text), flags, env).unwrap()
    };
    let observes = |settings: &Settings| settings.routes.iter().all(|route| route.context.observe);
    assert!(!load(&Flags::default(), &unset).routes.iter().any(|route| route.context.observe));
    let variable = load(&Flags::default(), &environment(&[("TIDEGATE_OBSERVE", "1")]));
    assert!(observes(&variable));
    assert_eq!(shown(&variable, "routes[0].context.observe"), "true (TIDEGATE_OBSERVE)");
    let flag = Flags { observe: Some("--observe"), ..Flags::default() };
    let both = load(&flag, &environment(&[("TIDEGATE_OBSERVE", "false")]));
    assert!(observes(&both));
    assert_eq!(shown(&both, "routes[1].context.observe"), "true (--observe)");
}

#[test]
fn variables_expand_in_strings_numbers_and_booleans() {
    let env =
        environment(&[("TURNS", "4"), ("LEVEL", "debug"), ("KEY", "x\"]\n[admin]\nlisten = \"0.0.0.0:1")]);
    let text = "[log]\nlevel = \"${LEVEL}\"\naccess = \"${ACCESS:-false}\"\n[server]\nmax_body = \"${BODY:-4096}\"\n\
        [context.mask]\nkeep = { turns = \"${TURNS}\" }\nplaceholder = \"${KEY}\"\n\
        [context.budget]\nsafety_ratio = \"${RATIO:-0.5}\"\n";
    let settings = load(Source::new("proxy.toml", text), &Flags::default(), &env).unwrap();
    assert_eq!((settings.log.level, settings.log.access), (LogLevel::Debug, false));
    assert_eq!(settings.server.max_body, 4096);
    let context = &settings.routes[0].context;
    assert_eq!(context.mask.policy.keep, Keep::Turns(count(4)));
    assert_eq!(context.budget.safety_ratio, 0.5);
    // The variable contains a section header, but its value stays a string.
    assert!(context.mask.placeholder.contains("[admin]"));
    assert_eq!(settings.admin.listen.to_string(), "127.0.0.1:9090");
    assert_eq!(shown(&settings, "log.level"), "\"${LEVEL}\" (proxy.toml:2)");
}

/// A number and a share are two ways to say the same thing, so a layer's replaces that of the layer below, whichever it is.
#[test]
fn a_share_overrides_the_number_of_a_profile() {
    let share = "[context]\nprofile = \"agent\"\n[context.fold]\nmax_tokens = { ratio = 0.2, min = 300 }\n";
    let number = "[context.fold]\nmax_tokens = { ratio = 0.2, min = 300 }\n[[routes]]\nname = \"r\"\n[routes.context.fold]\nmax_tokens = 700\n";
    let limits = [share, number].map(|text| loaded(text).routes[0].context.fold.max_tokens);
    assert_eq!(
        limits,
        [SummaryLimit::Share { ratio: 0.2, min: Tokens(300) }, SummaryLimit::Tokens(Tokens(700))]
    );
}
