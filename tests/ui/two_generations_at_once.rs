//! A generator does one generation at a time.
use llama_spec::{GenerateOptions, Generator, Model};

fn main() {
    let model = Model::load("model.gguf").unwrap();
    let mut generator = Generator::builder(&model).build().unwrap();
    let first = generator.generate("a", GenerateOptions::greedy()).unwrap();
    let second = generator.generate("b", GenerateOptions::greedy()).unwrap();
    println!("{} {}", first.count(), second.count());
}
