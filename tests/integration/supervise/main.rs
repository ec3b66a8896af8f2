//! Supervised engines end to end: real workers, real models, and everything that can happen to a process.
//!
//! This program is its own worker, so it has a `main` that calls the hook; what its engines do besides drafting is said by [`hostile`].

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod commands;
mod deaths;
mod hostile;
#[path = "../support/roles.rs"]
mod roles;
mod starts;
mod support;

/// What this program does if it is started under such a name.
const ROLES: &[roles::Named] =
    &[("forgets-the-hook", || eprintln!("no hook here")), ("is-dropped-by-its-parent", commands::dies_with_a_worker)];

const TESTS: &[roles::Named] = &[
    ("a_first_load_tells_what_it_found", starts::a_first_load_tells_what_it_found),
    ("what_cannot_be_loaded_is_told", starts::what_cannot_be_loaded_is_told),
    ("a_program_without_the_hook_is_told", starts::a_program_without_the_hook_is_told),
    ("an_engine_in_this_process_serves", starts::an_engine_in_this_process_serves),
    ("questions_are_answered", starts::questions_are_answered),
    ("a_killed_worker_costs_no_text", deaths::a_killed_worker_costs_no_text),
    ("an_abort_in_the_draft_path_costs_no_text", deaths::an_abort_in_the_draft_path_costs_no_text),
    ("one_that_dies_again_at_once_costs_no_text", deaths::one_that_dies_again_at_once_costs_no_text),
    ("one_that_hangs_costs_no_text", deaths::one_that_hangs_costs_no_text),
    ("one_that_is_stopped_costs_no_text", deaths::one_that_is_stopped_costs_no_text),
    ("seeded_texts_go_on_as_they_would_have", deaths::seeded_texts_go_on_as_they_would_have),
    ("several_answers_go_on", deaths::several_answers_go_on),
    ("one_that_cannot_be_helped_is_given_up", deaths::one_that_cannot_be_helped_is_given_up),
    ("an_idle_worker_that_dies_is_replaced", deaths::an_idle_worker_that_dies_is_replaced),
    ("the_users_load_wins_over_a_recovery", commands::the_users_load_wins_over_a_recovery),
    ("a_draft_comes_and_goes_without_a_new_process", commands::a_draft_comes_and_goes_without_a_new_process),
    ("nothing_is_left_after_an_unload", commands::nothing_is_left_after_an_unload),
    ("a_shutdown_lets_texts_end", commands::a_shutdown_lets_texts_end),
    ("a_worker_ends_with_its_parent", commands::a_worker_ends_with_its_parent),
];

fn main() {
    // In a worker this does not return; the hook that follows in `roles` is for the others.
    if roles::role(ROLES).is_none() {
        llama_spec::supervise::hook(hostile::customise);
    }
    roles::run(ROLES, TESTS, support::no_process_is_left);
}
