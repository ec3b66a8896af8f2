//! Compares the table of architectures with the source that `vendor/` pins. When the pin moves, this test names the rows to
//! read again; when llama.cpp's source is laid out in another way, it says which part it could not find.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use llama_spec::arch::{Architecture, MemoryKind, MtpGraph, MultiAxis, OutputWidth, Role};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What `vendor/Cargo.toml` says about the pin this table was read from.
const REVIEWED: &str = "0.8.0";

#[test]
fn the_table_is_what_the_source_says() {
    let source = Source::read();
    assert_eq!(source.version(), REVIEWED, "the pin has moved: review llama-spec/src/arch/table.rs");
    let names: Vec<&str> = source.names.iter().map(|(_, name)| name.as_str()).collect();
    let rows: Vec<&str> = Architecture::ALL.iter().map(|row| row.name).collect();
    assert_eq!(rows, names, "the names in LLM_ARCH_NAMES, in order");
    let wrong: Vec<String> = source.names.iter().flat_map(|(id, name)| source.differences(id, name)).collect();
    assert!(
        wrong.is_empty(),
        "rows of llama-spec/src/arch/table.rs that the source contradicts:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn rules_name_files_that_are_there() {
    let root = root();
    for rule in llama_spec::compat::Rule::all() {
        let words = rule.source.split([' ', ',', ';', '(', ')']);
        for file in words.filter(|word| word.contains('/') && (word.ends_with(".cpp") || word.ends_with(".h"))) {
            assert!(root.join(file).is_file(), "{}: the source has no {file} any more", rule.code);
        }
    }
}

/// The parts of the source that the table was read from.
struct Source {
    root: PathBuf,
    /// Identifier and name of each architecture.
    names: Vec<(String, String)>,
    /// `src/llama-arch.cpp` and `src/llama-model.cpp`.
    arch: String,
    model: String,
    /// The struct that implements an architecture, by identifier.
    implementations: HashMap<String, String>,
    structs: HashMap<String, Struct>,
    /// What is done in which function: the struct, the function or graph, the fact.
    facts: HashSet<(String, String, &'static str)>,
    /// The tensors of a block that the heads of a struct ask for, by the names in files.
    head_tensors: HashMap<String, BTreeSet<String>>,
}

/// One `struct llama_model_*` of `src/models/models.h`.
#[derive(Default)]
struct Struct {
    base: String,
    text: String,
}

/// Facts and the text by which a line shows them.
const MARKS: [(&str, &str); 9] = [
    ("hidden", "t_h_nextn = "),
    ("layers", "t_layer_inp[il] = "),
    ("last layer", "t_layer_inp[n_layer] = "),
    ("mtp", "gtype == LLM_GRAPH_TYPE_DECODER_MTP"),
    ("heads", "LLM_TENSOR_NEXTN_EH_PROJ"),
    ("one head", "n_layer_nextn == 1"),
    ("hyper connections", "n_embd_out_impl = hparams.dsv4_hc_mult * hparams.n_embd;"),
    ("embedding", "n_embd_out_impl = hparams.n_embd;"),
    ("one", "n_embd_out_impl = 1;"),
];

impl Source {
    fn read() -> Self {
        let root = root();
        let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap_or_else(|why| panic!("{path}: {why}"));
        let (arch, model, header) =
            (read("src/llama-arch.cpp"), read("src/llama-model.cpp"), read("src/models/models.h"));
        let table = between(&arch, "LLM_ARCH_NAMES = {", "\n};");
        let names = table.lines().filter_map(|line| {
            let (id, rest) = line.trim().strip_prefix("{ ")?.split_once(',')?;
            Some((id.to_owned(), rest.split('"').nth(1)?.to_owned()))
        });
        let names = names.filter(|(id, _)| id != "LLM_ARCH_UNKNOWN").collect();
        let mut implementations = HashMap::new();
        let mut waiting = Vec::new();
        for line in between(&model, "llama_model_mapping(", "\n}\n").lines() {
            if let Some(id) = case(line) {
                waiting.push(id.to_owned());
            } else if let Some((_, rest)) = line.split_once("return new llama_model_") {
                let name = rest.split('(').next().unwrap();
                waiting.drain(..).for_each(|id| drop(implementations.insert(id, name.to_owned())));
            }
        }
        let structs = header.split("\nstruct llama_model_").skip(1).filter_map(|text| {
            let (name, rest) = text.split_once(" : public ")?;
            let base = rest.split([' ', '{']).next()?.trim_start_matches("llama_model_").to_owned();
            Some((name.to_owned(), Struct { base, text: rest.split("\n};").next()?.to_owned() }))
        });
        let structs = structs.collect();
        let (facts, head_tensors) = facts(&root.join("src").join("models"));
        Self { root, names, arch, model, implementations, structs, facts, head_tensors }
    }

    fn version(&self) -> String {
        let text = std::fs::read_to_string(self.root.join("CMakeLists.txt")).unwrap();
        let part = |name| between(&text, &format!("set(LLAMA_VERSION_{name} "), ")");
        format!("{}.{}.{}", part("MAJOR"), part("MINOR"), part("PATCH"))
    }

    /// Where the row of this architecture is not what the source says.
    fn differences(&self, id: &str, name: &str) -> Vec<String> {
        let row = Architecture::find(name).unwrap();
        let mut wrong = Vec::new();
        let mut check = |what: &str, table: String, source: String| {
            if table != source {
                wrong.push(format!("  {name}: {what} is {table} in the table and {source} in the source"));
            }
        };
        let listed = |function: &str| cases(between(&self.arch, function, "\n}\n")).any(|case| case == id);
        let no_memory =
            between(between(&self.model, "llama_model::create_memory(", "\n}\n"), "switch (arch) {", "res = nullptr");
        let memory = match () {
            () if cases(no_memory).any(|case| case == id) => MemoryKind::None,
            () if listed("bool llm_arch_is_recurrent") => MemoryKind::Recurrent,
            () if listed("bool llm_arch_is_hybrid") => MemoryKind::Hybrid,
            () => MemoryKind::Attention,
        };
        check("memory", show(row.memory), show(memory));
        check("snapshots", show(row.snapshots), show(listed("bool llm_arch_supports_rs_rollback")));
        check("tensor_split", show(row.tensor_split), show(!listed("bool llm_arch_supports_sm_tensor")));
        check("mixed_batches", show(row.mixed_batches), show(!listed("bool llm_arch_supports_mixed_batch")));
        check("diffusion", show(row.role == Role::Diffusion), show(listed("bool llm_arch_is_diffusion")));
        check("multi_axis", show(row.multi_axis), show(self.axes(id)));
        let implementation = self.implementations.get(id);
        check("an implementation", show(row.role != Role::Unsupported), show(implementation.is_some()));
        let Some(of) = implementation.filter(|_| row.role != Role::Projector) else { return wrong };
        let builds = self.declaring(of, "build_arch_graph");
        let trunk = self.trunk(builds);
        let has =
            |of: &str, part: &str, fact: &'static str| self.facts.contains(&(of.to_owned(), part.to_owned(), fact));
        check("publishes_hidden", show(row.publishes_hidden), show(has(trunk, "graph", "hidden")));
        check("publishes_layers", show(row.publishes_layers), show(has(trunk, "graph", "layers")));
        check("taps_last_layer", show(row.taps_last_layer), show(has(trunk, "graph", "last layer")));
        let has_graph = has(builds, "build_arch_graph", "mtp") && self.structs[builds].text.contains("graph_mtp(");
        let mtp = match () {
            // It has no graph of its own for them: its only graph is the head.
            () if row.mtp == MtpGraph::SharedMemory => MtpGraph::SharedMemory,
            () if has_graph && has(builds, "graph_mtp", "one head") => MtpGraph::Single,
            () if has_graph => MtpGraph::Chained,
            () if has(self.declaring(of, "load_arch_tensors"), "load_arch_tensors", "heads") => MtpGraph::Skipped,
            () => MtpGraph::None,
        };
        check("mtp", show(row.mtp), show(mtp));
        let asked = self.head_tensors.get(builds).filter(|_| has_graph).cloned().unwrap_or_default();
        check("head_tensors", show(row.head_tensors().map(str::to_owned).collect::<BTreeSet<_>>()), show(asked));
        let width = match () {
            () if has(of, "load_arch_hparams", "hyper connections") => OutputWidth::HyperConnections,
            () if has(of, "load_arch_hparams", "embedding") => OutputWidth::Embedding,
            () if has(of, "load_arch_hparams", "one") => OutputWidth::One,
            () => OutputWidth::FromKey,
        };
        check("output_width", show(row.output_width), show(width));
        wrong
    }

    /// The struct, or the nearest one it is made from, that declares this.
    fn declaring<'a>(&'a self, of: &'a str, what: &str) -> &'a str {
        let Struct { base, text } = self.structs.get(of).unwrap_or_else(|| panic!("models.h has no llama_model_{of}"));
        if text.contains(what) || !self.structs.contains_key(base) { of } else { self.declaring(base, what) }
    }

    /// The struct whose graph it runs.
    fn trunk<'a>(&'a self, of: &'a str) -> &'a str {
        match self.structs[of].text.split_once("using graph = llama_model_") {
            Some((_, rest)) => self.trunk(rest.split(':').next().unwrap()),
            None => of,
        }
    }

    fn axes(&self, id: &str) -> MultiAxis {
        let body = between(&self.model, "llama_rope_type llama_model_rope_type(", "\n}\n");
        let after = body.split_once(&format!("case {id}:")).unwrap_or_else(|| panic!("no rope type of {id}")).1;
        let until = after.find("\n            return ").unwrap_or_else(|| panic!("no rope type of {id}"));
        let end = until + 1 + after[until + 1..].find('\n').unwrap();
        match &after[..end] {
            text if text.contains("use_mrope()") || text.contains("rope_sections") => MultiAxis::WithSections,
            text if text.contains("MROPE") => MultiAxis::Always,
            _ => MultiAxis::Never,
        }
    }
}

/// What the code calls tensors that have another name in files.
const RENAMED: [(&str, &str); 5] = [
    ("wqkv", "attn_qkv"),
    ("wq_a", "attn_q_a"),
    ("wq_b", "attn_q_b"),
    ("wkv_a_mqa", "attn_kv_a_mqa"),
    ("wk_b", "attn_k_b"),
];

type Facts = HashSet<(String, String, &'static str)>;

/// The marks in the sources of the models, by the function in which they stand, and the tensors that heads ask for.
fn facts(folder: &Path) -> (Facts, HashMap<String, BTreeSet<String>>) {
    let (mut facts, mut tensors) = (HashSet::new(), HashMap::<String, BTreeSet<String>>::new());
    for file in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if file.extension().is_none_or(|extension| extension != "cpp") {
            continue;
        }
        let mut place = None;
        for line in std::fs::read_to_string(&file).unwrap().lines() {
            // A definition begins at the start of the line: `type llama_model_x::part...(`.
            if !line.starts_with([' ', '}', '/', '#'])
                && let Some((_, rest)) = line.split_once("llama_model_")
                && let Some((of, rest)) = rest.split_once("::")
            {
                let part = rest.split(|it: char| !it.is_alphanumeric() && it != '_').next().unwrap();
                place = Some((of.to_owned(), part.to_owned()));
            }
            if let Some((of, part)) = &place
                && part == "graph_mtp"
                && line.trim_start().starts_with("GGML_ASSERT(")
            {
                let words = line.split(|it: char| !it.is_alphanumeric() && !matches!(it, '_' | '.'));
                let names = words.filter_map(|word| word.strip_prefix("layer."));
                let names =
                    names.map(|name| RENAMED.iter().find(|(code, _)| *code == name).map_or(name, |(_, file)| file));
                tensors.entry(of.clone()).or_default().extend(names.map(str::to_owned));
            }
            for (fact, _) in MARKS.iter().filter(|(_, mark)| line.contains(mark)) {
                let (of, part) = place.clone().unwrap_or_else(|| panic!("{}: {line}", file.display()));
                facts.insert((of, part, *fact));
            }
        }
    }
    for (fact, mark) in MARKS {
        assert!(facts.iter().any(|(_, _, found)| *found == fact), "src/models has no `{mark}` any more");
    }
    (facts, tensors)
}

fn between<'a>(text: &'a str, from: &str, to: &str) -> &'a str {
    let found = text.split_once(from).and_then(|(_, rest)| rest.split(to).next());
    found.unwrap_or_else(|| panic!("the source has no `{from}` any more"))
}

fn cases(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(case)
}

fn case(line: &str) -> Option<&str> {
    line.trim().strip_prefix("case ")?.split(':').next().filter(|id| id.starts_with("LLM_ARCH_"))
}

fn show(value: impl std::fmt::Debug) -> String {
    format!("{value:?}")
}

/// The source, where the build script of llama-sys finds it.
fn root() -> PathBuf {
    let vendor = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join("vendor");
    let copy = vendor.join("llama.cpp");
    if let Some(named) = std::env::var_os("LLAMA_SYS_SOURCE_DIR") {
        return named.into();
    }
    if copy.is_dir() {
        return copy;
    }
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--locked", "--format-version=1", "--filter-platform", "x86_64-unknown-linux-gnu"]);
    let output = cargo.arg("--manifest-path").arg(vendor.join("Cargo.toml")).output().unwrap();
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr)));
    let packages = metadata["packages"].as_array().unwrap().iter();
    let mut roots = packages.map(|it| Path::new(it["manifest_path"].as_str().unwrap()).with_file_name("llama.cpp"));
    roots.find(|root| root.join("CMakeLists.txt").is_file()).expect("the pinned package carries llama.cpp")
}
