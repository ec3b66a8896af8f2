//! Files of the size of real models, of which only the header is there to be read.

use std::{io, path::Path};

use super::{
    described::Described,
    llama::{Llama, Shape},
    named::Named,
};
use crate::{
    gguf::{Gguf, TensorType},
    vocab::{Kind, Vocabulary},
};

/// The named files of this kind.
pub(super) const FILES: &[Named] = &[
    Named::new("huge", "8 GB of nothing under the header of a real size, with 256k tokens; never to be loaded", || {
        let shape =
            Shape { layers: 9, width: 4096, heads: 32, kv_heads: 8, feed_forward: 14_336, context_length: 131_072 };
        Box::new(Huge(sized(Llama::target(1), shape).labelled("huge")))
    }),
    Named::new("huge-draft", "a draft for `huge` of a real size; never to be loaded", || {
        let shape = Shape { layers: 6, width: 512, heads: 8, kv_heads: 4, feed_forward: 1536, context_length: 131_072 };
        Box::new(Huge(sized(Llama::target(1).draft(1.0), shape).labelled("huge-draft")))
    }),
];

/// A model whose weights are left out when it is written.
#[derive(Debug)]
struct Huge(Llama);

impl Described for Huge {
    fn label(&self) -> &str {
        self.0.label()
    }

    fn gguf(&self) -> Gguf<'_> {
        self.0.gguf()
    }

    fn write(&self, path: &Path) -> io::Result<()> {
        self.gguf().write_sparse(path)
    }
}

fn sized(model: Llama, shape: Shape) -> Llama {
    let vocabulary = Vocabulary::new(Kind::ByteLevel);
    let filler = (1 << 18) - vocabulary.size();
    model.with_shape(shape).with_weights(TensorType::F16).with_vocabulary(vocabulary.with_filler(filler))
}
