//! Dark and light, wide and narrow, long texts and those that run from right to left.

use crate::browser::{Page, browse};
use crate::stand_in::{StandIn, Step, done, end, tokens};
use serde_json::json;

#[tokio::test]
async fn dark_and_light() {
    let server = StandIn::start().await;
    server.stream(
        [tokens(&[("One", "target"), (" two", "draft-simple"), (" three", "ngram-mod")])].into_iter().chain(end()),
    );
    browse(&server, async |page| {
        page.send("Hi").await;
        page.says(".numbers", &["tokens"]).await;
        for (scheme, dark) in [("dark", true), ("light", false)] {
            let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
            page.devtools("Emulation.setEmulatedMedia", json!({ "features": features })).await;
            page.until(&format!("matchMedia('(prefers-color-scheme: {scheme})').matches")).await;
            let (text, ground) = (page.style("body", "color").await, page.style("body", "background-color").await);
            assert_eq!(luminance(&ground) < 0.5, dark, "{scheme}: {ground}");
            assert!(contrast(&text, &ground) >= 7.0, "{scheme}: {text} on {ground}");
            let ground_of_panel = page.style("header", "background-color").await;
            let dim = page.style("#model", "color").await;
            assert!(contrast(&dim, &ground_of_panel) >= 4.5, "{scheme}: {dim} on {ground_of_panel}");
            for token in 1..=3 {
                let place = format!(".text .token:nth-of-type({token})");
                let tint = page.style(&place, "background-color").await;
                assert!(contrast(&text, &tint) >= 4.5, "{scheme}: {text} on {tint}");
                assert_ne!(tint, ground, "{scheme}: token {token}");
            }
            page.picture(scheme).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_narrow_window_shows_all_of_it() {
    let server = StandIn::start().await;
    let long = "endless".repeat(60);
    let arabic = [("مرحبا", "target"), (" بالعالم", "draft-simple"), ("!", "target"), ("\n", "target")];
    server.stream([tokens(&arabic), tokens(&[(&long, "draft-simple"), (" end", "target")])].into_iter().chain(end()));
    browse(&server, async |page| {
        narrow(page).await;
        page.send("שלום").await;
        page.says(".numbers", &["tokens"]).await;
        let directions =
            "return [...document.querySelectorAll('.user, .text p')].map((it) => getComputedStyle(it).direction)";
        assert_eq!(page.js(directions).await, json!(["rtl", "rtl", "ltr"]));
        page.picture("narrow").await;
        page.hover(".text p:nth-of-type(2) .token").await;
        page.says("#card", &["endless"]).await;
        let card = "const it = document.querySelector('#card').getBoundingClientRect(); \
                    return it.left >= 0 && it.right <= innerWidth && it.top >= 0 && it.bottom <= innerHeight";
        assert_eq!(page.js(card).await, json!(true));
        page.picture("narrow-token").await;
        for view in ["chat", "live", "compatibility"] {
            page.click(&format!("nav a[data-view={view}]")).await;
            page.until(&format!("document.body.dataset.view === '{view}'")).await;
            page.until("document.documentElement.scrollWidth <= innerWidth").await;
            assert_eq!(page.count(".view").await, 3);
            assert!(page.find(&format!("#{view}")).await.is_displayed().await.unwrap());
            page.picture(&format!("narrow-{view}")).await;
        }
    })
    .await;
}

async fn narrow(page: &Page) {
    let phone = json!({ "width": 360, "height": 740, "deviceScaleFactor": 2, "mobile": true });
    page.devtools("Emulation.setDeviceMetricsOverride", phone).await;
    page.until("innerWidth === 360").await;
}

/// What is written is not written again: the work for a token does not grow with those before it.
#[tokio::test]
async fn thousands_of_tokens() {
    let server = StandIn::start().await;
    let piece: Vec<(&str, &str)> =
        [(" word", "draft-simple"), ("s", "target"), (" and", "ngram-mod"), (" so", "target")].repeat(10);
    let chunks = 250;
    server.stream(
        std::iter::once(tokens(&[("Start", "target")]))
            .chain([Step::Wait])
            .chain((0..chunks).map(|_| tokens(&piece)))
            .chain([done()]),
    );
    browse(&server, async |page| {
        page.send("Hi").await;
        page.says(".assistant .text", &["Start"]).await;
        let watch = "window.removed = 0; window.first = document.querySelector('.text .token'); \
                     new MutationObserver((all) => all.forEach((it) => window.removed += it.removedNodes.length))\
                     .observe(document.querySelector('.assistant'), { childList: true, subtree: true })";
        page.js(watch).await;
        server.go_on();
        page.until("!document.querySelector('[aria-busy]')").await;
        assert_eq!(page.count(".text .token").await, 40 * chunks + 1);
        assert_eq!(page.js("return [window.removed, window.first.isConnected]").await, json!([0, true]));
        // Its end is in sight.
        page.until(
            "(() => { const log = document.querySelector('#log'); \
                    return log.scrollHeight - log.scrollTop - log.clientHeight < 2 })()",
        )
        .await;
        page.hover(".text .token:last-of-type").await;
        page.says("#card", &["␣so"]).await;
        page.picture("long").await;
    })
    .await;
}

/// The relative luminance of `rgb(r, g, b)`, as WCAG 2 defines it.
fn luminance(colour: &str) -> f64 {
    let channels: Vec<f64> = colour
        .trim_start_matches(|it: char| !it.is_ascii_digit())
        .split(|it: char| !it.is_ascii_digit() && it != '.')
        .filter_map(|part| part.parse::<f64>().ok())
        .map(|value| value / 255.0)
        .map(|value| if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) })
        .collect();
    assert!(channels.len() >= 3, "{colour} is no colour");
    0.2126 * channels[0] + 0.7152 * channels[1] + 0.0722 * channels[2]
}

fn contrast(left: &str, right: &str) -> f64 {
    let (left, right) = (luminance(left), luminance(right));
    (left.max(right) + 0.05) / (left.min(right) + 0.05)
}
