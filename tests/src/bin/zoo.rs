//! Writes models of the zoo to files: `cargo run -p llama-spec-tests --bin zoo -- --list`.

use std::{path::PathBuf, time::Instant};

use anyhow::{Context as _, Result, bail};
use clap::Parser;
use llama_spec_tests::zoo;

/// Write models of the zoo: GGUF files made by a program, whose text is known beforehand
#[derive(Debug, Parser)]
#[command(arg_required_else_help = true)]
struct Args {
    /// List the names
    #[arg(long, conflicts_with_all = ["write", "names"])]
    list: bool,

    /// The directory to write NAME.gguf into; made if it is not there
    #[arg(long, value_name = "DIR", required_unless_present = "list")]
    write: Option<PathBuf>,

    /// The models to write
    #[arg(value_name = "NAME", required_unless_present = "list")]
    names: Vec<String>,
}

fn main() -> Result<()> {
    let args = Args::parse();
    let all = zoo::named();
    let Some(dir) = args.write else {
        for named in &all {
            println!("{:<24}{}", named.name, named.about);
        }
        return Ok(());
    };
    std::fs::create_dir_all(&dir).with_context(|| format!("cannot make the directory {}", dir.display()))?;
    for name in &args.names {
        let Some(named) = all.iter().find(|named| named.name == name) else {
            bail!("no model is called {name:?}; `--list` gives the names");
        };
        let path = dir.join(format!("{name}.gguf"));
        let start = Instant::now();
        let model = named.model();
        model.write(&path).with_context(|| format!("cannot write {}", path.display()))?;
        let megabytes = model.gguf().file_size() as f64 / 1e6;
        println!("{}: {megabytes:.1} MB in {:.1} s", path.display(), start.elapsed().as_secs_f64());
    }
    Ok(())
}
