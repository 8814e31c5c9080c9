//! What is done on a page, by labels and names as people read them: with a pointer, or by the keyboard alone.

use thirtyfour::prelude::*;

use super::{Browser, Way, quoted};

impl Browser {
    /// The field with this label, found as people find it.
    pub async fn field(&self, label: &str) -> WebElement {
        let said = quoted(label);
        let label = format!("//label[normalize-space()={said}]");
        let by = format!("//*[@aria-label={said}] | //*[@id={label}/@for] | {label}//input");
        self.element(&by).await
    }

    /// What a field holds.
    pub async fn value(&self, label: &str) -> String {
        self.field(label).await.prop("value").await.expect("an answer").unwrap_or_default()
    }

    /// Goes to a field: what is typed then is typed there.
    async fn enter(&self, label: &str) -> WebElement {
        if self.way == Way::Keyboard {
            self.tab_to(label).await;
            return self.driver.active_element().await.expect("a place");
        }
        self.field(label).await
    }

    /// Writes into a field, instead of what stands there.
    pub async fn fill(&self, label: &str, text: &str) {
        let field = self.enter(label).await;
        match field.attr("type").await.expect("an answer").as_deref() {
            Some("date") => {
                // As people of that language write it: month, day, year.
                let parts: Vec<&str> = text.split('-').collect();
                field.send_keys(format!("{}{}{}", parts[1], parts[2], parts[0])).await.expect("keys");
            }
            Some("file") => field.send_keys(text).await.expect("a file"),
            _ if self.way == Way::Keyboard => {
                field.send_keys(Key::Control + "a").await.expect("keys");
                field.send_keys(Key::Backspace + text).await.expect("keys");
            }
            _ => {
                field.clear().await.expect("an empty field");
                field.send_keys(text).await.expect("keys");
            }
        }
    }

    /// Chooses from a list.
    pub async fn choose(&self, label: &str, option: &str) {
        let field = self.enter(label).await;
        if self.way == Way::Keyboard {
            field.send_keys(option).await.expect("keys");
        } else {
            let by = format!("./option[normalize-space()={}]", quoted(option));
            field.find(By::XPath(by)).await.expect("an option").click().await.expect("a choice");
        }
        let chosen = "return arguments[0].selectedOptions[0].textContent.trim()";
        let chosen = self.driver.execute(chosen, vec![field.to_json().expect("a field")]).await.expect("an answer");
        assert_eq!(chosen.json().as_str(), Some(option), "{label}");
    }

    /// Sets or unsets a mark.
    pub async fn tick(&self, label: &str) {
        let field = self.enter(label).await;
        if self.way == Way::Keyboard {
            field.send_keys(" ").await.expect("a key");
        } else {
            field.click().await.expect("a mark");
        }
    }

    /// Presses the first button, or follows the first link, with this text.
    pub async fn press(&self, text: &str) {
        if self.way == Way::Keyboard {
            self.tab_to(text).await;
            self.key(Key::Enter + "").await;
            return;
        }
        let text = quoted(text);
        let by = format!("//*[self::button or self::a or self::summary][normalize-space()={text}]");
        self.element(&by).await.click().await.unwrap_or_else(|error| panic!("{text}: {error}"));
    }

    /// Presses keys, wherever the keyboard is.
    pub async fn key(&self, keys: impl Into<TypingData>) {
        // They were pressed, and led away before the driver had looked at the page again.
        let led_away =
            |error: &str| ["aborted by navigation", "no such execution context"].iter().any(|why| error.contains(why));
        match self.driver.action_chain().send_keys(keys).perform().await {
            Err(error) if led_away(&error.to_string()) => {}
            pressed => pressed.expect("keys"),
        }
    }

    /// Goes on by Tab until the keyboard is at what is read as `text`, and sees each stop on the way.
    pub async fn tab_to(&self, text: &str) {
        for _ in 0..150 {
            if self.focused().await == text {
                return;
            }
            self.key(Key::Tab + "").await;
            self.sees_where_it_is().await;
        }
        panic!("the keyboard does not reach {text:?}; it is at {:?}", self.focused().await);
    }
}
