//! What `--quick` stands for.

use super::Options;

impl Options {
    /// With what `--quick` stands for, where nothing else was said.
    pub fn settled(mut self) -> Self {
        if self.quick {
            self.rounds = 1;
            self.prompts = self.prompts.or(Some(self.concurrency.iter().copied().max().unwrap_or(1).max(2)));
            self.tokens = self.tokens.or(Some(64));
            if self.settings.is_empty() {
                self.settings = ["ngram-simple:8:4", "ngram-mod:16:8", "ngram-mod:64"].map(str::to_owned).into();
            }
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::super::options::tests::parse;

    #[test]
    fn quick_is_short_where_nothing_else_was_said() {
        let quick = parse("--llama-server a --quick --concurrency 1,4 --tokens 90".split_whitespace()).settled();
        assert_eq!((quick.rounds, quick.prompts, quick.tokens), (1, Some(4), Some(90)));
        assert!(!quick.settings.is_empty());
    }
}
