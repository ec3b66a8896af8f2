//! A vocabulary lives inside its model.
fn main() {
    let vocab = {
        let model = llama_spec::Model::load("model.gguf").unwrap();
        model.vocab()
    };
    println!("{}", vocab.len());
}
