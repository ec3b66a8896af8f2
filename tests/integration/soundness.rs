//! What must not compile does not: each file in `ui/` names the compiler's error.

#[test]
fn misuse_does_not_compile() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("ui/*.rs");
}
