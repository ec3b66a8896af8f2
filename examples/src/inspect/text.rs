//! The report for people.

use crate::failure::one_line;
use console::{Style, measure_text_width};
use llama_spec::compat::{Check, Report, Severity, Verdict};
use llama_spec::file::{Description, LayerKind, TokenizerSummary};
use std::io::{self, Write};

/// Writes the whole report.
pub(super) fn report(out: &mut dyn Write, report: &Report) -> io::Result<()> {
    describe(out, "target", &report.target)?;
    if let Some(draft) = &report.draft {
        describe(out, "draft", draft)?;
    }
    memory(out, report)?;
    checks(out, report)?;
    verdict(out, report)
}

fn label(text: &str) -> String {
    Style::new().bold().apply_to(format!("{text:<9}")).to_string()
}

fn describe(out: &mut dyn Write, side: &str, model: &Description) -> io::Result<()> {
    writeln!(out, "{}{}", label(side), one_line(&model.path.to_string_lossy()))?;
    for line in [
        Some(identity(model)),
        layers(model),
        model.tokenizer.as_ref().map(|it| tokenizer(it, model)),
        dependence(model),
    ] {
        if let Some(line) = line.filter(|line| !line.is_empty()) {
            writeln!(out, "         {}", one_line(&line))?;
        }
    }
    for defect in &model.defects {
        let line = one_line(&format!("{}: {}", defect.place, defect.why));
        writeln!(out, "         {} {line}", Style::new().red().bold().apply_to("broken"))?;
    }
    Ok(())
}

fn identity(model: &Description) -> String {
    let mut parts = vec![model.kind.to_string()];
    parts.extend(model.architecture.iter().map(|architecture| format!("architecture {architecture}")));
    if model.parameters > 0 {
        parts
            .push(format!("{} parameters", rounded(model.parameters, 1000, ["", " thousand", " million", " billion"])));
        parts.push(format!("{}, {}", model.quantization, bytes(model.weight_bytes)));
    }
    if model.parts.len() > 1 {
        parts.push(format!("{} files", model.parts.len()));
    }
    parts.join(", ")
}

fn layers(model: &Description) -> Option<String> {
    let count = |kind: LayerKind| model.layer_kinds.iter().filter(|layer| **layer == kind).count();
    let kinds: Vec<String> = [
        (LayerKind::Attention, "attention"),
        (LayerKind::SlidingWindow, "sliding window"),
        (LayerKind::Recurrent, "recurrent"),
        (LayerKind::AttentionAndState, "attention and state"),
    ]
    .into_iter()
    .filter_map(|(kind, name)| Some((count(kind), name)).filter(|(count, _)| *count > 0))
    .map(|(count, name)| format!("{count} {name}"))
    .collect();
    let mut text = format!("{} layers of width {}", model.layers, model.width?);
    if !kinds.is_empty() {
        text += &format!(" ({})", kinds.join(", "));
    }
    if model.mtp_layers > 0 {
        let there = if model.mtp_heads { "" } else { ", not in the file" };
        text += &format!(", {} for multi-token prediction{there}", model.mtp_layers);
    }
    if let (Some(experts), Some(used)) = (model.experts, model.experts_used) {
        text += &format!(", {used} of {experts} experts");
    }
    if let Some(trained) = model.trained_context {
        text += &format!(", trained for {trained} tokens");
    }
    Some(text)
}

fn tokenizer(tokenizer: &TokenizerSummary, model: &Description) -> String {
    let pre = tokenizer.pre.as_ref().map(|pre| format!(" ({pre})")).unwrap_or_default();
    let bos = if tokenizer.add_bos { ", adds BOS" } else { "" };
    let template = if model.chat_template { ", chat template" } else { "" };
    format!("tokenizer {}{pre}, {} tokens{bos}{template}", tokenizer.model, tokenizer.size)
}

fn dependence(model: &Description) -> Option<String> {
    if model.target_layers.is_empty() {
        return None;
    }
    let layers: Vec<String> = model.target_layers.iter().map(i64::to_string).collect();
    let mut text = format!("reads layers {} of its target", layers.join(", "));
    if let Some(width) = model.target_width {
        text += &format!(", which must have width {width}");
    }
    if let Some(block) = model.block_size {
        text += &format!(", drafts blocks of {block}");
    }
    Some(text)
}

