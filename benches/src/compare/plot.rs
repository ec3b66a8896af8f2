//! The results as a picture: SVG that can be read on light and on dark pages.

use super::candidate::{AUTO, Candidate, Side};
use super::results::Results;
use std::fmt::Write;

/// Widths and heights in pixels.
const LEFT: f64 = 56.0;
const BAR: f64 = 22.0;
const GAP: f64 = 22.0;
const HEIGHT: f64 = 220.0;
const HEAD: f64 = 64.0;
const FOOT: f64 = 46.0;

/// The colours: of lines and words for both kinds of pages, and of the bars, which stand out on both.
const STYLE: &str = "\
    text{font-family:system-ui,sans-serif;font-size:12px;fill:#24292f}\
    .head{font-size:14px;font-weight:600}.small{font-size:10px}.line{stroke:#d0d7de}.one{stroke:#57606a;stroke-dasharray:4 3}\
    .b0{fill:#8c959f}.b1{fill:#d4894a}.b2{fill:#6ea8de}.b3{fill:#2f81d6}\
    @media(prefers-color-scheme:dark){text{fill:#e6edf3}.line{stroke:#3d444d}.one{stroke:#9198a1}}";

/// The bars of a workload: a name, and a height in relation to llama-server without speculation.
type Bars<'a> = (&'a str, Vec<Option<f64>>);

/// Draws one panel for each number of texts at once.
pub fn svg(results: &Results) -> String {
    let names = ["llama-server, plain", "llama-server, its best setting for each", "ours, plain", "ours, auto"];
    let panels: Vec<(u32, Vec<Bars<'_>>)> =
        results.concurrencies().into_iter().map(|concurrency| (concurrency, bars(results, concurrency))).collect();
    let groups = panels.iter().map(|(_, bars)| bars.len()).max().unwrap_or(0) as f64;
    let group = BAR * names.len() as f64 + GAP;
    let (width, panel) = ((LEFT + groups * group + GAP).max(760.0), HEAD + HEIGHT + FOOT);
    let height = panel * panels.len() as f64 + 30.0;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         role=\"img\">\n<title>Tokens per second in relation to llama-server without speculation</title>\n\
         <style>{STYLE}</style>\n"
    );
    for (place, (concurrency, bars)) in panels.iter().enumerate() {
        let texts =
            if *concurrency == 1 { "one text at a time".into() } else { format!("{concurrency} texts at once") };
        // Writing to a text does not fail.
        let _ = writeln!(out, "<g transform=\"translate(0 {})\">", place as f64 * panel);
        let head = escape(&format!("Tokens per second, {texts} (llama-server without speculation is 1)"));
        let _ = writeln!(out, "<text class=\"head\" x=\"{GAP}\" y=\"28\">{head}</text>");
        axis(&mut out, bars, width);
        let top = top(bars);
        for (number, (workload, heights)) in bars.iter().enumerate() {
            let left = LEFT + number as f64 * group + GAP / 2.0;
            for (kind, height) in heights.iter().enumerate() {
                let Some(height) = height else { continue };
                let (x, tall) = (left + kind as f64 * BAR, height / top * HEIGHT);
                let y = HEAD + HEIGHT - tall;
                let _ = writeln!(
                    out,
                    "<rect class=\"b{kind}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{tall:.1}\"/>\
                     <text class=\"small\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{height:.2}</text>",
                    BAR - 2.0,
                    x + BAR / 2.0 - 1.0,
                    y - 4.0
                );
            }
            let middle = left + BAR * names.len() as f64 / 2.0;
            let _ = writeln!(
                out,
                "<text x=\"{middle:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
                HEAD + HEIGHT + 18.0,
                escape(workload)
            );
        }
        let _ = writeln!(out, "</g>");
    }
    let mut x = LEFT;
    for (kind, name) in names.iter().enumerate() {
        let y = height - 18.0;
        let _ = writeln!(
            out,
            "<rect class=\"b{kind}\" x=\"{x}\" y=\"{}\" width=\"11\" height=\"11\"/><text x=\"{}\" y=\"{y}\">{}</text>",
            y - 10.0,
            x + 16.0,
            escape(name)
        );
        x += 40.0 + 6.3 * name.len() as f64;
    }
    out + "</svg>\n"
}

