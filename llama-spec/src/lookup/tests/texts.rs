//! Texts of the kinds that lookup is for, made from a seed.

/// A prompt and what a model says to it, as numbers of tokens.
#[derive(Clone, Debug)]
pub(crate) struct Recorded {
    /// What kind of text it is.
    pub(crate) name: &'static str,
    /// The prompt.
    pub(crate) prompt: Vec<i32>,
    /// What follows.
    pub(crate) output: Vec<i32>,
}

/// A source of numbers: xorshift64* (Vigna 2016, section 3).
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// The same seed gives the same numbers.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Less than `limit`.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        ((self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize) % limit.max(1)
    }

    /// A rank under Zipf's law, of 20000.
    fn zipf(&mut self) -> i32 {
        let uniform = (self.below(1 << 20) as f64 + 1.0) / f64::from(1 << 20);
        20_000f64.powf(uniform) as i32
    }
}

/// Words by Zipf's law, each of which is followed by one of its few usual companions half of the time.
pub(crate) fn prose(random: &mut Random, length: usize) -> Vec<i32> {
    let mut text = vec![random.zipf()];
    while text.len() < length {
        let last = text.last().copied().unwrap_or_default();
        let companion = Random::new(last as u64 * 4 + random.below(4) as u64).zipf();
        text.push(if random.below(2) == 0 { companion } else { random.zipf() });
    }
    text
}

/// What looks like a program: lines of a few forms, with names that come again.
pub(crate) fn program(random: &mut Random, length: usize) -> Vec<i32> {
    let forms: Vec<Vec<i32>> =
        (0..12).map(|_| (0..3 + random.below(9)).map(|_| 21_000 + random.below(60) as i32).collect()).collect();
    let names: Vec<i32> = (0..40).map(|_| 22_000 + random.below(3000) as i32).collect();
    let mut text = Vec::new();
    while text.len() < length {
        for token in &forms[random.below(forms.len())] {
            text.push(if token % 3 == 0 { names[random.below(8) * random.below(5)] } else { *token });
        }
        text.push(20_001);
    }
    text.truncate(length);
    text
}

/// A copy in which one place in `apart` was changed: a token replaced, put in or left out, or a few of them.
pub(crate) fn edited(random: &mut Random, source: &[i32], apart: usize) -> Vec<i32> {
    let mut text = Vec::new();
    let mut place = 0;
    while let Some(token) = source.get(place) {
        if random.below(apart) == 0 {
            let some = 1 + random.below(3);
            match random.below(3) {
                0 => (0..some).for_each(|_| text.push(random.zipf())),
                1 => place += some,
                _ => {
                    (0..some).for_each(|_| text.push(random.zipf()));
                    place += some;
                }
            }
        } else {
            text.push(*token);
            place += 1;
        }
    }
    text
}

/// A file, and the same file with some edits.
pub(crate) fn copy(seed: u64, length: usize) -> Recorded {
    let random = &mut Random::new(seed);
    let source = if seed.is_multiple_of(2) { prose(random, length / 2) } else { program(random, length / 2) };
    let mut prompt = prose(random, 60);
    prompt.extend(&source);
    Recorded { name: "copy", prompt, output: edited(random, &source, 30) }
}

/// Records with the same keys and other values.
pub(crate) fn list(seed: u64, length: usize) -> Recorded {
    let random = &mut Random::new(seed);
    let keys: Vec<Vec<i32>> =
        (0..5).map(|_| (0..3 + random.below(4)).map(|_| 23_000 + random.below(500) as i32).collect()).collect();
    let kinds: Vec<usize> = (0..keys.len()).map(|_| 1 << random.below(10)).collect();
    let mut text = prose(random, 40);
    while text.len() < length {
        text.push(20_002);
        for (key, kinds) in keys.iter().zip(&kinds) {
            text.extend(key);
            text.push(24_000 + random.below(*kinds) as i32);
            if *kinds > 64 {
                text.push(26_000 + random.below(100) as i32);
            }
            text.push(20_003);
        }
        text.push(20_004);
    }
    let output = text.split_off(text.len() / 4);
    Recorded { name: "list", prompt: text, output }
}

/// Turns of an agent: a file is shown, a few words are said, a part of the file is changed, and it is shown again.
pub(crate) fn agent(seed: u64, length: usize) -> Recorded {
    let random = &mut Random::new(seed);
    let call: Vec<i32> = (0..14).map(|_| 27_000 + random.below(300) as i32).collect();
    let mut file = program(random, (length / 8).clamp(100, 1200));
    let mut text = prose(random, 100);
    text.extend(&file);
    let prompt = text.len();
    while text.len() < length {
        let said = 10 + random.below(40);
        text.extend(prose(random, said));
        text.extend(&call);
        let start = random.below(file.len().saturating_sub(80));
        let end = file.len().min(start + 40 + random.below(80));
        let old = file[start..end].to_vec();
        let new = edited(random, &old, 20);
        text.extend(&old);
        text.extend(&call[3..9]);
        text.extend(&new);
        file.splice(start..end, new);
        text.extend(&call[5..]);
        if random.below(3) == 0 {
            text.extend(&file);
        }
    }
    let output = text.split_off(prompt);
    Recorded { name: "agent", prompt: text, output }
}
