//! Logits are overwritten by the next decode.
fn main() {
    let model = llama_spec::Model::load("model.gguf").unwrap();
    let mut context = model.context(&llama_spec::ContextOptions::default()).unwrap();
    let batch = llama_spec::Batch::new();
    context.decode(&batch).unwrap();
    let logits = context.logits(0).unwrap();
    context.decode(&batch).unwrap();
    println!("{}", logits[0]);
}
