//! Requests as one types them in a shell.

use serde_json::Value;

const CSV: &str = "text/csv";

/// A command that sends the request, with the address of the service in `$URL` and the token in `$TOKEN`.
pub fn curl(method: &str, path: &str, operation: &Value) -> String {
    let path = path.replace('{', "$").replace('}', "").split('/').map(in_shell).collect::<Vec<_>>().join("/");
    let parameters = operation["parameters"].as_array().into_iter().flatten();
    // What can be tried without consequences is tried first.
    let tries = parameters.clone().any(|parameter| parameter["in"] == "query" && parameter["name"] == "dry_run");
    let query = if tries { "?dry_run=true" } else { "" };
    let mut lines = vec![format!("curl \"$URL{path}{query}\"")];
    if method != "get" {
        lines.push(format!("-X {}", method.to_uppercase()));
    }
    lines.push("-H \"Authorization: Bearer $TOKEN\"".to_owned());
    if parameters.into_iter().any(|parameter| parameter["name"] == "If-Match" && parameter["required"] == true) {
        lines.push("-H 'If-Match: \"1\"'".to_owned());
    }
    let contents = operation["requestBody"]["content"].as_object().into_iter().flatten();
    if let Some((media_type, example)) =
        contents.into_iter().find_map(|(name, body)| Some((name, body.get("example")?)))
    {
        lines.push(format!("-H 'Content-Type: {media_type}'"));
        let body = match example {
            Value::String(text) => text.clone(),
            other => format!("{other:#}"),
        };
        lines.push(format!("-d '{}'", body.replace('\'', "'\\''")));
    } else if operation["requestBody"]["content"].get(CSV).is_some() {
        // The body is a file.
        lines.push(format!("-H 'Content-Type: {CSV}'"));
        lines.push("--data-binary @permits.csv".to_owned());
    }
    lines.join(" \\\n  ")
}

/// A part of a path; what is filled in stands as a variable.
fn in_shell(part: &str) -> String {
    if part.starts_with('$') { part.to_uppercase() } else { part.to_owned() }
}
