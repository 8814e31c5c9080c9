//! What pages load besides themselves: one stylesheet, one script, one icon. They are part of the program; their names
//! carry a hash of what they hold, so that browsers may keep them.

use std::sync::LazyLock;

use axum::Router;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use sha2::{Digest, Sha256};

use super::path::{Path, missing};
use crate::domain::text::hex;
use crate::web::api::problem::Problem;

/// A file of ours.
struct Asset {
    /// Beginning and end of its name.
    name: (&'static str, &'static str),
    content_type: &'static str,
    text: &'static str,
}

const STYLE: Asset = Asset {
    name: ("style", "css"),
    content_type: "text/css; charset=utf-8",
    text: include_str!("../../../templates/pages/style.css"),
};
const SCRIPT: Asset = Asset {
    name: ("script", "js"),
    content_type: "text/javascript; charset=utf-8",
    text: include_str!("../../../templates/pages/script.js"),
};
const ICON: Asset = Asset {
    name: ("icon", "svg"),
    content_type: "image/svg+xml",
    text: include_str!("../../../templates/pages/icon.svg"),
};

impl Asset {
    fn path(&self) -> String {
        let hash = hex(&Sha256::digest(self.text)[..6]);
        format!("/assets/{}-{hash}.{}", self.name.0, self.name.1)
    }
}

/// Address of the stylesheet.
pub fn style() -> &'static str {
    static PATH: LazyLock<String> = LazyLock::new(|| STYLE.path());
    &PATH
}

/// Address of the script.
pub fn script() -> &'static str {
    static PATH: LazyLock<String> = LazyLock::new(|| SCRIPT.path());
    &PATH
}

/// Address of the icon.
pub fn icon() -> &'static str {
    static PATH: LazyLock<String> = LazyLock::new(|| ICON.path());
    &PATH
}

pub(super) fn router<S: Clone + Send + Sync + 'static>() -> Router<S> {
    Router::new().route("/assets/{name}", get(asset))
}

async fn asset(Path(name): Path<String>) -> Result<Response, Problem> {
    let asked = format!("/assets/{name}");
    let known = [(style(), &STYLE), (script(), &SCRIPT), (icon(), &ICON)];
    let (_, asset) = known.into_iter().find(|(path, _)| *path == asked).ok_or_else(missing)?;
    let headers =
        [(header::CONTENT_TYPE, asset.content_type), (header::CACHE_CONTROL, "public, max-age=31536000, immutable")];
    Ok((headers, asset.text).into_response())
}
