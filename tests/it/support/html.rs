//! Pages as a browser's parser understands them: what they lead to, what their forms send, and what is wrong with them.

use std::collections::BTreeSet;

use scraper::{ElementRef, Html, Selector};
use url::Url;

/// A page, and where it was found.
pub struct Dom {
    html: Html,
    at: Url,
}

/// A form with what is in it.
#[derive(Debug, Clone)]
pub struct Form {
    pub method: String,
    /// Path and query to which it is sent.
    pub action: String,
    pub is_upload: bool,
    pub fields: Vec<Field>,
    /// Each of its buttons.
    pub buttons: Vec<Button>,
}

/// One field of a form.
#[derive(Debug, Clone)]
pub struct Field {
    pub name: String,
    pub value: String,
    /// Its `type`, or its element's name.
    pub kind: String,
}

/// One button of a form.
#[derive(Debug, Clone)]
pub struct Button {
    /// Where it sends the form.
    pub action: String,
    /// What it adds to the fields.
    pub adds: Option<(String, String)>,
}

impl Form {
    /// What is sent when nobody changes anything but fills in what is empty, with this button.
    pub fn filled_in(&self, button: &Button) -> Vec<(String, String)> {
        let filled = |field: &Field| match (field.value.as_str(), field.kind.as_str()) {
            ("", "text" | "textarea" | "search" | "email" | "password") => "x".to_owned(),
            (value, _) => value.to_owned(),
        };
        let fields = self.fields.iter().filter(|field| field.kind != "file");
        let fields = fields.map(|field| (field.name.clone(), filled(field)));
        fields.chain(button.adds.clone()).collect()
    }
}

impl Form {
    /// Where a form that only asks leads as it stands.
    pub fn address(&self) -> String {
        let pairs = self.fields.iter().map(|field| (&field.name, &field.value));
        let query = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish();
        format!("{}?{query}", self.action.split('?').next().unwrap_or_default())
    }
}

impl Dom {
    /// `at` is the path and query of the page.
    pub fn of(at: &str, text: &str) -> Self {
        let office = Url::parse("http://office.invalid").expect("an address");
        Self { html: Html::parse_document(text), at: office.join(at).expect("an address") }
    }

    pub fn all(&self, selector: &str) -> Vec<ElementRef<'_>> {
        self.html.select(&Selector::parse(selector).expect("a selector")).collect()
    }

    /// All text a reader or a field shows, one piece after the other.
    pub fn shown(&self) -> String {
        let texts = self.html.root_element().text().map(str::to_owned);
        let values = self.all("[value], [placeholder], [title], [aria-label]").into_iter().flat_map(|element| {
            ["value", "placeholder", "title", "aria-label"].into_iter().filter_map(move |name| element.attr(name))
        });
        texts.chain(values.map(str::to_owned)).collect::<Vec<_>>().join("\n")
    }

    /// Path and query that an address on this page leads to; the whole address if it leads to another host.
    fn resolve(&self, address: &str) -> String {
        match self.at.join(address) {
            Ok(url) if url.host_str() == self.at.host_str() && url.scheme() == "http" => match url.query() {
                Some(query) => format!("{}?{query}", url.path()),
                None => url.path().to_owned(),
            },
            _ => address.to_owned(),
        }
    }

    /// Everything that a page leads to or loads.
    pub fn addresses(&self) -> BTreeSet<String> {
        let found = self.all("[href], [src]").into_iter().filter_map(|element| {
            let address = element.attr("href").or_else(|| element.attr("src"))?;
            (!address.starts_with('#')).then(|| self.resolve(address))
        });
        found.collect()
    }

    pub fn forms(&self) -> Vec<Form> {
        self.all("form").into_iter().map(|form| self.form(form)).collect()
    }

    fn form(&self, form: ElementRef<'_>) -> Form {
        let here = self.at.as_str().to_owned();
        let action = self.resolve(form.attr("action").unwrap_or(&here));
        let selector = |text: &str| Selector::parse(text).expect("a selector");
        let (controls, buttons) = (selector("input, select, textarea"), selector("button"));
        let mine: Vec<_> = form.select(&controls).filter(|control| control.attr("form").is_none()).collect();
        let lent = form.attr("id").map(|id| self.all(&format!("[form=\"{id}\"]"))).unwrap_or_default();
        let fields = mine.into_iter().chain(lent).filter_map(field_of);
        let button = |element: ElementRef<'_>| Button {
            action: element.attr("formaction").map_or_else(|| action.clone(), |action| self.resolve(action)),
            adds: element.attr("name").map(|name| (name.to_owned(), element.attr("value").unwrap_or("").to_owned())),
        };
        Form {
            method: form.attr("method").unwrap_or("get").to_ascii_uppercase(),
            is_upload: form.attr("enctype").is_some_and(|kind| kind == "multipart/form-data"),
            fields: fields.collect(),
            buttons: form.select(&buttons).map(button).collect(),
            action,
        }
    }

    /// What no page may have: script or style of its own, markup that somebody smuggled in, an id twice.
    pub fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let mut ids = BTreeSet::new();
        for element in self.all("*") {
            let name = element.value().name();
            if let Some(id) = element.attr("id")
                && !ids.insert(id)
            {
                faults.push(format!("the id {id} stands twice"));
            }
            if name == "style" || (name == "script" && (element.attr("src").is_none() || element.text().count() > 0)) {
                faults.push(format!("an inline {name}"));
            }
            if name == SMUGGLED {
                faults.push(format!("markup that somebody smuggled in: {}", element.html()));
            }
            for (attribute, value) in element.value().attrs() {
                let is_address = matches!(attribute, "href" | "src" | "action" | "formaction");
                if attribute.starts_with("on") || matches!(attribute, "style" | "srcdoc") || attribute == SMUGGLED {
                    faults.push(format!("the attribute {attribute} of {name}"));
                }
                if is_address && !value.starts_with(['/', '#']) {
                    faults.push(format!("the address {value} of {name}"));
                }
                if is_address && self.resolve(value).starts_with("//") {
                    faults.push(format!("the address {value} of {name} may lead to another host"));
                }
            }
        }
        for (address, id) in
            self.all("a[href^=\"#\"]").into_iter().filter_map(|a| Some((a.attr("href")?, &a.attr("href")?[1..])))
        {
            if !ids.contains(id) {
                faults.push(format!("nothing has the id that {address} leads to"));
            }
        }
        faults
    }
}

/// Name of the element and the attribute that tests try to smuggle in.
pub const SMUGGLED: &str = "x-evil";

fn field_of(control: ElementRef<'_>) -> Option<Field> {
    let name = control.attr("name")?.to_owned();
    let element = control.value().name();
    let kind = if element == "input" { control.attr("type").unwrap_or("text") } else { element };
    let value = match element {
        "textarea" => control.text().collect(),
        "select" => chosen(control),
        _ => control.attr("value").unwrap_or(if kind == "checkbox" { "on" } else { "" }).to_owned(),
    };
    Some(Field { name, value, kind: kind.to_owned() })
}

/// The option that is selected, or the first.
fn chosen(select: ElementRef<'_>) -> String {
    let selector = Selector::parse("option").expect("a selector");
    let options: Vec<_> = select.select(&selector).collect();
    let chosen = options.iter().find(|option| option.attr("selected").is_some()).or(options.first());
    let value = |option: &ElementRef<'_>| option.attr("value").map_or_else(|| option.text().collect(), str::to_owned);
    chosen.map(value).unwrap_or_default()
}
