//! Values of arguments: what is out of range is refused here, with the range, before a model is loaded.

use llama_spec::options::GpuLayers;
use llama_spec::spec::{DraftLength, Method};
use serde::de::DeserializeOwned;
use serde::de::value::{Error, StrDeserializer};
use std::fmt;
use std::str::FromStr;

/// A list of speculative methods as the user writes it; empty for `none`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Methods(pub Vec<Method>);

impl FromStr for Methods {
    type Err = llama_spec::Error;

    fn from_str(list: &str) -> Result<Self, Self::Err> {
        Method::parse_list(list).map(Self)
    }
}

impl fmt::Display for Methods {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_slice() {
            [] => f.write_str("none"),
            methods => f.write_str(&methods.iter().map(|method| method.name()).collect::<Vec<_>>().join(",")),
        }
    }
}

pub(crate) fn temperature(text: &str) -> Result<f32, String> {
    let allowed = |value: &f32| *value == 0.0 || (0.0001..=1000.0).contains(value);
    let number = text.parse().ok().filter(allowed);
    number.ok_or_else(|| "expected 0 (always the most probable token) or a number from 0.0001 to 1000".into())
}

pub(crate) fn probability(text: &str) -> Result<f32, String> {
    let number = text.parse().ok().filter(|value| (0.0..=1.0).contains(value));
    number.ok_or_else(|| "expected a number from 0 to 1".into())
}

/// The library finds out how tokens can be taken back with a batch of two.
pub(crate) fn context(text: &str) -> Result<u32, String> {
    let number = text.parse().ok().filter(|tokens| *tokens != 1);
    number.ok_or_else(|| "expected 0 (what the model was trained for) or a number of tokens from 2".into())
}

pub(crate) fn gpu_layers(text: &str) -> Result<GpuLayers, String> {
    match text {
        "auto" => Ok(GpuLayers::Auto),
        "all" => Ok(GpuLayers::All),
        count => {
            count.parse().map(GpuLayers::Count).map_err(|_| "expected `auto`, `all`, or a number of layers".into())
        }
    }
}

pub(crate) fn draft_length(text: &str) -> Result<DraftLength, String> {
    let fixed = || text.parse().ok().filter(|tokens| (1..=1024).contains(tokens)).map(DraftLength::Fixed);
    match text {
        "adaptive" => Ok(DraftLength::Adaptive),
        _ => fixed().ok_or_else(|| "expected `adaptive` or a number of tokens from 1 to 1024".into()),
    }
}

/// One of the words by which the library names its choices.
pub(crate) fn word<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    T::deserialize(StrDeserializer::<Error>::new(text)).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_ranges() {
        for good in ["0", "0.7", "1000", "1e-4"] {
            assert_eq!(temperature(good), Ok(good.parse().unwrap()));
        }
        for bad in ["-1", "NaN", "inf", "0.00001", "1001", "", "warm", "1,5"] {
            assert!(temperature(bad).is_err(), "{bad}");
        }
        for bad in ["-0.1", "1.1", "nan", "x"] {
            assert!(probability(bad).is_err(), "{bad}");
        }
        assert_eq!((probability("0"), probability("1")), (Ok(0.0), Ok(1.0)));
    }

    #[test]
    fn a_context_holds_two_tokens_or_what_the_model_was_trained_for() {
        assert_eq!((context("0"), context("2"), context("8192")), (Ok(0), Ok(2), Ok(8192)));
        assert!(["1", "-1", "4294967296", "long"].iter().all(|bad| context(bad).is_err()));
    }

    #[test]
    fn layers_are_a_number_or_a_word() {
        assert_eq!(gpu_layers("auto"), Ok(GpuLayers::Auto));
        assert_eq!(gpu_layers("all"), Ok(GpuLayers::All));
        assert_eq!(gpu_layers("20"), Ok(GpuLayers::Count(20)));
        assert!(gpu_layers("-1").is_err() && gpu_layers("most").is_err());
    }

    #[test]
    fn words_are_those_of_the_library() {
        use llama_spec::options::{FlashAttention, KvType, SplitMode};
        assert_eq!((word("tensor"), word("iq4_nl")), (Ok(SplitMode::Tensor), Ok(KvType::Iq4Nl)));
        let refused = word::<FlashAttention>("maybe").unwrap_err();
        assert!(["maybe", "auto", "off", "on"].iter().all(|word| refused.contains(word)), "{refused}");
    }

    #[test]
    fn lists_of_methods_lead_back() {
        for list in ["none", "ngram-mod", "ngram-simple,draft-simple"] {
            assert_eq!(list.parse::<Methods>().unwrap().to_string(), list);
        }
    }
}
