//! Compares our server and engine with llama-server; `cargo xtask compare` builds what it needs and starts it.

use anyhow::{Context, Result, ensure};
use clap::Parser;
use llama_spec_benches::compare::{self, AUTO, Candidate, Facts, Options, Plan, Results, Setup, Side, Workload};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// Compare our server and engine with llama-server
#[derive(Debug, Parser)]
struct Cli {
    /// Our server
    #[arg(long, value_name = "FILE")]
    server: PathBuf,
    #[command(flatten)]
    options: Options,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(&cli.server, cli.options.settled()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("error: {why:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(server: &Path, options: Options) -> Result<()> {
    let model = options.model.clone().context("--model is needed")?;
    let processors = std::thread::available_parallelism().map_or(1, |count| count.get().min(16) as u32);
    let threads = options.threads.unwrap_or(processors);
    let facts = Facts::gather(&options.llama_server, &model, options.draft.as_deref(), threads)?;
    let plan = plan(server, model, threads, &options)?;
    eprintln!("{}, {} threads; {}", facts.cpu, facts.threads, facts.model);
    eprintln!("ours {} (llama.cpp {}), theirs: {}", facts.ours, facts.our_llama_cpp, facts.theirs);
    let results = plan.run()?;
    compare::print(&results);
    if let Some(file) = &options.json {
        let all = json!({ "machine": facts, "goals": results.goals(), "results": results });
        let text = serde_json::to_string_pretty(&all).context("the results are no JSON")?;
        write(file, &text)?;
    }
    if let Some(file) = &options.svg {
        write(file, &compare::svg(&results))?;
    }
    check_texts(&results, &plan.workloads)
}

fn plan(server: &Path, model: PathBuf, threads: u32, options: &Options) -> Result<Plan> {
    let mut workloads = Workload::named(&options.workloads)?;
    for workload in &mut workloads {
        workload.prompts.truncate(options.prompts.map_or(usize::MAX, |most| most as usize));
        workload.max_tokens = workload.max_tokens.min(options.tokens.unwrap_or(u32::MAX));
    }
    let setup = Setup {
        ours: server.to_owned(),
        theirs: options.llama_server.clone(),
        model,
        draft: options.draft.clone(),
        threads,
        slots: options.slots.unwrap_or(1),
        context: options.context,
        patience: Duration::from_secs(options.timeout),
    };
    Ok(Plan {
        candidates: Candidate::all(&options.settings, &options.ours, !options.no_engine, options.draft.is_some())?,
        setup,
        workloads,
        concurrency: options.concurrency.clone(),
        slots: options.slots,
        rounds: options.rounds,
    })
}

fn write(file: &Path, text: &str) -> Result<()> {
    std::fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))?;
    eprintln!("written: {}", file.display());
    Ok(())
}

/// Speculation must not change a text. Where several are computed at once, who is beside whom changes how numbers are rounded,
/// whoever drafts, so only texts that were alone are held to it.
fn check_texts(results: &Results, workloads: &[Workload]) -> Result<()> {
    for side in [Side::Ours, Side::Engine] {
        let (plain, auto) = (Candidate::plain(side), Candidate::new(side, AUTO));
        for workload in workloads {
            let (same, all) = results.same_texts(1, &workload.name, &auto, &plain);
            ensure!(
                same == all,
                "{auto}: {} of {all} texts of `{}` are not those of plain decoding",
                all - same,
                workload.name
            );
        }
    }
    Ok(())
}
