//! A configuration for tests: drafts of one length, whatever the method and whether they pay.

use llama_spec::spec::{DraftModelSettings, Method, NgramMapSettings, NgramModSettings, SpecConfig};

/// These methods with drafts of at most `length` tokens, looking up as few tokens as possible so that much is drafted.
pub(crate) fn config(methods: &[Method], length: u32) -> SpecConfig {
    let map = NgramMapSettings { lookup: 3, draft: length.max(3) as u16, hits_min: 1 };
    SpecConfig::new(methods)
        .draft_max(length)
        .fixed_length(length)
        .draft_model(DraftModelSettings { max: length, ..Default::default() })
        .ngram_simple(map)
        .ngram_map_k(map)
        .ngram_map_k4v(map)
        .ngram_mod(NgramModSettings { lookup: 3, min: 0, max: length as u16 })
}
