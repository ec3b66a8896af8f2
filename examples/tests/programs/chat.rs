//! The program `chat`, its lines coming from a pipe.

use super::common::{CHAT, Run, file, model, run, text};
use llama_spec_tests::zoo::Llama;

fn chat(args: &[&str], input: &str) -> Run {
    let model = file("chat");
    let fixed = ["--model", &model, "--threads", "1", "--temp", "0"];
    run(CHAT, fixed.iter().chain(args), input)
}

/// What the model says to anything, since its text depends on the last token of the prompt alone.
fn answer(model: &Llama) -> String {
    let tokens = model.continuation(&model.vocabulary().tokenize("\n"), 200);
    assert!(model.is_end(tokens[tokens.len() - 1]));
    text(model, &tokens.into_iter().map(i64::from).collect::<Vec<_>>())
}

#[test]
fn two_turns_and_a_line_of_numbers_for_each() {
    let answer = answer(&model("chat"));
    let run = chat(&[], "hi\nwhat else?\n/quit\nnot read any more\n").succeeded();
    assert_eq!(run.stdout, format!("{answer}\n{answer}\n"));
    let lines: Vec<_> = run.stderr.lines().collect();
    assert_eq!(lines.len(), 2, "{run:?}");
    for line in &lines {
        assert!(line.starts_with(&format!("{} tokens, ", answer.len())), "{line}");
        assert!(line.ends_with("ended: end of text"), "{line}");
    }
    // The second prompt begins with the first exchange, which is still in the memory.
    assert!(lines[1].contains(" cached), "), "{run:?}");
}

#[test]
fn every_method_gives_the_same_answers() {
    let draft = file("draft-0.8");
    let input = "hi\nsay more\nand more\n";
    let plain = chat(&["--spec", "none"], input).succeeded();
    for args in [
        &["--spec", "ngram-simple"][..],
        &["--spec", "ngram-map-k"],
        &["--spec", "ngram-mod"],
        &["--draft", &draft],
        &["--draft", &draft, "--spec", "ngram-mod,draft-simple"],
    ] {
        let run = chat(args, input).succeeded();
        assert_eq!(run.stdout, plain.stdout, "{args:?}");
        assert!(run.stderr.contains("drafted tokens accepted"), "{run:?}");
    }
}

#[test]
fn commands_change_the_conversation() {
    let input = "/system Be brief.\n/system\nhi\n/retry\n/undo\n/undo\n/retry\n/spec none\n/spec\nhi\n/stats\n/help\n";
    let run = chat(&[], input).succeeded();
    let answer = answer(&model("chat"));
    assert_eq!(run.stdout, format!("{answer}\n{answer}\n{answer}\n"), "{run:?}");
    let said = |part: &str| run.stderr.matches(part).count();
    assert_eq!(said("Be brief."), 1, "{run:?}");
    assert_eq!((said("taken back"), said("there is nothing to take back")), (1, 1), "{run:?}");
    assert_eq!(said("there is no message to answer"), 1, "{run:?}");
    assert_eq!(said("speculation: none"), 2, "{run:?}");
    assert_eq!(said("3 answers: "), 1, "{run:?}");
    assert_eq!(said("/clear           begin a new conversation"), 1, "{run:?}");
}

#[test]
fn a_conversation_that_became_too_long_says_what_to_do() {
    let answer = answer(&model("chat"));
    let long = "x".repeat(300);
    let run = chat(&["--context", "256"], &format!("hi\n{long}\nhi\n/system {long}\nhi\n/system -\n/clear\nhi\n"));
    // The first, the third after the one that is too long, and the last.
    assert_eq!(run.stdout, format!("{answer}\n{answer}\n{answer}\n"), "{run:?}");
    assert_eq!(run.status.code(), Some(1), "not all messages were answered: {run:?}");
    let errors: Vec<_> = run.stderr.lines().filter(|line| line.starts_with("error: ")).collect();
    assert_eq!(errors.len(), 2, "{run:?}");
    for error in errors {
        assert!(error.contains("the context holds 256: /clear begins a new one, /undo"), "{error}");
    }
}

#[test]
fn a_context_that_fills_up_ends_the_answer_and_says_so() {
    let run = chat(&["--context", "256"], &"hi\n".repeat(4)).succeeded();
    assert!(run.stderr.lines().last().unwrap().ends_with("ended: context full; /clear begins a new conversation"));
}

#[test]
fn wrong_lines_do_not_end_the_program() {
    let answer = answer(&model("chat"));
    let model = file("chat");
    let run = run(
        CHAT,
        ["--model", &model, "--threads", "1", "--temp", "0"],
        b"/hlep\n\xff\xfe\n/spec ngram\n/spec draft-simple\n\nhi",
    );
    assert_eq!(run.stdout, format!("{answer}\n"), "{run:?}");
    assert_eq!(run.status.code(), Some(1), "{run:?}");
    for part in [
        "error: unknown command /hlep",
        "error: line 2 of standard input is not valid UTF-8: byte 0",
        "error: unknown speculative method `ngram`",
        "draft-missing: draft-simple needs a draft",
    ] {
        assert!(run.stderr.contains(part), "{part}: {run:?}");
    }
}

#[test]
fn a_line_may_go_on_in_the_next() {
    let run = chat(&[], "a\\\nb\n/stats\n").succeeded();
    // A token before the prompt, and "<|im_start|>user\na\nb<|im_end|>\n<|im_start|>assistant\n", one token a byte and one for each mark.
    assert!(run.stderr.contains("\nprompts: 23 tokens"), "{run:?}");
}

#[test]
fn another_template_can_be_given() {
    let target = file("target");
    let args = ["--model", &target, "--threads", "1", "--temp", "0", "--chat-template", "chatml", "-n", "5"];
    let run = run(CHAT, args, "hi\n").succeeded();
    assert_eq!(run.stdout, format!("{}\n", &answer(&model("chat"))[..5]));
}

#[test]
fn colours_mark_what_was_guessed_and_right() {
    let draft = file("draft-0.8");
    let plain = chat(&["--draft", &draft], "hi\n").succeeded();
    let coloured = chat(&["--draft", &draft, "--draft-length", "4", "--color", "always"], "hi\n").succeeded();
    assert!(coloured.stdout.contains("\u{1b}[32m"), "{coloured:?}");
    assert_eq!(console::strip_ansi_codes(&coloured.stdout), plain.stdout);
}