fn memory(out: &mut dyn Write, report: &Report) -> io::Result<()> {
    let memory = &report.memory;
    let pair = |target: u64, draft: u64| match report.draft {
        Some(_) => format!("{} + {}", bytes(target), bytes(draft)),
        None => bytes(target + draft),
    };
    writeln!(
        out,
        "{}about {}: weights {}, caches {}",
        label("memory"),
        bytes(memory.total),
        pair(memory.target_weights, memory.draft_weights),
        pair(memory.target_cache, memory.draft_cache)
    )
}

fn checks(out: &mut dyn Write, report: &Report) -> io::Result<()> {
    writeln!(out, "{}", label("checks").trim_end())?;
    let width = report.checks.iter().map(|check| measure_text_width(&check.code)).max().unwrap_or(0);
    let failed = report.failed();
    let passed = report.checks.iter().filter(|check| check.passed);
    for check in passed {
        let mark = Style::new().green().apply_to("ok    ");
        writeln!(out, "  {mark} {:<width$}  {}", check.code, one_line(&values(check)))?;
    }
    for check in failed {
        let (style, word) = match check.severity {
            Severity::Impossible => (Style::new().red().bold(), "FAILS "),
            Severity::Risky => (Style::new().yellow().bold(), "RISKY "),
            Severity::Wasteful => (Style::new().yellow(), "WASTE "),
        };
        writeln!(out, "  {} {:<width$}  {}", style.apply_to(word), check.code, one_line(&check.message))?;
        let indent = " ".repeat(width + 11);
        if check.target.is_some() || check.draft.is_some() {
            writeln!(out, "{indent}{}", one_line(&values(check)))?;
        }
        writeln!(out, "{indent}{} {}", Style::new().bold().apply_to("cure:"), one_line(&check.cure))?;
    }
    Ok(())
}

/// What a rule compared.
fn values(check: &Check) -> String {
    match (&check.target, &check.draft) {
        (Some(target), Some(draft)) => format!("target {target}, draft {draft}"),
        (Some(target), None) => target.clone(),
        (None, Some(draft)) => format!("draft {draft}"),
        (None, None) => check.message.clone(),
    }
}

fn verdict(out: &mut dyn Write, report: &Report) -> io::Result<()> {
    let methods: Vec<String> = report.effective.iter().map(|method| method.to_string()).collect();
    let methods =
        if methods.is_empty() { "without speculation".to_owned() } else { format!("with {}", methods.join(",")) };
    let because = report.reason.as_ref().map(|reason| format!(" ({})", one_line(reason))).unwrap_or_default();
    let refused = report.failed().iter().filter(|check| check.severity != Severity::Wasteful).count();
    let (style, text) = match report.verdict {
        Verdict::Works => (Style::new().green().bold(), format!("works {methods}{because}")),
        Verdict::Incompatible => {
            let rules = if refused == 1 { "1 rule" } else { &format!("{refused} rules") };
            (Style::new().red().bold(), format!("does not work {methods}{because}: {rules} above"))
        }
        Verdict::Broken => (Style::new().red().bold(), "a file is broken or no model".to_owned()),
    };
    writeln!(out, "{}{}", label("verdict"), style.apply_to(text))
}

fn bytes(count: u64) -> String {
    rounded(count, 1000, [" B", " kB", " MB", " GB"])
}

/// A number with three significant digits and a unit.
fn rounded(count: u64, step: u64, units: [&str; 4]) -> String {
    let (mut value, mut unit) = (count as f64, 0);
    while value >= step as f64 && unit + 1 < units.len() {
        value /= step as f64;
        unit += 1;
    }
    let digits = if unit == 0 || value >= 100.0 {
        0
    } else if value >= 10.0 {
        1
    } else {
        2
    };
    format!("{value:.digits$}{}", units[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!((bytes(0), bytes(999), bytes(1234)), ("0 B".into(), "999 B".into(), "1.23 kB".into()));
        assert_eq!((bytes(98_041_000), bytes(1 << 40)), ("98.0 MB".into(), "1100 GB".into()));
    }
}
