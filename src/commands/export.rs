//! `export`: permits as a file on standard output.

use std::{
    io::{ErrorKind, IsTerminal, Write},
    process::ExitCode,
};

use anyhow::{Context, Result, ensure};
use chrono::{DateTime, NaiveDate, Utc};
use clap::Args;
use futures_util::StreamExt;
use url::form_urlencoded::Serializer;

use super::date;
use crate::{
    app::{App, Database},
    config::Config,
    domain::{
        export::{ExportFormat, ExportShape},
        permit::PermitStatus,
        phase::Phase,
    },
    files::export::export,
    store::{
        PgPool,
        changes::COMMAND,
        lists::permits::PermitFilter,
        office_log::{Deed, record},
        permit_types::find_permit_type,
    },
};

#[derive(Debug, Clone, Args)]
pub struct Arguments {
    /// csv or xlsx, which `import` reads again; json; or blds, for the public and without personal data
    #[arg(long, value_name = "FORMAT", default_value = "csv")]
    format: ExportFormat,
    /// Put a byte order mark before csv, for programs that need one to know UTF-8
    #[arg(long)]
    bom: bool,
    #[command(flatten)]
    which: Which,
}

/// Which permits; those of the API's list.
#[derive(Debug, Clone, Args)]
struct Which {
    /// Only those with each of these words in number, external id, holder, address or site
    #[arg(long, value_name = "WORDS")]
    q: Option<String>,
    /// Only those of this type
    #[arg(long, value_name = "TYPE")]
    permit_type: Option<String>,
    /// Only those of this status
    #[arg(long, value_name = "STATUS")]
    status: Option<PermitStatus>,
    /// Only those in this phase of their life
    #[arg(long, value_name = "PHASE")]
    phase: Option<Phase>,
    /// Only those whose last valid day is this or later
    #[arg(long, value_name = "DATE", value_parser = date)]
    expires_from: Option<NaiveDate>,
    /// Only those whose last valid day is this or earlier
    #[arg(long, value_name = "DATE", value_parser = date)]
    expires_to: Option<NaiveDate>,
    /// Only those changed at or after this instant
    #[arg(long, value_name = "INSTANT")]
    updated_since: Option<DateTime<Utc>>,
    /// true: only archived ones; false: only others
    #[arg(long, value_name = "true|false")]
    archived: Option<bool>,
}

impl Arguments {
    /// What is wrong with the options together.
    pub fn fault(&self) -> Option<&'static str> {
        (self.bom && !self.format.is_csv()).then_some("--bom is for csv and blds")
    }
}

pub async fn run(arguments: Arguments, config: Config, database: &Database) -> Result<ExitCode> {
    let Arguments { format, bom, which } = arguments;
    let mut out = std::io::stdout();
    ensure!(format != ExportFormat::Xlsx || !out.is_terminal(), "a workbook is nothing to look at: give it to a file");
    let app = App::open(config, database).await?;
    let moment = app.moment(None).await?;
    let filter = which.filter(&app.pool).await?;
    record(&app.pool, Deed::exported(COMMAND, format, &which.query()), moment.now).await?;
    let mut chunks = export(&database.direct_url, filter, ExportShape { format, bom }, moment.today).await?;
    while let Some(piece) = chunks.next().await {
        match out.write_all(&piece?) {
            Ok(()) => {}
            // A reader that has seen enough, such as `head`.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(ExitCode::SUCCESS),
            Err(error) => return Err(error.into()),
        }
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

impl Which {
    async fn filter(&self, pool: &PgPool) -> Result<PermitFilter> {
        let permit_type = match &self.permit_type {
            None => None,
            Some(text) => {
                let found = find_permit_type(pool, text).await?;
                Some(found.with_context(|| format!("--permit-type: there is no permit type {text:?}"))?)
            }
        };
        let words = self.q.iter().flat_map(|q| q.split_whitespace()).map(str::to_owned);
        Ok(PermitFilter {
            words: words.collect(),
            permit_type,
            status: self.status,
            phase: self.phase,
            expires_from: self.expires_from,
            expires_to: self.expires_to,
            updated_since: self.updated_since,
            archived: self.archived,
            number_key: None,
        })
    }

    /// The same as the API has it, for the audit.
    fn query(&self) -> String {
        let given = [
            ("q", self.q.clone()),
            ("permit_type", self.permit_type.clone()),
            ("status", self.status.map(|status| status.to_string())),
            ("phase", self.phase.map(|phase| phase.to_string())),
            ("expires_from", self.expires_from.map(|day| day.to_string())),
            ("expires_to", self.expires_to.map(|day| day.to_string())),
            ("updated_since", self.updated_since.map(|instant| instant.to_rfc3339())),
            ("archived", self.archived.map(|archived| archived.to_string())),
        ];
        let given = given.into_iter().filter_map(|(name, value)| value.map(|value| (name, value)));
        Serializer::new(String::new()).extend_pairs(given).finish()
    }
}
