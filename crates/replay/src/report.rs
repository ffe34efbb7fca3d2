//! One page about a replay: tables, plots and what became of each message, in a file that needs nothing else.
//!
//! Ids and names in it are whatever a recording says, so everything is escaped: in the page as HTML, in its data as JSON that
//! cannot end its element. The page may load nothing from anywhere.

mod data;
mod rows;

use crate::comparison::Comparison;
use crate::recommend::Recommendation;
use crate::run::Setup;
use std::fmt::Write;

const STYLE: &str = include_str!("report/page.css");
const SCRIPT: &str = include_str!("report/page.js");

/// Nothing but what is in the page itself.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'";

/// The page. `recommended` has an entry for each price, or none at all.
#[must_use]
pub fn report(
    setup: &Setup,
    comparison: &Comparison,
    notes: &[String],
    recommended: &[Option<Recommendation>],
) -> String {
    let mut page = String::with_capacity(256 * 1024);
    let _ = write!(
        page,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <link rel=\"icon\" href=\"data:,\">\n\
         <title>Tidegate replay</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n"
    );
    page += &rows::heading(setup, comparison, notes);
    for regime in 0..setup.regimes.len() {
        page += &rows::price(setup, comparison, regime, recommended.get(regime).and_then(Option::as_ref));
    }
    page += PLOTS;
    let data = data::of(setup, comparison).to_string();
    // The only way out of the element is its closing tag.
    let data = data.replace('<', "\\u003c");
    let _ = write!(
        page,
        "<footer>Made by <code>tidegate replay</code> {}. Nothing in this page is loaded from anywhere.</footer>\n</main>\n\
         <script type=\"application/json\" id=\"data\">{data}</script>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n",
        env!("CARGO_PKG_VERSION")
    );
    page
}

const PLOTS: &str = "\
<section class=\"plots\">
<figure id=\"size\"><figcaption><b>Context size</b> mean tokens of a request, by its number</figcaption></figure>
<figure id=\"cost\"><figcaption><b>Cumulative cost</b> of the first requests of all conversations</figcaption></figure>
<figure id=\"window\"><figcaption><b>Cost against window size</b> / raw, by how many turns stay as they were</figcaption></figure>
</section>
<section class=\"strips\">
<h2>What was kept, masked and folded</h2>
<p><label>Conversation <select id=\"conversation\"></select></label> <span id=\"keys\"></span></p>
<p class=\"hint\">One column is one request: below the line what was sent, above it what was left out. A dot marks a request that \
changes what the provider had in its cache.</p>
<div id=\"strips\"></div>
</section>
";

/// A text as HTML, also inside an attribute.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            '\'' => escaped += "&#39;",
            _ => escaped.push(letter),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Policy;
    use crate::price::Regime;
    use crate::run::Replayed;
    use tidegate_config::{Flags, Source, load};

    #[test]
    fn nothing_that_a_recording_says_becomes_a_part_of_the_page() {
        let settings = load(Source::none(), &Flags::default(), &|_| None).unwrap();
        let policies = Policy::all(["\"><img src=x>".to_owned()]);
        let setup = Setup { settings, main: policies.len(), policies, regimes: vec![Regime::Table], gap: 0 };
        let mut comparison = Comparison::new(&setup);
        let hostile = "</script><script>alert(1)</script><!--";
        comparison.add(
            0,
            Replayed {
                id: hostile.to_owned(),
                has_times: false,
                models: vec![hostile.to_owned()],
                figures: comparison.totals.clone(),
                turns: vec![vec![Vec::new(); setup.policies.len()]],
            },
        );
        let page = report(&setup, &comparison, &[hostile.to_owned()], &[]);
        assert_eq!(page.matches("<script").count(), 2, "{page}");
        assert_eq!(page.matches("</script").count(), 2);
        assert!(!page.contains("<img") && !page.contains("<!--"));
        assert!(page.contains("&lt;/script&gt;"));
    }

    #[test]
    fn the_page_loads_nothing() {
        for text in [STYLE, SCRIPT, PLOTS] {
            for way in [
                "http:",
                "https:",
                "//cdn",
                "url(",
                "@import",
                "fetch(",
                "XMLHttpRequest",
                "innerHTML",
                "eval(",
            ] {
                // The name of SVG looks like an address, and is none.
                assert!(!text.replace("http://www.w3.org/2000/svg", "").contains(way), "{way}");
            }
        }
    }
}
