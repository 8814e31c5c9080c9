//! Follows every link and frame that somebody is shown, and remembers every form.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::support::{
    html::{Dom, Form},
    pages::{Page, Visitor},
};

/// Pages of one shape that are looked at. Lists lead on for ever, and the office has fewer things of one sort.
const ALIKE: usize = 24;

/// What somebody can see.
pub struct Crawl {
    /// Path and query of each page, and what came.
    pub pages: Vec<(String, Page)>,
    pub forms: Vec<Form>,
    /// Everything that was led to, visited or not.
    pub addresses: BTreeSet<String>,
}

impl Crawl {
    /// From these pages on.
    pub async fn of(visitor: &Visitor, from: &[&str]) -> Self {
        let mut crawl = Self { pages: Vec::new(), forms: Vec::new(), addresses: BTreeSet::new() };
        let mut waiting: VecDeque<String> = from.iter().map(|path| (*path).to_owned()).collect();
        let mut alike = BTreeMap::<String, usize>::new();
        crawl.addresses.extend(waiting.iter().cloned());
        while let Some(path) = waiting.pop_front() {
            if !path.starts_with('/') {
                continue;
            }
            let seen = alike.entry(shape(&path)).or_default();
            *seen += 1;
            if *seen > ALIKE {
                continue;
            }
            let page = visitor.get(&path).await;
            if is_page(&page) {
                let dom = Dom::of(&path, &page.text);
                let new: Vec<_> = dom.addresses().into_iter().filter(|to| crawl.addresses.insert(to.clone())).collect();
                waiting.extend(new);
                let forms = dom.forms();
                let asked = forms.iter().filter(|form| form.method == "GET").map(Form::address);
                waiting.extend(asked.filter(|to| crawl.addresses.insert(to.clone())));
                crawl.forms.extend(forms);
            }
            crawl.pages.push((path, page));
        }
        crawl
    }
}

/// Whether it is a page of ours, as opposed to a file, or to a mail that is shown in a frame.
pub fn is_page(page: &Page) -> bool {
    page.header("content-type").starts_with("text/html") && !page.header("content-security-policy").contains("sandbox")
}

/// What pages of one sort have in common: the path without ids, and the names of what is asked.
fn shape(address: &str) -> String {
    let (path, query) = address.split_once('?').unwrap_or((address, ""));
    let is_id = |part: &&str| part.len() == 36 && part.matches('-').count() == 4;
    let path: Vec<_> = path.split('/').map(|part| if is_id(&part) { "*" } else { part }).collect();
    let names: BTreeSet<_> = query.split('&').map(|pair| pair.split('=').next().unwrap_or_default()).collect();
    format!("{}?{names:?}", path.join("/"))
}
