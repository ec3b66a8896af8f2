//! Whoever changes the memory has the context for himself.
fn main() {
    let model = llama_spec::Model::load("model.gguf").unwrap();
    let mut context = model.context(&llama_spec::ContextOptions::default()).unwrap();
    let mut memory = context.memory();
    context.decode(&llama_spec::Batch::new()).unwrap();
    memory.clear().unwrap();
}
