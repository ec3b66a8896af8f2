//! The results as tables for people.

use super::candidate::{AUTO, Candidate, Side};
use super::results::Results;
use crate::Ratio;
use crate::table::{self, Align};
use console::style;

/// Prints everything to standard output.
pub fn print(results: &Results) {
    for concurrency in results.concurrencies() {
        let texts = if concurrency == 1 { "one text at a time".into() } else { format!("{concurrency} texts at once") };
        println!("\n{}", style(format!("# {texts}")).bold());
        for table in [overview(results, concurrency), speeds(results, concurrency), grid(results, concurrency)] {
            table.print();
        }
        memory(results, concurrency).print();
    }
    goals(results).print();
}

/// A table with what it is about.
#[derive(Debug, PartialEq)]
struct Table {
    about: String,
    columns: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    fn print(&self) {
        if self.rows.is_empty() {
            return;
        }
        println!("\n{}", self.about);
        let align = |place| if place == 0 { Align::Left } else { Align::Right };
        let columns: Vec<(&str, Align)> =
            self.columns.iter().enumerate().map(|(place, name)| (name.as_str(), align(place))).collect();
        table::print(&columns, &self.rows);
    }
}

/// The ratios that matter.
fn overview(results: &Results, concurrency: u32) -> Table {
    let [plain, auto] = [Candidate::plain(Side::Ours), Candidate::new(Side::Ours, AUTO)];
    let theirs = Candidate::plain(Side::Theirs);
    let fixed = results.best_fixed(concurrency);
    let row = |workload: &str| {
        let ratio = |one: &Candidate, other: &Candidate| spread(results.ratio(concurrency, workload, one, other));
        let best = results.best_of(concurrency, workload);
        let texts = |one: &Candidate, other: &Candidate| {
            let (same, all) = results.same_texts(concurrency, workload, one, other);
            format!("{same}/{all}")
        };
        vec![
            workload.to_owned(),
            ratio(&plain, &theirs),
            ratio(&auto, &plain),
            fixed.map_or_else(none, |fixed| ratio(&auto, fixed)),
            best.map_or_else(none, |best| ratio(&auto, best)),
            best.map_or_else(none, |best| best.setting.clone()),
            texts(&auto, &plain),
            texts(&plain, &theirs),
        ]
    };
    let mut rows: Vec<Vec<String>> = results.workloads().into_iter().map(row).collect();
    let mean = |one: &Candidate, other: &Candidate| {
        results.mean(concurrency, one, other).map_or_else(none, |mean| format!("{mean:.3}"))
    };
    rows.push(vec![
        "geometric mean".into(),
        mean(&plain, &theirs),
        mean(&auto, &plain),
        fixed.map_or_else(none, |fixed| mean(&auto, fixed)),
    ]);
    let setting = fixed.map_or("", |fixed| &fixed.setting);
    let columns = [
        "workload",
        "plain: ours/theirs",
        "ours: spec./plain",
        "ours/their best fixed",
        "ours/their best here",
        "that is",
        "same text as ours plain",
        "ours plain as theirs",
    ];
    Table {
        about: format!(
            "Ratios of tokens per second, the median of turns with the lowest and highest. Their best fixed setting: {setting}."
        ),
        columns: columns.map(str::to_owned).into(),
        rows,
    }
}

/// Tokens per second and time to the first token.
fn speeds(results: &Results, concurrency: u32) -> Table {
    let shown: Vec<&Candidate> =
        results.candidates().into_iter().filter(|one| one.side != Side::Theirs || one.is_plain()).collect();
    let row = |workload: &str| {
        let cell = |candidate: &&Candidate| {
            let speed = results.speed(concurrency, workload, candidate)?;
            let first = results.first_token(concurrency, workload, candidate)?;
            Some(format!("{:.1} ({:.0} ms)", speed.median, first.median))
        };
        [workload.to_owned()].into_iter().chain(shown.iter().map(|one| cell(one).unwrap_or_else(none))).collect()
    };
    Table {
        about: "Tokens per second, and the time to the first token.".into(),
        columns: ["workload".to_owned()].into_iter().chain(shown.iter().map(ToString::to_string)).collect(),
        rows: results.workloads().into_iter().map(row).collect(),
    }
}

