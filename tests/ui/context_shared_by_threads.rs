//! A context belongs to one thread at a time.
fn main() {
    let model = llama_spec::Model::load("model.gguf").unwrap();
    let context = model.context(&llama_spec::ContextOptions::default()).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| println!("{:?}", context.logits(0)));
    });
}
