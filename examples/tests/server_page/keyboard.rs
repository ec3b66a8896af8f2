//! Everything works without a pointer.

use crate::browser::{Page, browse};
use crate::stand_in::{StandIn, Step, done, tokens};
use fantoccini::key::Key;
use serde_json::json;

#[tokio::test]
async fn a_conversation_with_the_keyboard_alone() {
    let server = StandIn::start().await;
    server.stream([tokens(&[("One", "target"), (" two", "draft-simple"), (" three", "target")]), done()]);
    server.stream([tokens(&[("On and on", "target")]), Step::Wait]);
    server.stream([tokens(&[("Again", "target")]), done()]);
    browse(&server, async |page| {
        // The message field has the focus.
        let shift_enter = format!("{}{}{}", char::from(Key::Shift), char::from(Key::Enter), char::from(Key::Null));
        page.press(&format!("first line{shift_enter}second line")).await;
        assert_eq!(page.count(".message").await, 0);
        page.press(&key(Key::Enter)).await;
        page.says(".assistant .text", &["One two three"]).await;
        page.until("!document.querySelector('[aria-busy]')").await;
        assert_eq!(page.text(".user").await, "first line\nsecond line");

        // To the answer, and from token to token.
        let shift_tab = format!("{}{}{}", char::from(Key::Shift), char::from(Key::Tab), char::from(Key::Null));
        page.press(&shift_tab).await;
        page.until("document.activeElement.matches('.text')").await;
        page.press(&key(Key::Right)).await;
        page.says("#card", &["One"]).await;
        page.press(&key(Key::Right)).await;
        page.says("#card", &["␣two", "draft-simple"]).await;
        page.press(&key(Key::End)).await;
        page.says("#card", &["␣three"]).await;
        page.press(&key(Key::Left)).await;
        page.says("#card", &["␣two"]).await;
        assert_eq!(page.js("return document.activeElement.getAttribute('aria-describedby')").await, json!("card"));
        assert_ne!(page.style(".token:focus", "outline-style").await, "none");
        page.press(&key(Key::Escape)).await;
        page.until("document.querySelector('#card').hidden").await;

        // Escape stops an answer wherever the focus is.
        tab_to(page, "#prompt").await;
        page.press(&format!("go on{}", char::from(Key::Enter))).await;
        page.says(".assistant:last-child .text", &["On and on"]).await;
        tab_to(page, "#stop").await;
        page.press(&key(Key::Escape)).await;
        server.closed().await;
        page.says(".assistant:last-child .numbers", &["stopped"]).await;

        // The buttons, and the other views.
        tab_to(page, "#regenerate").await;
        assert_ne!(page.style("#regenerate", "outline-style").await, "none");
        page.press(&key(Key::Enter)).await;
        page.says(".assistant:last-child .text", &["Again"]).await;
        tab_to(page, "nav a[data-view=compatibility]").await;
        page.press(&key(Key::Enter)).await;
        page.says("#report", &["Works"]).await;
        assert_eq!(page.text("nav a[aria-current]").await, "Compatibility");
    })
    .await;
}

/// Enter that ends the choice of a character does not send.
#[tokio::test]
async fn a_character_that_is_being_composed_is_not_sent() {
    let server = StandIn::start().await;
    browse(&server, async |page| {
        page.keys("#prompt", "か").await;
        let enter = "document.querySelector('#prompt').dispatchEvent(new KeyboardEvent('keydown', \
                     { key: 'Enter', bubbles: true, cancelable: true, isComposing: true }))";
        page.js(enter).await;
        assert_eq!(page.count(".message").await, 0);
        assert_eq!(page.js("return document.querySelector('#prompt').value").await, json!("か"));
    })
    .await;
    assert_eq!(server.asked(), Vec::<serde_json::Value>::new());
}

fn key(key: Key) -> String {
    char::from(key).to_string()
}

/// Presses the tab key until the focus is there, which it must be within one round.
async fn tab_to(page: &Page, selector: &str) {
    for _ in 0..60 {
        if page.js(&format!("return document.activeElement.matches({})", json!(selector))).await == json!(true) {
            return;
        }
        page.press(&key(Key::Tab)).await;
    }
    panic!("the tab key does not reach {selector}");
}