fn bars(results: &Results, concurrency: u32) -> Vec<Bars<'_>> {
    let theirs = Candidate::plain(Side::Theirs);
    let [plain, auto] = [Candidate::plain(Side::Ours), Candidate::new(Side::Ours, AUTO)];
    let of = |workload| {
        let height = |one: &Candidate| results.ratio(concurrency, workload, one, &theirs).map(|ratio| ratio.median);
        let best = results.best_of(concurrency, workload).and_then(height);
        (workload, vec![height(&theirs), best, height(&plain), height(&auto)])
    };
    results.workloads().into_iter().map(of).collect()
}

/// The height of the panel, as a ratio.
fn top(bars: &[Bars<'_>]) -> f64 {
    let highest = bars.iter().flat_map(|(_, heights)| heights).flatten().fold(1.0f64, |top, height| top.max(*height));
    (highest * 1.1 * 4.0).ceil() / 4.0
}

/// Lines across, with their numbers.
fn axis(out: &mut String, bars: &[Bars<'_>], width: f64) {
    let top = top(bars);
    let step = if top > 6.0 {
        2.0
    } else if top > 2.5 {
        1.0
    } else {
        0.5
    };
    let lines = (0..).map(|number| f64::from(number) * step).take_while(|ratio| *ratio <= top);
    for ratio in lines {
        let y = HEAD + HEIGHT - ratio / top * HEIGHT;
        let kind = if ratio == 1.0 { "one" } else { "line" };
        let _ = writeln!(
            out,
            "<line class=\"{kind}\" x1=\"{LEFT}\" x2=\"{}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
             <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{ratio:.1}</text>",
            width - GAP,
            LEFT - 8.0,
            y + 4.0
        );
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::results::tests::example;

    /// Every tag is closed in its turn, and no mark is left open.
    fn assert_well_formed(svg: &str) {
        let mut open: Vec<&str> = Vec::new();
        let mut rest = svg;
        while let Some(start) = rest.find('<') {
            let text = &rest[..start];
            let marks = ["&lt;", "&gt;", "&amp;", "&quot;"];
            let plain = marks.iter().fold(text.to_owned(), |text, mark| text.replace(mark, ""));
            assert!(!plain.contains(['>', '&']), "{text}");
            let end = start + rest[start..].find('>').expect("a tag ends");
            let tag = &rest[start + 1..end];
            assert!(!tag.contains('<') && tag.matches('"').count().is_multiple_of(2), "{tag}");
            if let Some(name) = tag.strip_prefix('/') {
                assert_eq!(open.pop(), Some(name));
            } else if !tag.ends_with('/') {
                open.push(tag.split_whitespace().next().unwrap());
            }
            rest = &rest[end + 1..];
        }
        assert!(open.is_empty() && rest.trim().is_empty(), "{open:?} {rest}");
    }

    #[test]
    fn the_picture_is_well_formed_and_has_every_bar() {
        let mut results = example();
        results.samples.iter_mut().filter(|sample| sample.workload == "prose").for_each(|sample| {
            sample.workload = "a < b & \"c\"".into();
        });
        let svg = svg(&results);
        assert_well_formed(&svg);
        assert_eq!(svg.matches("<rect").count(), 2 * 4 + 4, "four bars for each workload, and the legend");
        assert!(svg.contains("a &lt; b &amp; &quot;c&quot;"));
        assert!(svg.contains(">2.00</text>"), "ours is twice as fast at code");
        assert!(svg.contains("prefers-color-scheme:dark"));
    }

    #[test]
    fn nothing_gives_an_empty_picture() {
        assert_well_formed(&svg(&Results::default()));
    }

    #[test]
    fn a_workload_that_one_of_them_lacks_has_fewer_bars() {
        let mut results = example();
        results.samples.retain(|sample| sample.workload != "code" || sample.candidate.side == Side::Ours);
        assert_well_formed(&svg(&results));
    }
}
