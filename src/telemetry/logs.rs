//! Log lines on standard error: for people, or as one JSON object a line.
//!
//! In JSON every field stands at the top level, those of the spans around an event too, so that a
//! filter for `request_id` or `notice_key` needs to know nothing about spans. The innermost wins,
//! and `timestamp`, `level`, `target` and `message` are never taken by a field.

use std::fmt;
use std::io::{self, IsTerminal};

use serde::Serialize;
use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::{JsonFields, Writer};
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormattedFields, MakeWriter};
use tracing_subscriber::registry::{LookupSpan, Scope};

use crate::config::LogFormat;

#[derive(Debug, thiserror::Error)]
pub enum LogError {
    #[error("the log filter cannot be read: {0}")]
    Filter(#[from] tracing_subscriber::filter::ParseError),
    #[error("logs were already started")]
    AlreadyStarted(#[from] tracing::subscriber::SetGlobalDefaultError),
}

/// Starts the logs of this process; panics are logged like everything else, without a backtrace.
pub fn start(format: LogFormat, filter: &str) -> Result<(), LogError> {
    let colours = io::stderr().is_terminal();
    tracing::subscriber::set_global_default(subscriber(format, filter, colours, io::stderr)?)?;
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        let what = crate::shutdown::panic_message(panic.payload());
        tracing::error!(place, "panic: {what}");
    }));
    Ok(())
}

/// The same for any writer, so that tests can read the lines.
pub fn subscriber<W>(
    format: LogFormat,
    filter: &str,
    colours: bool,
    writer: W,
) -> Result<Box<dyn Subscriber + Send + Sync>, LogError>
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let builder = tracing_subscriber::fmt().with_env_filter(EnvFilter::builder().parse(filter)?).with_writer(writer);
    Ok(match format {
        LogFormat::Pretty => Box::new(builder.with_ansi(colours).finish()),
        LogFormat::Json => {
            Box::new(builder.with_ansi(false).fmt_fields(JsonFields::new()).event_format(FlatJson).finish())
        }
    })
}

struct FlatJson;

impl<S> FormatEvent<S, JsonFields> for FlatJson
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, JsonFields>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut timestamp = String::new();
        SystemTime.format_time(&mut Writer::new(&mut timestamp))?;
        let mut fields = Map::new();
        for span in context.event_scope().into_iter().flat_map(Scope::from_root) {
            if let Some(of_span) = span.extensions().get::<FormattedFields<JsonFields>>()
                && let Ok(of_span) = serde_json::from_str::<Map<String, Value>>(of_span)
            {
                fields.extend(of_span);
            }
        }
        event.record(&mut Fields(&mut fields));
        let message = fields.remove("message");
        for ours in ["timestamp", "level", "target"] {
            fields.remove(ours);
        }
        let line = serde_json::to_string(&Line {
            timestamp: &timestamp,
            level: event.metadata().level().as_str(),
            target: event.metadata().target(),
            message: message.unwrap_or_else(|| "".into()),
            fields,
        });
        writeln!(writer, "{}", line.map_err(|_| fmt::Error)?)
    }
}

/// What every line has comes first, for people who read JSON.
#[derive(Serialize)]
struct Line<'a> {
    timestamp: &'a str,
    level: &'a str,
    target: &'a str,
    message: Value,
    #[serde(flatten)]
    fields: Map<String, Value>,
}

/// Numbers and booleans stay what they are; everything else becomes text.
struct Fields<'a>(&'a mut Map<String, Value>);

impl Fields<'_> {
    fn put(&mut self, field: &Field, value: impl Into<Value>) {
        let name = field.name().trim_start_matches("r#");
        self.0.insert(name.to_owned(), value.into());
    }
}

impl Visit for Fields<'_> {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, format!("{value:?}"));
    }
}
