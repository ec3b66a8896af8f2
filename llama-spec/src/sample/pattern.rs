//! Regular expressions of triggers, made harmless.
//!
//! llama.cpp tries them with C++'s `std::regex` on all of the text after every token. That recurses for every repetition it
//! takes: a few thousand characters under a `[\s\S]*` overflow a thread's stack and end the process.

/// The most bytes of a pattern.
pub(crate) const MAX_BYTES: usize = 512;
/// The most repetitions in it; with each one more, failing takes [`MAX_COUNT`] times as long.
pub(crate) const MAX_REPETITIONS: usize = 4;
/// How often something is repeated at most.
pub(crate) const MAX_COUNT: usize = 64;

/// What is allowed, for error messages.
pub(crate) fn rule() -> String {
    format!(
        "a regular expression of 1 to {MAX_BYTES} bytes without NUL, with at most {MAX_REPETITIONS} times `*` or `+`, \
         behind a character or a class and not behind a group, and without `{{`"
    )
}

/// The pattern with its repetitions limited to [`MAX_COUNT`]; nothing if it is not allowed.
pub(crate) fn bounded(pattern: &str) -> Option<String> {
    if pattern.is_empty() || pattern.len() > MAX_BYTES || pattern.contains('\0') {
        return None;
    }
    let mut bounded = String::with_capacity(pattern.len() + 32);
    let mut characters = pattern.chars();
    let (mut repetitions, mut repeatable, mut in_class) = (0, false, false);
    while let Some(character) = characters.next() {
        match character {
            '\\' => {
                bounded.extend([character, characters.next()?]);
                repeatable = true;
            }
            ']' if in_class => {
                bounded.push(character);
                (in_class, repeatable) = (false, true);
            }
            _ if in_class => bounded.push(character),
            '*' | '+' if repeatable => {
                bounded += &format!("{{{},{MAX_COUNT}}}", u8::from(character == '+'));
                repetitions += 1;
                repeatable = false;
            }
            '*' | '+' | '{' => return None,
            _ => {
                bounded.push(character);
                in_class = character == '[';
                repeatable = !in_class && !matches!(character, '(' | ')' | '|' | '^' | '$' | '?');
            }
        }
    }
    (!in_class && repetitions <= MAX_REPETITIONS).then_some(bounded)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn repetitions_are_limited() {
        for (pattern, expected) in [
            (r"^\s+to$", r"^\s{1,64}to$"),
            (r"a*?(b)", r"a{0,64}?(b)"),
            (r"[^<]*?<", r"[^<]{0,64}?<"),
            (r"[+*{]+", r"[+*{]{1,64}"),
            (r"[\]*]x", r"[\]*]x"),
            (r"\*\+\{", r"\*\+\{"),
            (r"(?:^|a)( to=(?!self)x)?", r"(?:^|a)( to=(?!self)x)?"),
            (r".+é*", r".{1,64}é{0,64}"),
        ] {
            assert_eq!(bounded(pattern).as_deref(), Some(expected), "{pattern}");
        }
    }

    #[test]
    fn what_could_go_deep_is_refused() {
        let long = "a".repeat(MAX_BYTES + 1);
        for pattern in
            ["", "(a)*", "(a|b)+", "a{1,9}", "a**", "a+*", "*", "a*b*c*d*e*", "[a", "a\\", "a\0", "^*", &long]
        {
            assert_eq!(bounded(pattern), None, "{pattern}");
        }
    }

    proptest! {
        #[test]
        fn no_repetition_is_left(pattern in r"[ab\\\[\]()*+?{}|^$.é]{0,20}") {
            let Some(bounded) = bounded(&pattern) else { return Ok(()) };
            prop_assert!(bounded.len() >= pattern.len());
            // Outside of classes and escapes, only limited repetitions are left.
            let mut rest = bounded.replace("{0,64}", "").replace("{1,64}", "").replace("\\\\", "");
            for escape in ["\\[", "\\]", "\\*", "\\+", "\\{"] {
                rest = rest.replace(escape, "");
            }
            while let Some((before, class)) = rest.split_once('[') {
                let (_, after) = class.split_once(']').expect("classes are closed");
                rest = format!("{before}{after}");
            }
            prop_assert!(!rest.contains(['*', '+', '{']), "{pattern} became {bounded}, with {rest}");
        }
    }
}