/// Each setting in relation to llama-server without speculation.
fn grid(results: &Results, concurrency: u32) -> Table {
    let plain = Candidate::plain(Side::Theirs);
    let workloads = results.workloads();
    let row = |candidate: &Candidate| {
        let cell = |workload: &&str| {
            let ratio = results.ratio(concurrency, workload, candidate, &plain);
            ratio.map_or_else(none, |ratio| format!("{:.2}", ratio.median))
        };
        let mean = results.mean(concurrency, candidate, &plain).map_or_else(none, |mean| format!("{mean:.3}"));
        [candidate.to_string()].into_iter().chain(workloads.iter().map(cell)).chain([mean]).collect()
    };
    let columns = ["who and how".to_owned()].into_iter().chain(workloads.iter().map(|name| (*name).to_owned()));
    Table {
        about: "Everybody in relation to llama-server without speculation.".into(),
        columns: columns.chain(["mean".to_owned()]).collect(),
        rows: results.candidates().into_iter().map(row).collect(),
    }
}

fn memory(results: &Results, concurrency: u32) -> Table {
    let row = |candidate: &Candidate| {
        let bytes = results.peak_memory(concurrency, candidate)?;
        Some(vec![candidate.to_string(), format!("{:.0}", bytes as f64 / 1e6)])
    };
    Table {
        about: "The most memory that was resident, all processes of a server together, the mapped model included."
            .into(),
        columns: vec!["who and how".into(), "MB".into()],
        rows: results.candidates().into_iter().filter_map(row).collect(),
    }
}

fn goals(results: &Results) -> Table {
    let row = |goal: super::results::Goal| {
        let met = if goal.met { style("yes").green() } else { style("NO").red().bold() };
        vec![goal.what, goal.concurrency.to_string(), goal.found, met.to_string()]
    };
    Table {
        about: "Goals.".into(),
        columns: ["goal", "texts", "measured", "met"].map(str::to_owned).into(),
        rows: results.goals().into_iter().map(row).collect(),
    }
}

fn spread(ratio: Option<Ratio>) -> String {
    ratio.map_or_else(none, |ratio| format!("{:.3} ({:.2}-{:.2})", ratio.median, ratio.min, ratio.max))
}

fn none() -> String {
    "-".into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::results::tests::example;

    #[test]
    fn the_overview_has_a_row_for_each_workload_and_the_mean() {
        let table = overview(&example(), 1);
        assert_eq!(
            table.rows[0][..6],
            ["code", "1.000 (1.00-1.00)", "2.000 (2.00-2.00)", "1.250 (1.25-1.25)", "1.250 (1.25-1.25)", "ngram-mod:8"]
        );
        assert_eq!(table.rows[0][6..], ["2/3", "3/3"]);
        assert_eq!(table.rows[1][5], "plain");
        assert_eq!(table.rows[2][0], "geometric mean");
        assert!(table.rows[..2].iter().all(|row| row.len() == table.columns.len()));
    }

    #[test]
    fn the_grid_has_everybody() {
        let table = grid(&example(), 1);
        assert_eq!(table.columns, ["who and how", "code", "prose", "mean"]);
        assert_eq!(table.rows[3], ["llama-server, ngram-mod:8", "1.60", "0.80", "1.131"]);
        assert_eq!(table.rows.len(), 4);
    }

    #[test]
    fn speeds_come_with_the_time_to_the_first_token() {
        let table = speeds(&example(), 1);
        assert_eq!(table.columns, ["workload", "ours, plain", "ours, auto", "llama-server, plain"]);
        assert_eq!(table.rows[0], ["code", "5.0 (10 ms)", "10.0 (10 ms)", "5.0 (10 ms)"]);
    }

    #[test]
    fn memory_is_shown_of_those_of_whom_it_is_known() {
        assert_eq!(memory(&example(), 1).rows, [["ours, plain", "3"]]);
    }
}
