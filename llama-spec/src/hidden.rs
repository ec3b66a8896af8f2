//! Hidden states that go into a context beside tokens, and those that come out of it besides logits: what drafts read of their
//! target, and what they go on from themselves.

use crate::batch::Batch;
use crate::context::Context;
use crate::error::{DecodeError, Failure};
use crate::ffi::status::Failed;

impl Context {
    /// As [`Context::decode`], for a context that reads a row beside each token: `rows` has them one after the other.
    pub(crate) fn decode_with_rows(&mut self, batch: &Batch, rows: &[f32]) -> Result<(), DecodeError> {
        let width = rows.len() / batch.len().max(1);
        self.run(batch.len(), |raw| raw.fill_batch_with_rows(batch.entries(), rows, width), true)
    }

    /// Runs the encoder of an EAGLE-3 draft over rows of features, each `width` long. What it makes of them is read by
    /// [`hidden`](Self::hidden).
    pub(crate) fn encode_features(&mut self, rows: &[f32], width: usize) -> Result<(), DecodeError> {
        self.run(rows.len() / width.max(1), |raw| raw.fill_features(rows, width), false)
    }

    /// The hidden states of an entry of the last batch, before the last norm.
    pub(crate) fn hidden(&self, entry: usize) -> Result<&[f32], Failure> {
        match entry < self.decoded() {
            true => Ok(self.raw().hidden(entry)?),
            false => Err(Failure::new(format!("the last batch has no entry {entry}"))),
        }
    }

    /// The input of a layer, with a row for each entry of the last batch.
    pub(crate) fn layer_input(&self, layer: u32) -> Result<&[f32], Failure> {
        match self.decoded() {
            0 => Err(Failure::new("nothing was decoded yet, or the last decode failed")),
            entries => Ok(self.raw().layer_input(layer, entries)?),
        }
    }

    /// Lets it give the hidden states of all entries, or of those with output only, from the next batch on.
    pub(crate) fn give_hidden(&mut self, of_outputs: bool) -> Result<(), Failed> {
        self.raw_mut().give_hidden(of_outputs)
    }

    /// Lets it give the input of a layer, from the next batch on.
    pub(crate) fn give_layer_input(&mut self, layer: u32) -> Result<(), Failed> {
        self.raw_mut().give_layer_input(layer)
    }

    /// The head for multi-token prediction that the next decodes run.
    pub(crate) fn set_head(&mut self, head: u32) -> Result<(), Failed> {
        self.raw_mut().set_head(head)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use super::*;
    use crate::context::{ContextOptions, Role};
    use crate::model::Model;
    use crate::token::{Slot, Token};
    use llama_spec_tests::zoo;

    fn load(name: &str) -> Model {
        Model::builder(zoo::file(name)).mtp(name.ends_with("mtp")).load().unwrap()
    }

    fn context(model: &Model, role: &Role<'_>) -> Context {
        let options = ContextOptions::default().length_per_slot(64).slots(2).batch(16).micro_batch(8).threads(1);
        Context::with_role(model, &options, role).unwrap()
    }

    fn batch(tokens: usize, outputs: usize) -> Batch {
        let mut batch = Batch::new();
        (0..tokens).for_each(|number| {
            batch.push(Token::new(10), number as u32, Slot::FIRST, number < outputs);
        });
        batch
    }

    fn is_refused(done: Result<(), DecodeError>) -> bool {
        matches!(done, Err(DecodeError::Refused { .. }))
    }

    #[test]
    fn only_what_a_context_reads_is_decoded() {
        let plain = load("target");
        let mut target = context(&plain, &Role::default());
        let width = plain.width() as usize;
        assert!(is_refused(target.decode_with_rows(&batch(2, 1), &vec![0.0; 2 * width])), "a model that reads no rows");
        assert!(
            is_refused(target.encode_features(&vec![0.0; 3 * width], 3 * width)),
            "a model without such an encoder"
        );
        target.decode(&batch(2, 1)).unwrap();

        let heads = load("qwen35-mtp");
        let trunk = context(&heads, &Role::default());
        let mut mtp = context(&heads, &Role { target: Some(&trunk), heads: true, outputs: 1 });
        let width = heads.output_width() as usize;
        assert!(is_refused(mtp.decode(&batch(2, 1))), "heads read rows");
        for wrong in [0, 1, width - 1, width + 1] {
            assert!(is_refused(mtp.decode_with_rows(&batch(2, 1), &vec![0.0; 2 * wrong])), "{wrong}");
        }
        assert!(is_refused(mtp.encode_features(&vec![0.0; width], width)));
        assert!(mtp.set_head(7).is_err());
        mtp.decode_with_rows(&batch(2, 1), &vec![0.0; 2 * width]).unwrap();
        mtp.memory().clear().unwrap();
        mtp.decode_with_rows(&batch(2, 1), &vec![f32::NAN; 2 * width]).unwrap();
    }

    #[test]
    fn an_eagle3_draft_is_not_asked_for_what_would_end_the_process() {
        let (target, draft) = (load("recall"), load("eagle3-recall"));
        let trunk = context(&target, &Role::default());
        let mut eagle3 = context(&draft, &Role { target: Some(&trunk), heads: false, outputs: 1 });
        eagle3.give_hidden(true).unwrap();
        let (width, features) = (draft.width() as usize, 3 * target.width() as usize);
        assert!(eagle3.hidden(0).is_err(), "nothing was decoded");
        assert!(is_refused(eagle3.decode(&batch(2, 0))), "tokens alone");
        assert!(is_refused(eagle3.decode_with_rows(&batch(4, 1), &vec![0.0; 4 * width])), "some outputs");
        assert!(is_refused(eagle3.decode_with_rows(&batch(2, 2), &vec![0.0; 2 * features])), "features beside tokens");
        for wrong in [1, features - 1, features + 1, width] {
            assert!(is_refused(eagle3.encode_features(&vec![0.0; 2 * wrong], wrong)), "{wrong}");
        }
        assert!(is_refused(eagle3.encode_features(&vec![0.0; 9 * features], features)), "more than a micro-batch");
        assert!(is_refused(eagle3.encode_features(&[], features)));
        eagle3.encode_features(&vec![0.5; 8 * features], features).unwrap();
        assert_eq!(eagle3.hidden(7).unwrap().len(), width);
        assert!(eagle3.hidden(8).is_err());
        eagle3.decode_with_rows(&batch(2, 2), &vec![0.0; 2 * width]).unwrap();
        assert_eq!(eagle3.hidden(1).unwrap().len(), width);
    }

    #[test]
    fn inputs_of_layers_are_as_many_as_entries() {
        let model = load("target");
        let mut context = context(&model, &Role::default());
        assert!(context.give_layer_input(999).is_err());
        assert!(context.layer_input(1).is_err());
        context.give_layer_input(1).unwrap();
        assert!(context.layer_input(1).is_err(), "it was switched on, and nothing decoded since");
        context.decode(&batch(11, 1)).unwrap();
        let rows = context.layer_input(1).unwrap().to_vec();
        assert_eq!(rows.len(), 11 * model.width() as usize);
        assert!(rows.iter().any(|value| *value != 0.0));
        assert!(context.layer_input(0).is_err());
        assert!(context.layer_input(999).is_err());
    }
}
