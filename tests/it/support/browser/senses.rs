//! What somebody notices of a page without looking for it: what is announced, where the keyboard is, how wide it is.

use std::time::{Duration, Instant};

use serde_json::json;

use super::{Browser, PATIENCE, Way};

impl Browser {
    /// What is read where the keyboard is.
    pub async fn focused(&self) -> String {
        let said = "const at = document.activeElement;
                    const label = at.labels?.length ? at.labels[0].textContent : '';
                    const text = label || at.getAttribute('aria-label') || at.textContent || at.tagName;
                    return text.replace(/\\s+/g, ' ').trim();";
        self.script(said).await.as_str().unwrap_or_default().to_owned()
    }

    /// Waits until the place of the keyboard is to be seen: marked, inside the window and under nothing else.
    pub async fn sees_where_it_is(&self) {
        let shown = "const at = document.activeElement;
                     if (at === document.body) return true;
                     const style = getComputedStyle(at), box = at.getBoundingClientRect();
                     const ringed = style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2;
                     const [left, right] = [Math.max(box.left, 0), Math.min(box.right, innerWidth)];
                     const [top, bottom] = [Math.max(box.top, 0), Math.min(box.bottom, innerHeight)];
                     if (!ringed) return `not marked, but ${style.outline}`;
                     if (right - left < 2 || bottom - top < 2) return `outside at ${left} ${top} ${right} ${bottom}`;
                     const there = document.elementFromPoint((left + right) / 2, (top + bottom) / 2);
                     if (there && (at.contains(there) || there.contains(at))) return true;
                     return `under ${there?.outerHTML.slice(0, 200)}`;";
        let until = Instant::now() + PATIENCE;
        // A page that has just come may still be moving to where the keyboard is.
        loop {
            let found = self.script(shown).await;
            if found == true {
                return;
            }
            let place = self.focused().await;
            assert!(
                Instant::now() < until,
                "the keyboard is at {place:?} and nobody sees it, {found}: {}",
                self.text().await
            );
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// A form was refused: its page says so first, in a way that is announced, and says `sentence` among it.
    pub async fn is_refused(&self, sentence: &str) {
        self.see(sentence).await;
        let title = self.driver.title().await.expect("a title");
        assert!(title.starts_with("Error: "), "{title:?}");
        let said = "return [...document.querySelectorAll('[role=alert]')].map(one => one.innerText).join(' ')";
        let alert = self.script(said).await.as_str().unwrap_or_default().to_owned();
        assert!(alert.contains(sentence), "announced is {alert:?}, and not {sentence:?}");
        if self.way != Way::NarrowWithoutScript {
            let at = self.script("return document.activeElement.getAttribute('role')").await;
            assert_eq!(at, "alert", "the keyboard is at {:?}", self.focused().await);
            self.sees_where_it_is().await;
        }
        self.fits().await;
    }

    /// Something was done: the page says so in its status.
    pub async fn is_done(&self, sentence: &str) {
        self.see(sentence).await;
        let said = "return [...document.querySelectorAll('[role=status]')].map(one => one.innerText).join(' ')";
        let status = self.script(said).await.as_str().unwrap_or_default().to_owned();
        assert!(status.contains(sentence), "the status is {status:?}, and not {sentence:?}");
        self.fits().await;
    }

    /// The browser itself keeps a form back because of this field, and says so there.
    pub async fn is_kept_back_at(&self, label: &str) {
        assert_eq!(self.focused().await, label);
        let is_invalid = self.script("return document.activeElement.matches(':invalid')").await;
        assert_eq!(is_invalid, true, "{label}");
    }

    /// The window is so wide from now on.
    pub async fn be_wide(&self, width: u32) {
        let size = json!({ "width": width, "height": 800, "deviceScaleFactor": 1, "mobile": false });
        self.driver.cdp().send_raw("Emulation.setDeviceMetricsOverride", size).await.expect("another width");
    }

    /// Panics if the page is to be moved sideways: only what stands in a frame of its own may be.
    pub async fn fits(&self) {
        let wide = "const inner = document.scrollingElement, most = document.documentElement.clientWidth;
                    if (inner.scrollWidth <= innerWidth) return null;
                    const framed = (one) => one.parentElement.closest('.table-frame, pre');
                    const sticks = [...document.body.querySelectorAll('*')].filter(
                        (one) => one.getBoundingClientRect().right > most + 1 && !framed(one));
                    return [inner.scrollWidth, innerWidth, ...sticks.slice(0, 5).map((one) => one.outerHTML.slice(0, 200))]";
        let found = self.script(wide).await;
        assert!(found.is_null(), "{:?} is too wide: {found:#}", self.driver.current_url().await);
    }
}
